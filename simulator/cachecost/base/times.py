"""Times: seconds since the epoch inside, ISO 8601 outside."""

from __future__ import annotations

from datetime import UTC, date, datetime, tzinfo

EARLIEST = datetime(1, 1, 1, tzinfo=UTC).timestamp()
LATEST = datetime(9000, 1, 1, tzinfo=UTC).timestamp()


def seconds(text: str, zone: tzinfo = UTC) -> float:
    """Seconds since the epoch of an ISO 8601 time of the years 1 to 8999; one without a zone is in `zone` (rule 11).

    Raises ValueError. The simulation continues after the last call, so the years up to 9999 stay free.
    """
    moment = datetime.fromisoformat(text)
    at = (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    if not EARLIEST <= at < LATEST:
        raise ValueError(f"{text!r} is not in the years 1 to 8999")
    return at


def iso(at: float) -> str:
    """`at` in UTC with microseconds and Z: one spelling for one moment. Raises ValueError beyond year 9999."""
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except OverflowError as error:
        raise ValueError(f"at={at!r}: no such time") from error
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def day_of(at: float) -> date:
    """The day, in UTC, that picks rules and prices."""
    return datetime.fromtimestamp(at, UTC).date()


def midnight(day: date) -> float:
    """When a day begins in UTC, in seconds since the epoch."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def known_time(at: float | None) -> float | None:
    """A time of the years 1 to 8999; None for any other, which is none."""
    return at if at is not None and EARLIEST <= at < LATEST else None


def iso_milliseconds(at: float) -> str:
    """`at` in UTC with milliseconds and its zone, for a time that a simulation made up."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
