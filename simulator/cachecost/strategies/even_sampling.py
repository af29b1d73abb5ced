"""Rates without chance: which of many things happen, evenly and always alike."""

from __future__ import annotations

from fractions import Fraction


class EvenSampler:
    """Says "this one" at a rate from 0 to 1: of n asked, round(n × rate) are, as far apart as they can be."""

    def __init__(self, rate: float) -> None:
        self._rate = Fraction(str(rate))
        self._debt = Fraction(1, 2)

    def __call__(self) -> bool:
        self._debt += self._rate
        if self._debt < 1:
            return False
        self._debt -= 1
        return True
