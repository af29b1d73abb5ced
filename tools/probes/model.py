"""Results of probes: of a round, of all rounds, and the finding."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from cachecost.live.driver.budget import AnsweredCall
from cachecost.providers.usage import ZERO

NOT_SETTLED = "not settled"
SETTLE_S = 5.0
"""Seconds between a write and the read that relies on it: a fresh entry is not always readable at once (rule 14)."""
Value = str | bool | int


class Unsettled(Exception):
    """A probe cannot settle its question; the message says why."""


@dataclass(frozen=True, slots=True)
class RoundResult:
    """The result of one round. `value` None: it fits no assumption, finally if `is_final`."""

    value: Value | None
    explanation: str
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The result of all rounds: `agreed` of `rounds` found `value` (None: not settled)."""

    value: Value | None
    explanation: str
    agreed: int = 1
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """The finding of a probe. `value` is None if the question is open or was not asked; `explanation` then says why.

    `dollars` is the bill of the answered calls. `run` is the nonce of all its prompts.
    """

    probe: str
    question: str
    model: str
    host: str
    value: Value | None
    explanation: str
    switch: str | None = None
    agreed: int = 0
    rounds: int = 0
    calls: tuple[AnsweredCall, ...] = ()
    dollars: Decimal = ZERO
    run: str = ""

    @property
    def verdict(self) -> str:
        """The value in words, or "not settled"."""
        if self.value is None:
            return NOT_SETTLED
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)

    @property
    def line(self) -> str:
        """One line for the user."""
        sure = f" ({self.agreed} of {self.rounds} rounds)" if self.value is not None and self.rounds > 1 else ""
        return f"{self.probe}: {self.verdict}{sure}, {len(self.calls)} calls, ${self.dollars:.4f}: {self.explanation}"
