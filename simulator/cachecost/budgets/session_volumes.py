"""How many sessions a replay holds, and how many a day there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from cachecost.budgets.amounts import exact_share
from cachecost.conversations.calls import Call

FIRST_KNOWN = 10**8
"""Seconds since the epoch (1973): the starts of calls without times count from 0."""


@dataclass(frozen=True, slots=True)
class SessionVolume:
    """`sessions` in a replay, on so many `days` from the first to the last, counted in UTC. None: no times are known,
    or it is one session, which says nothing about a day.
    """

    sessions: int
    days: int | None

    def per_day(self, cost: Decimal, sessions_per_day: int | None) -> Decimal | None:
        """USD a day of what costs `cost`: at so many sessions a day, else at the recording's. None: unknown."""
        if sessions_per_day is not None:
            return exact_share(cost * sessions_per_day, self.sessions)
        return None if self.days is None else exact_share(cost, self.days)


def session_volume(calls: Sequence[Call]) -> SessionVolume:
    """The volume that calls show. Where not all of them name their session, they are one."""
    names = {call.session for call in calls}
    if len(names) < 2 or "" in names:
        return SessionVolume(1, None)
    starts = [call.start for call in calls]
    if min(starts) < FIRST_KNOWN:
        return SessionVolume(len(names), None)
    first, last = (datetime.fromtimestamp(start, UTC).date() for start in (min(starts), max(starts)))
    return SessionVolume(len(names), (last - first).days + 1)
