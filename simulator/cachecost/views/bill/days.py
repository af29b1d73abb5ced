"""The dollars of each day, week or month as bars: what was necessary, and what was rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.summary import PERIODS, BillRow, summarize
from cachecost.base.formatting import CENTS, count_text, dollars
from cachecost.providers.usage import ZERO
from cachecost.views.bill.bar_chart import BarChart, StackedBar, bar_chart
from cachecost.views.bill.tables import rows_table

PARTS = (("read", "necessary"), ("rewritten", "rewritten"))
MOST_BARS = 186
"""Half a year of days."""


def days_chart(account: BillAccount, total: BillRow) -> BarChart | None:
    """The bars of the shortest periods that are not too many, without holes; None where no call has a time."""
    if total.first is None or total.last is None:
        return None
    first, last = (datetime.fromtimestamp(at, account.zone).date() for at in (total.first, total.last))
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    by, keys = next(found for by in PERIODS if len((found := (by, _keys(days, by)))[1]) <= MOST_BARS or by == "month")
    summary = summarize(account, by)
    rows = {row.key: row for row in summary.rows}
    bars = [_bar(key, rows.get(key)) for key in keys]
    most = max(summary.rows, key=lambda row: row.cost)
    says = f"{count_text(len(rows), by)} with calls; the most expensive is {most.key} with {dollars(most.cost, CENTS)}"
    return bar_chart("days-chart", f"Dollars a {by}", says, bars, PARTS, _axis(keys), rows_table(summary, []))


def _keys(days: Sequence[date], by: str) -> list[str]:
    return list(dict.fromkeys(day.strftime(PERIODS[by]) for day in days))


def _axis(keys: Sequence[str]) -> Sequence[str]:
    return [keys[0]] if len(keys) == 1 else [keys[0], keys[-1]]


def _bar(key: str, row: BillRow | None) -> StackedBar:
    if row is None:
        return StackedBar((ZERO, ZERO), f"{key}: no calls")
    says = f"{key}: {dollars(row.cost, CENTS)} in {count_text(row.calls, 'call')}"
    if row.rewritten:
        says += f", {dollars(row.rewritten, CENTS)} of it rewritten"
    return StackedBar((row.necessary, row.rewritten), says)
