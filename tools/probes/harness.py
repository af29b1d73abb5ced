"""Probes and their runs: a run sends within what was priced, waits, and keeps every bill."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from cachecost.live.clock import Clock
from cachecost.live.driver.budget import AnsweredCall, CallFailed, Sender
from cachecost.providers.prices import Prices
from tools.probes.model import SETTLE_S, ProbeAnswer, RoundResult, Unsettled

MARGIN = 64
"""Tokens by which a bill may exceed count_tokens."""
REFUSED = 400


@dataclass(frozen=True, slots=True)
class Probe:
    """A small sequence of real calls that settles one question.

    `sizes` are pairs: the most calls, and by how many tokens their prompts exceed the model's minimum at most. It waits
    at most `lives` TTLs of a 5m entry and `settles` times SETTLE_S. `output_tokens` is the output of all calls, in
    addition to one token per call. `switch` is the assumption of the rulebook that it settles (None: evidence only).
    """

    name: str
    question: str
    run: Callable[[ProbeRun], Awaitable[ProbeAnswer]]
    sizes: tuple[tuple[int, int], ...]
    settles: int = 0
    lives: float = 0.0
    output_tokens: int = 0
    uses_1h: bool = False
    switch: str | None = None
    reaches: int = 0
    """The least tokens of the longest prompts, regardless of the model's assumed minimum."""

    @property
    def calls(self) -> int:
        return sum(calls for calls, _ in self.sizes)


@dataclass(frozen=True, slots=True)
class PricedProbe:
    """A probe with upper bounds: calls, tokens over all calls, dollars, seconds of waiting.

    `minimum` is the assumed minimum of `model` that its prompts are sized for (tokens), `ttl_s` the assumed TTL of a 5m
    entry, `lookback` the assumed window in positions.
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
    def announcement(self) -> str:
        """One line for the user, before anything is sent."""
        return (
            f"{self.probe.name}: at most {self.calls} calls, {self.input_tokens:,} input tokens, "
            f"${self.dollars:.4f}, {self.wait_s:,.0f} s of waiting"
        )


class ProbeRun:
    """Sends the bodies of one probe. All contain `nonce`, so that they read no entry of an earlier run."""

    def __init__(self, sender: Sender, clock: Clock, priced: PricedProbe, nonce: str) -> None:
        self.priced = priced
        self.taken: list[AnsweredCall] = []
        self._sender = sender
        self._clock = clock
        self._nonce = nonce
        self._number = 0
        self._calls = priced.calls
        self._input = priced.input_tokens
        self._output = priced.output_tokens

    def fresh(self) -> str:
        """A first line that no other body of any run has."""
        self._number += 1
        return f"Run {self._nonce}, {self.priced.probe.name}, part {self._number}."

    async def count(self, body: Mapping[str, Any]) -> int:
        """Input tokens of a body, free of charge."""
        return await self._sender.count({"model": self.priced.model, **body})

    async def send(self, body: Mapping[str, Any]) -> AnsweredCall:
        """Send a body, for one token of output by default. Raises Unsettled beyond what was priced."""
        whole = {"model": self.priced.model, "max_tokens": 1, **body}
        tokens = await self.count(body) + MARGIN
        if not self._calls or tokens > self._input or whole["max_tokens"] > self._output:
            raise Unsettled(f"it would exceed the {self.priced.calls} calls and the tokens that were priced")
        sent = await self._sender.send(whole)
        self.taken.append(sent)
        self._calls -= 1
        self._input -= tokens
        self._output -= whole["max_tokens"]
        return sent

    def not_cached_error(self) -> Unsettled:
        """The error if a fresh prefix above the assumed minimum was not cached."""
        words = f"a fresh prefix of more than {self.priced.minimum} tokens was not cached"
        return Unsettled(f"{words}: run the probe minimum first, then run again with --rules FILE")

    async def send_unless_refused(self, body: Mapping[str, Any]) -> AnsweredCall | None:
        """As `send`; None if the API refuses the body, which costs nothing."""
        try:
            return await self.send(body)
        except CallFailed as error:
            if error.status != REFUSED:
                raise
            return None

    async def settle(self) -> None:
        """Wait until what was written can certainly be read."""
        await self._sleep(SETTLE_S)

    async def wait(self, seconds: float) -> None:
        await self._sleep(seconds)

    async def until(self, when: float) -> None:
        """Wait until `when`, in seconds since the epoch."""
        await self._sleep(when - self._clock.now())

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            await self._clock.sleep(seconds)


MOST = 3
ENOUGH = 2


async def ask_repeatedly(probe_run: ProbeRun, once: Callable[[ProbeRun], Awaitable[RoundResult]]) -> ProbeAnswer:
    """Two rounds, and a third if they differ. A round that failed counts as one without a value."""
    readings: list[RoundResult] = []
    while len(readings) < MOST and combine_rounds(readings).value is None:
        readings.append(await _round(probe_run, once))
        if readings[-1].is_final or _have_no_value(readings):
            break
    return combine_rounds(readings)


def _have_no_value(readings: list[RoundResult]) -> bool:
    """Whether two rounds have no value: a third would not help."""
    return len(readings) == ENOUGH and all(one.value is None for one in readings)


async def _round(probe_run: ProbeRun, once: Callable[[ProbeRun], Awaitable[RoundResult]]) -> RoundResult:
    try:
        return await once(probe_run)
    except Unsettled as error:
        return RoundResult(None, str(error))


def combine_rounds(readings: list[RoundResult]) -> ProbeAnswer:
    """The answer of all rounds; no value unless two agree."""
    for reading in readings:
        same = sum(other.value == reading.value for other in readings)
        if reading.value is not None and same >= ENOUGH:
            return ProbeAnswer(reading.value, reading.explanation, same, len(readings))
    explanations = list(dict.fromkeys(reading.explanation for reading in readings))
    return ProbeAnswer(None, "; another round: ".join(explanations), 0, len(readings))
