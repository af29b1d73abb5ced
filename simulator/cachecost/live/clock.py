"""Clocks: the only place where the package asks for the time, and callbacks that more than one folder takes.

asyncio is imported lazily, because `cachecost --help` loads this module.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Protocol

from cachecost.base.errors import Fault, InputError

Say = Callable[[str], None]
"""Prints a line for people."""


def ignore(*values: object) -> None:
    """The default of an optional callback."""


TODAY = "CACHECOST_TODAY"
"""The environment variable with the day that counts as today, like 2026-11-24: for output that stays the same."""
CLOCKS = "'real', a factor like 'x60' (an hour in a minute), or a step like '+2s' (2 s between calls)"


def today() -> date:
    """The user's own day; another one if `CACHECOST_TODAY` names it. Raises InputError where that is no date."""
    named = os.environ.get(TODAY)
    try:
        return date.fromisoformat(named) if named else date.today()  # noqa: DTZ011 - the user's own day
    except ValueError:
        raise InputError([Fault(TODAY, f"expected a date like 2026-11-24; got '{named}'")]) from None


class Clock(Protocol):
    """Seconds since the epoch, as the simulated cache counts them."""

    def now(self) -> float:
        """The start time of a call. It never goes back."""

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of this clock."""


class ScaledClock:
    """Starts at `start` (None: now) and runs `factor` times as fast as real time."""

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
    """Starts at `start` and advances by `step_s` for each call, so the same calls get the same times."""

    def __init__(self, step_s: float = 2.0, start: float = 0.0) -> None:
        self.step_s = step_s
        self._next = start

    def now(self) -> float:
        at, self._next = self._next, self._next + self.step_s
        return at

    async def sleep(self, seconds: float) -> None:
        import asyncio

        self._next += seconds
        await asyncio.sleep(0)


def clock_from(text: str, start: float | None = None) -> Clock:
    """The clock that `text` names: see CLOCKS. Raises ValueError."""
    if text == "real":
        return ScaledClock(1.0, start)
    if found := re.fullmatch(r"x(\d+(?:\.\d+)?)", text):
        if float(found[1]) > 0:
            return ScaledClock(float(found[1]), start)
    elif found := re.fullmatch(r"\+(\d+(?:\.\d+)?)s", text):
        return SteppingClock(float(found[1]), 0.0 if start is None else start)
    raise ValueError(f"expected {CLOCKS}; got '{text}'")


def moment(seconds: float) -> str:
    """Seconds since the epoch as ISO 8601, to the microsecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
