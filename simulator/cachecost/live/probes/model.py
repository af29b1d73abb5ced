"""What probes are made of: a question, what it costs at most, the calls that were made, and what they say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from cachecost.ledger import ZERO
from cachecost.providers.prices import Prices
from cachecost.providers.usage import Usage

if TYPE_CHECKING:
    from cachecost.live.probes.bench import Bench

NOT_SETTLED = "not settled"
SETTLE_S = 5.0
"""Seconds between a write and the read that relies on it: a fresh entry is not always readable at once (rule 14)."""
Value = str | bool | int


class Unsettled(Exception):
    """A probe cannot tell; the text says why. Never a fault of the one who asked."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One answered call of a probe: its bill, its start (seconds since the epoch), seconds to the first token."""

    usage: Usage
    start: float
    first_token_s: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What one round says. `value` None: it fits no reading of the rule; with `is_final` no round will change that."""

    value: Value | None
    told: str
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """What all rounds say together: `agreed` of `rounds` found `value` (None: not settled). `told` has the numbers."""

    value: Value | None
    told: str
    agreed: int = 1
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class Probe:
    """A small sequence of real calls that settles one question.

    `sizes` are pairs: so many calls at most, whose prompts are at most so many tokens longer than the model's
    minimum. It waits `lives` lifetimes of a 5m entry and `settles` times SETTLE_S, at most. `output_tokens` may
    be written in all calls together besides one token a call. `switch` is the switch of the rulebook that
    it settles (None: it is evidence only).
    """

    name: str
    question: str
    run: Callable[[Bench], Awaitable[Answer]]
    sizes: tuple[tuple[int, int], ...]
    settles: int = 0
    lives: float = 0.0
    output_tokens: int = 0
    uses_1h: bool = False
    switch: str | None = None
    reaches: int = 0
    """Tokens that the longest prompts have at least, whatever the model's minimum is believed to be."""

    @property
    def calls(self) -> int:
        return sum(calls for calls, _ in self.sizes)


@dataclass(frozen=True, slots=True)
class PricedProbe:
    """A probe, and the most it can take: calls, tokens over all calls, dollars, seconds of waiting.

    `minimum` is the believed minimum of `model` that its prompts are sized for (tokens), `ttl_s` the believed
    lifetime of a 5m entry, `lookback` the believed window in positions.
    """

    probe: Probe
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    dollars: Decimal
    wait_s: float
    minimum: int
    ttl_s: float
    lookback: int
    prices: Prices

    @property
    def told(self) -> str:
        """One line for people, before anything is sent."""
        return (
            f"{self.probe.name}: at most {self.calls} calls, {self.input_tokens:,} input tokens, "
            f"${self.dollars:.4f}, {self.wait_s:,.0f} s of waiting"
        )


@dataclass(frozen=True, slots=True)
class Finding:
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
    calls: tuple[Taken, ...] = ()
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
