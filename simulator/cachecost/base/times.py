"""Times: seconds since the epoch inside, ISO 8601 outside; time zones: this machine's, and those that a user names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path

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


def iso_or_none(at: float | None) -> str | None:
    """As `iso`; None where the time is unknown."""
    return None if at is None else iso(at)


def day_of(at: float) -> date:
    """The day, in UTC, that picks rules and prices."""
    return datetime.fromtimestamp(at, UTC).date()


def midnight(day: date) -> float:
    """When a day begins in UTC, in seconds since the epoch."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def known_time(at: float | None) -> float | None:
    """A time of the years 1 to 8999; None for any other, which is none."""
    return at if at is not None and EARLIEST <= at < LATEST else None


def seconds_from_ms(milliseconds: float | None) -> float | None:
    """Seconds of a time in milliseconds since the epoch; None for an unknown one or one outside the years 1 to 8999."""
    return None if milliseconds is None else known_time(milliseconds / 1000)


def iso_milliseconds(at: float) -> str:
    """`at` in UTC with milliseconds and its zone, for a time that a simulation made up."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


UTC_NAMES = ("UTC", "Etc/UTC", "Zulu", "Etc/Zulu", "Universal", "GMT", "Etc/GMT")
LOCAL = "local"
LOCAL_FILE = Path("/etc/localtime")


def find_zone(name: str, environment: Mapping[str, str] = os.environ) -> tzinfo:
    """A zone by its name ("Europe/Berlin", "UTC"), or this machine's ("local"). Raises ValueError."""
    if name.lower() == LOCAL:
        return _local_zone(environment)
    if name.upper() == "UTC" or name in UTC_NAMES:
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"no time zone {name!r}") from None


def _local_zone(environment: Mapping[str, str]) -> tzinfo:
    """The zone that TZ names, else the one that the system is set to; without a name, the offset of today."""
    named = environment.get("TZ", "").removeprefix(":")
    if not named and LOCAL_FILE.is_symlink():
        named = LOCAL_FILE.resolve().as_posix().partition("/zoneinfo/")[2]
    try:
        if named:
            return find_zone(named, {})
    except ValueError:
        pass
    return datetime.now().astimezone().tzinfo or UTC


def zone_name(zone: tzinfo) -> str:
    """ "Europe/Berlin", "UTC", or an offset's own name."""
    return getattr(zone, "key", None) or str(zone)
