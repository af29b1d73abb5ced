"""What probes tell: the calls that were made, what a round says, what all say together, and the finding."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from cachecost.ledger.results import ZERO
from cachecost.live.driver.model import AnsweredCall

NOT_SETTLED = "not settled"
SETTLE_S = 5.0
"""Seconds between a write and the read that relies on it: a fresh entry is not always readable at once (rule 14)."""
Value = str | bool | int


class Unsettled(Exception):
    """A probe cannot tell; the text says why. Never a fault of the one who asked."""


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What one round says. `value` None: it fits no reading of the rule; with `is_final` no round will change that."""

    value: Value | None
    told: str
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What all rounds say together: `agreed` of `rounds` found `value` (None: not settled). `told` has the numbers."""

    value: Value | None
    told: str
    agreed: int = 1
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    """What a probe found. `value` is None where the question stays open, or was not asked; `told` then says why.

    `dollars` are those of the calls that were answered. `run` is the nonce of all its prompts.
    """

    probe: str
    question: str
    model: str
    host: str
    value: Value | None
    told: str
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
        """One line for people, when it is done."""
        sure = f" ({self.agreed} of {self.rounds} rounds)" if self.value is not None and self.rounds > 1 else ""
        return f"{self.probe}: {self.verdict}{sure}, {len(self.calls)} calls, ${self.dollars:.4f}: {self.told}"
