"""When calls start: from their timestamps, or 2 s apart (rule 11)."""

from __future__ import annotations

from cachecost.base.times import seconds
from cachecost.prompts.wire import NotAMessage

SECONDS_BETWEEN_UNTIMED = 2.0


def parse_time(timestamp: str) -> float:
    """ISO 8601 -> seconds since the epoch; a time without a zone is UTC. Raises NotAMessage."""
    try:
        return seconds(timestamp)
    except ValueError:
        raise NotAMessage("timestamp", "an ISO 8601 time", timestamp) from None


class StartTimes:
    """The start of each call of a file. Rule 11: a call without a time starts 2 s after the one before it."""

    def __init__(self) -> None:
        self.last: float | None = None

    def next(self, timestamp: str | None, start: float | None = None) -> float:
        """Seconds since the epoch of the next call; without a timestamp, `start` if given. Raises NotAMessage."""
        if timestamp is not None:
            self.last = parse_time(timestamp)
        elif start is not None:
            self.last = start
        else:
            self.last = 0.0 if self.last is None else self.last + SECONDS_BETWEEN_UNTIMED
        return self.last

    def next_if_unusual(self, start: float, timestamp: str | None) -> float | None:
        """`start` if neither the timestamp nor rule 11 gives it; else None."""
        usual = self.next(timestamp)
        self.last = start
        return start if timestamp is None and start != usual else None
