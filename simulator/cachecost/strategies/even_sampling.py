"""Deterministic sampling at a rate: the selected items are spread evenly."""

from __future__ import annotations

from fractions import Fraction


class EvenSampler:
    """Selects items at a rate from 0 to 1: of n items round(n × rate), as far apart as possible."""

    def __init__(self, rate: float) -> None:
        self._rate = Fraction(str(rate))
        self._debt = Fraction(1, 2)

    def __call__(self) -> bool:
        self._debt += self._rate
        if self._debt < 1:
            return False
        self._debt -= 1
        return True
