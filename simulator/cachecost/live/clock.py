"""What time it is, for those who talk to a network: the only clock of the house.

asyncio is imported where somebody waits: `cachecost --help` loads this module, too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Protocol

CLOCKS = "'real', a factor like 'x60' (an hour in a minute), or a step like '+2s' (2 s between calls)"


class Clock(Protocol):
    """Seconds since the epoch, as the simulated cache counts them."""

    def now(self) -> float:
        """The time at which a call starts. Calls that ask one after another never get an earlier time."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait until so many of these seconds have passed."""
        ...


class ScaledClock:
    """Begins at `start` (None: now) and runs `factor` times as fast as the wall's clock. Factor 1 is real time."""

    def __init__(
        self, factor: float = 1.0, start: float | None = None, wall: Callable[[], float] = time.monotonic
    ) -> None:
        self._factor = factor
        self._wall = wall
        self._zero = wall()
        self._start = time.time() if start is None else start

    def now(self) -> float:
        return self._start + (self._wall() - self._zero) * self._factor

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds / self._factor)


class SteppingClock:
    """Begins at `start` and goes on by `step_s` for each call, whatever the wall says: same calls, same times."""

    def __init__(self, step_s: float = 2.0, start: float = 0.0) -> None:
        self._step_s = step_s
        self._next = start

    def now(self) -> float:
        at, self._next = self._next, self._next + self._step_s
        return at

    async def sleep(self, seconds: float) -> None:
        """Nobody waits; the next call comes so much later."""
        import asyncio

        self._next += seconds
        await asyncio.sleep(0)


def clock_from(text: str, start: float | None = None) -> Clock:
    """The clock that `text` asks for: see CLOCKS. Raises ValueError."""
    if text == "real":
        return ScaledClock(1.0, start)
    if found := re.fullmatch(r"x(\d+(?:\.\d+)?)", text):
        if float(found[1]) > 0:
            return ScaledClock(float(found[1]), start)
    elif found := re.fullmatch(r"\+(\d+(?:\.\d+)?)s", text):
        return SteppingClock(float(found[1]), 0.0 if start is None else start)
    raise ValueError(f"expected {CLOCKS}; got '{text}'")
