"""What strategies know of hosts and models, and deterministic sampling at a rate, spread evenly."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

MAX_RETRIES = 2
"""How often an answer that is not valid is asked for again."""


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


class FailedAttempts:
    """Which attempts fail at a rate p: of n questions with at most two retries n × p fail once and n × p² twice, each
    rounded, and spread evenly. At a higher rate as many or more fail.
    """

    def __init__(self, rate: float, most_retries: int) -> None:
        self._rate = Fraction(str(rate))
        self._debts = [Fraction(1, 2)] * most_retries

    def __call__(self, attempt: int) -> bool:
        """Whether this attempt (0 for the first at a new question) fails and is followed by another."""
        if not attempt:
            self._debts = [debt + self._rate**number for number, debt in enumerate(self._debts, 1)]
        if attempt == len(self._debts) or self._debts[attempt] < 1:
            return False
        self._debts[attempt] -= 1
        return True


class HostFacts(Protocol):
    """How the cache of a model works: its host, and the kind of matching there."""

    @property
    def host(self) -> str: ...
    @property
    def matching(self) -> str: ...


class ModelFacts(HostFacts, Protocol):
    """What a strategy must know of a model. `providers.rules.ModelRules` has it."""

    @property
    def context_window(self) -> int: ...
    @property
    def accepts_forced_choice(self) -> bool: ...


Facts = Callable[[str], ModelFacts]
"""What is known of a model, by its id. Raises CannotEvaluate for an unknown one."""
