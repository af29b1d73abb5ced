"""The tables of a bill: the causes of rewrites, and its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.summary import PERIODS, BillRow, BillSummary, CauseTotal
from cachecost.base.formatting import CENTS, dollar_column, dollars, percent_column, token_column
from cachecost.base.time_zones import zone_name
from cachecost.caches.causes import Cause
from cachecost.providers.usage import ZERO
from cachecost.views.bill.words import cause_name, pauses, project_names, session_names, short_cause
from cachecost.views.tables.fitting import shorten_middle
from cachecost.views.tables.table import COMPARISON, COUNT, DETAIL, Column, Table

CHANGED = "prefix changed within the TTL"
NOT_CHANGES: tuple[Cause, ...] = (
    *("ttl_expired", "cold_start", "model_changed", "speed_changed", "concurrent_write", "billed_not_explained"),
)
"""Causes that stand for themselves; the others are changes of the prefix."""
MOST = "most"
PROJECT_CELLS = 24


@dataclass(frozen=True, slots=True)
class CauseLine:
    """A line of the table of causes: a cause, or the sum of those that are indented below it."""

    name: str
    causes: tuple[CauseTotal, ...]
    is_part: bool = False

    @property
    def times(self) -> int:
        return sum(one.times for one in self.causes)

    @property
    def tokens(self) -> int:
        return sum(one.tokens for one in self.causes)

    @property
    def cost(self) -> Decimal:
        return sum((one.cost for one in self.causes), ZERO)


def cause_lines(summary: BillSummary) -> list[CauseLine]:
    """The causes, the most expensive first; several changes of the prefix are one line with their parts below it."""
    totals = summary.total.ranked_causes
    changes = tuple(one for one in totals if one.cause not in NOT_CHANGES)
    has_sum = len(changes) > 1
    alone = [one for one in totals if not has_sum or one.cause in NOT_CHANGES]
    lines = [CauseLine(cause_name(one.cause), (one,)) for one in alone]
    if has_sum:
        lines.append(CauseLine(CHANGED, changes))
    return [line for top in sorted(lines, key=_rank) for line in _with_parts(top)]


def _rank(line: CauseLine) -> tuple[Decimal, int, str]:
    return (-line.cost, -line.tokens, line.name)


def _with_parts(line: CauseLine) -> Iterator[CauseLine]:
    yield line
    if line.name == CHANGED:
        yield from (CauseLine(cause_name(one.cause), (one,), is_part=True) for one in line.causes)


def causes_table(summary: BillSummary, rewrites: Sequence[BilledRewrite]) -> Table:
    """A row a cause, the most expensive first; the note is its most expensive example."""
    lines = cause_lines(summary)
    indent = "  "
    return Table(
        [
            Column("cause", "cause", [indent * one.is_part + one.name for one in lines], right=False),
            Column("times", "times", [f"{one.times:,} ×" for one in lines]),
            Column("cost", "cost", dollar_column([one.cost for one in lines])),
            Column("tokens", "tokens", token_column([one.tokens for one in lines]), rank=COUNT),
            Column("note", "", note_cells(lines, rewrites), right=False, rank=COMPARISON),
        ],
        "What was written again although it had been cached",
    )


def note_cells(lines: Sequence[CauseLine], rewrites: Sequence[BilledRewrite]) -> list[str]:
    """What to say beside each line; nothing beside a sum."""
    by_cause: dict[Cause, list[BilledRewrite]] = defaultdict(list)
    for one in rewrites:
        by_cause[one.cause].append(one)
    names = session_names([one.call.session for one in rewrites])
    causes = [None if line.name == CHANGED else line.causes[0].cause for line in lines]
    return [_example(by_cause[cause], names) if cause else "" for cause in causes]


def _example(rewrites: Sequence[BilledRewrite], names: Mapping[str, str]) -> str:
    """The most expensive rewrite of a cause; "" without any."""
    if not rewrites:
        return ""
    first = max(rewrites, key=lambda one: (one.cost or 0, one.tokens))
    most = f"largest: {dollars(first.cost, CENTS)}; " if len(rewrites) > 1 else ""
    session = f" (session {names[first.call.session]})" if first.call.session else ""
    is_unknown = first.cause == "billed_not_explained" and not first.file.has_requests
    return f"{'transcript does not show it; ' if is_unknown else ''}{most}{first.words}{session}"


def rows_table(
    summary: BillSummary, rewrites: Sequence[BilledRewrite], most: int | None = None, project_cells: int = PROJECT_CELLS
) -> Table:
    """A row a session, project, day …"""
    rows, by = summary.rows[:most], summary.by
    by_row = _rewrites_by_session(rewrites) if by == "session" else {}
    projects = project_names(row.project for row in summary.rows)
    heading = f"{by} ({zone_name(summary.zone)})" if by in PERIODS else by
    columns = [Column("key", heading, row_names(summary)[:most], right=False)]
    if by == "session":
        cells = [shorten_middle(projects[row.project], project_cells) for row in rows]
        columns += [Column("project", "project", cells, right=False, rank=COMPARISON)] if any(cells) else []
    columns += [
        Column("calls", "calls", [f"{row.calls:,}" for row in rows], rank=COUNT),
        Column("hit_rate", "hit rate", percent_column([row.hit_rate for row in rows]), rank=COMPARISON),
        Column("cost", "cost", dollar_column([known_cost(row) for row in rows])),
        Column("rewritten", "rewritten", dollar_column([row.rewritten for row in rows])),
        Column(MOST, "main cause", [main_cause(row, by_row.get(row.key, [])) for row in rows], right=False),
    ]
    if by != "model":
        columns.append(Column("model", "models", [", ".join(row.models) for row in rows], right=False, rank=DETAIL))
    return Table(columns, f"The bill by {by}")


def known_cost(row: BillRow) -> Decimal | None:
    """USD of a row; None where no call of it has a price."""
    return None if row.calls == row.unpriced else row.cost


def row_names(summary: BillSummary) -> list[str]:
    """The first cell of each row."""
    names: Mapping[str, str] = {}
    if summary.by == "session":
        names = session_names(row.key for row in summary.rows)
    elif summary.by == "project":
        names = project_names(row.key for row in summary.rows)
    return [names.get(row.key, row.key) or "unknown" for row in summary.rows]


def _rewrites_by_session(rewrites: Sequence[BilledRewrite]) -> dict[str, list[BilledRewrite]]:
    found: dict[str, list[BilledRewrite]] = defaultdict(list)
    for one in rewrites:
        found[one.call.session or one.file.path].append(one)
    return found


def main_cause(row: BillRow, rewrites: Sequence[BilledRewrite]) -> str:
    """The most expensive cause of a row, and how often; of pauses their lengths."""
    totals = row.ranked_causes
    if not totals:
        return ""
    first = totals[0]
    idle = pauses([one for one in rewrites if one.cause == first.cause]) if first.cause == "ttl_expired" else ""
    return f"{short_cause(first.cause)} {first.times:,} × {idle}".rstrip()
