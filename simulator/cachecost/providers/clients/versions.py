"""Versions of clients, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol, TypeVar

NUMBERS = re.compile(r"\d{1,9}")
LATEST = (10**9,)
"""Stands for a client that does not state its version: it is taken for the newest."""


class SinceVersion(Protocol):
    """A row that holds from a version on."""

    @property
    def since(self) -> str: ...


Row = TypeVar("Row", bound=SinceVersion)


def version_key(version: str | None) -> tuple[int, ...]:
    """The numbers of "2.1.330", for comparison; `LATEST` where there are none."""
    numbers = tuple(map(int, NUMBERS.findall((version or "").split("-")[0])))
    return numbers or LATEST


def row_at(rows: Iterable[Row], version: str | None) -> Row | None:
    """The row that holds at `version`: the latest that began by then. Rows may stand in any order."""
    key = version_key(version)
    begun = [row for row in rows if version_key(row.since) <= key]
    return max(begun, key=lambda row: version_key(row.since), default=None)
