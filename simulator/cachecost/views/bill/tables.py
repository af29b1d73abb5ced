"""The tables of a bill: the causes of rewrites, its rows, and the calls of a session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.summary import BillRow, BillSummary
from cachecost.base.formatting import dollar_column, percent_column, token_column
from cachecost.caches.causes import Cause
from cachecost.views.bill.words import cause_name, pauses, short_project, short_session
from cachecost.views.tables.table import COMPARISON, COUNT, DETAIL, Column, Table


def causes_table(summary: BillSummary, rewrites: Sequence[BilledRewrite], advice: dict[Cause, str]) -> Table:
    """A row a cause, the most expensive first; `advice` is what would have saved how much."""
    totals = summary.total.ranked_causes
    by_cause: dict[Cause, list[BilledRewrite]] = defaultdict(list)
    for one in rewrites:
        by_cause[one.cause].append(one)
    return Table(
        [
            Column("cause", "written again because", [cause_name(one.cause) for one in totals], right=False),
            Column("times", "times", [f"{one.times:,} ×" for one in totals]),
            Column("cost", "cost", dollar_column([one.cost for one in totals])),
            Column("tokens", "tokens", token_column([one.tokens for one in totals]), rank=COUNT),
            Column(
                "note",
                "",
                [advice.get(one.cause) or _example(by_cause[one.cause]) for one in totals],
                right=False,
                rank=COMPARISON,
            ),
        ],
        "What was written again although it had been cached",
    )


def _example(rewrites: Sequence[BilledRewrite]) -> str:
    """The most expensive rewrite of a cause."""
    first = max(rewrites, key=lambda one: (one.cost or 0, one.tokens))
    return f"{first.words} (session {short_session(first.call.session)})" if first.call.session else first.words


def rows_table(summary: BillSummary, rewrites: Sequence[BilledRewrite], most: int | None = None) -> Table:
    """A row a session, project, day …"""
    rows = summary.rows[:most]
    by_row = _rewrites_by_session(rewrites) if summary.by == "session" else {}
    columns = [Column("key", summary.by, [_name(row, summary.by) for row in rows], right=False)]
    if summary.by == "session":
        columns.append(
            Column("project", "project", [short_project(row.project) for row in rows], right=False, rank=COMPARISON)
        )
    columns += [
        Column("calls", "calls", [f"{row.calls:,}" for row in rows], rank=COMPARISON),
        Column("hit_rate", "hit rate", percent_column([row.hit_rate for row in rows]), rank=COMPARISON),
        Column("cost", "cost", dollar_column([row.cost for row in rows])),
        Column("rewritten", "rewritten", dollar_column([row.rewritten for row in rows])),
        Column("most", "most of it", [_main_cause(row, by_row.get(row.key, [])) for row in rows], False, COUNT),
        Column("model", "models", [", ".join(row.models) for row in rows], False, DETAIL),
    ]
    return Table(columns, f"The bill by {summary.by}")


def _name(row: BillRow, by: str) -> str:
    if by == "session":
        return short_session(row.key)
    return (short_project(row.key) if by == "project" else row.key) or "unknown"


def _rewrites_by_session(rewrites: Sequence[BilledRewrite]) -> dict[str, list[BilledRewrite]]:
    found: dict[str, list[BilledRewrite]] = defaultdict(list)
    for one in rewrites:
        found[one.call.session or one.file.path].append(one)
    return found


def _main_cause(row: BillRow, rewrites: Sequence[BilledRewrite]) -> str:
    """The most expensive cause of a row, and how often; of pauses their lengths."""
    totals = row.ranked_causes
    if not totals:
        return ""
    first = totals[0]
    idle = pauses([one for one in rewrites if one.cause == first.cause]) if first.cause == "ttl_expired" else ""
    return f"{cause_name(first.cause)} {first.times:,} × {idle}".rstrip()
