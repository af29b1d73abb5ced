"""Time zones: the one of this machine, and those that a user names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path

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
