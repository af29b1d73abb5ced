"""The verdict on each limit and what changed since the baseline; dollars and shares in messages, with enough digits to
show on which side of a limit they are; how many sessions a replay holds, and how many a day there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from itertools import count
from typing import Literal

from cachecost.base.formatting import dollars, exact_dollars, percent
from cachecost.base.yaml_text import SourcePlace
from cachecost.conversations.calls import Call

EXACT_DIGITS = 200
"""Enough for any sum of dollars: nothing is rounded before it is compared."""
State = Literal["pass", "fail", "not_comparable"]
RANKS: Sequence[State] = ("fail", "not_comparable", "pass")
"""Broken budgets come first."""


def exact_share(part: Decimal | int, whole: Decimal | int) -> Decimal:
    """`part / whole`, with more digits than any sum of dollars has; as it is where `whole` is 1."""
    with localcontext(prec=EXACT_DIGITS):
        return Decimal(part) if whole == 1 else (Decimal(part) / Decimal(whole)).normalize()


def against(total: Decimal, before: Decimal, change: Decimal | None, limit: Decimal, day: date | None) -> str:
    """ "$26.02, 8 % more than the baseline of 2026-11-20 ($24.10)"."""
    now, then = apart(total, before)
    baseline = f"the baseline of {day}" if day else "the baseline"
    if change is None:
        return f"{now}, up from $0 in {baseline}"
    if not change:
        return f"{now}, the same as {baseline}"
    word = "more" if change > 0 else "less"
    return f"{now}, {percent_apart(abs(change), limit)} {word} than {baseline} ({then})"


def apart(one: Decimal, other: Decimal) -> tuple[str, str]:
    """Both amounts, to the last digit where rounding would make them look equal."""
    write = exact_dollars if one != other and dollars(one) == dollars(other) else dollars
    return write(one), write(other)


def percent_apart(share: Decimal, limit: Decimal) -> str:
    """`share` as percent, with as many places as it takes to stand on its side of `limit`."""
    if share == limit or percent(share) != percent(limit):
        return percent(share)
    with localcontext(prec=EXACT_DIGITS):
        rounded = ((share * 100).quantize(Decimal(1).scaleb(-places)) for places in count(1))
        return f"{next(shown for shown in rounded if (shown - limit * 100) * (share - limit) > 0)}%"


@dataclass(frozen=True, slots=True)
class CostChange:
    """Why calls cost more or less: `what` happened and its `effect`, in words; `call` is the first of them (from 1),
    `calls` how many, `cost` their dollars over those of the baseline, else of the same calls without the cause. `code`
    is that of `explain`, `block` where on the wire. An empty `what` stands for all other calls together."""

    call: int
    calls: int
    cost: Decimal
    what: str = ""
    effect: str = ""
    code: str = ""
    layer: str = ""
    block: str = ""
    last: int = 0
    """Where several calls share a row of the baseline: the last call that may be the first. 0: `call` it is."""
    search: tuple[str, ...] = ()
    """Texts to find its source line by (`source_lines.py`)."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one limit of one strategy. `limit` and `actual` (None: cannot be known) are exact: dollars, a
    share such as 0.05, breakpoints, positions, tokens written in vain, or calls at which a layer changed. `changes`
    tell why a budget broke; `place` is where the limit is written."""

    scenario: str
    strategy: str
    budget: str
    limit: Decimal
    actual: Decimal | None
    verdict: State
    message: str
    place: SourcePlace | None = None
    changes: tuple[CostChange, ...] = ()


def overall(verdicts: Iterable[Verdict]) -> State:
    """One word for all: a broken budget outweighs one that could not be checked."""
    states = {verdict.verdict for verdict in verdicts}
    return next((state for state in RANKS if state in states), "pass")


@dataclass(frozen=True, slots=True)
class SessionVolume:
    """`sessions` in a replay, on so many `days` (UTC) from the first to the last; None where no times are known, or for
    one session, which says nothing about a day."""

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
    if min(starts) < 10**8:  # seconds since the epoch (1973): the starts of calls without times count from 0
        return SessionVolume(len(names), None)
    first, last = (datetime.fromtimestamp(start, UTC).date() for start in (min(starts), max(starts)))
    return SessionVolume(len(names), (last - first).days + 1)
