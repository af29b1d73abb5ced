"""Where a probe works: it sends within what was priced, waits, and takes down every bill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.live.clock import Clock
from cachecost.live.driver.model import CallFailed, Sender, Sent
from cachecost.live.probes.model import SETTLE_S, PricedProbe, Taken, Unsettled

MARGIN = 64
"""Tokens that a bill may be above what count_tokens said beforehand."""
REFUSED = 400


class Bench:
    """Sends the bodies of one probe. `nonce` stands in all of them, so that no earlier run's entry helps."""

    def __init__(self, sender: Sender, clock: Clock, priced: PricedProbe, nonce: str) -> None:
        self.priced = priced
        self.taken: list[Taken] = []
        self.waited_s = 0.0
        self._sender = sender
        self._clock = clock
        self._nonce = nonce
        self._number = 0
        self._calls = priced.calls
        self._input = priced.input_tokens
        self._output = priced.output_tokens

    def fresh(self) -> str:
        """A beginning that no other body of any run has."""
        self._number += 1
        return f"Run {self._nonce}, {self.priced.probe.name}, part {self._number}."

    async def count(self, body: Mapping[str, Any]) -> int:
        """Input tokens of a body, free of charge."""
        return await self._sender.count({"model": self.priced.model, **body})

    async def send(self, body: Mapping[str, Any]) -> Sent:
        """Send a body for one token of output, if it says nothing else. Raises Unsettled beyond what was priced."""
        whole = {"model": self.priced.model, "max_tokens": 1, **body}
        tokens = await self.count(body) + MARGIN
        if not self._calls or tokens > self._input or whole["max_tokens"] > self._output:
            raise Unsettled(f"it would take more than the {self.priced.calls} calls and tokens that were priced")
        sent = await self._sender.send(whole)
        self.taken.append(Taken(sent.usage, sent.start, sent.first_token_s))
        self._calls -= 1
        self._input -= tokens
        self._output -= whole["max_tokens"]
        return sent

    def uncached(self) -> Unsettled:
        """What to say where a fresh prefix, longer than the believed minimum, was not cached."""
        words = f"a fresh prefix of more than {self.priced.minimum} tokens was not cached"
        return Unsettled(f"{words}: first ask the probe minimum, then run again with --rules FILE")

    async def tried(self, body: Mapping[str, Any]) -> Sent | None:
        """As `send`; None where the API refuses such a body, which costs nothing."""
        try:
            return await self.send(body)
        except CallFailed as error:
            if error.status != REFUSED:
                raise
            return None

    async def settle(self) -> None:
        """Wait until what was written can surely be read."""
        await self._sleep(SETTLE_S)

    async def wait(self, seconds: float) -> None:
        await self._sleep(seconds)

    async def until(self, when: float) -> None:
        """Wait until `when`, in seconds since the epoch."""
        await self._sleep(when - self._clock.now())

    async def _sleep(self, seconds: float) -> None:
        if seconds > 0:
            self.waited_s += seconds
            await self._clock.sleep(seconds)
