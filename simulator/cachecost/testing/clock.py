"""A clock for tests: it steps, and can be moved on."""

from __future__ import annotations

from cachecost.live.clock import Clock, SteppingClock, clock_from


class MovableClock(SteppingClock):
    """Goes on by `step_s` a call; `skip` lets a pause pass at once."""

    def skip(self, seconds: float) -> None:
        """The next call comes so many seconds later."""
        self._next += seconds


def movable(text: str, start: float) -> Clock:
    """The clock that `text` asks for; one that steps can be moved on. Raises ValueError."""
    made = clock_from(text, start)
    return MovableClock(made._step_s, start) if isinstance(made, SteppingClock) else made
