"""The prompt timelines of an explanation: what was billed, where there are bills; with what was paid again above."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount, session_key
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.bill.timeline import call_class_costs, session_timelines
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import BilledCall
from cachecost.conversations.start_times import RecordedSessions
from cachecost.ledger.findings import Explanation
from cachecost.ledger.rows import Cost
from cachecost.providers.usage import ZERO
from cachecost.simulation.engine import SimulatedCall
from cachecost.views.bill.page import session_views
from cachecost.views.bill.words import project_names, session_names
from cachecost.views.timeline.columns import CallColumn, rewritten_by_call
from cachecost.views.timeline.picture import TimelineScale, TimelineView, longest_prompt, timeline_view, usage_sentence


def account_timelines(number: int, account: BillAccount) -> list[TimelineView]:
    """The sessions that paid most to write again what had been cached; the first is open."""
    paid: dict[str, Decimal] = {}
    projects: dict[str, str] = {}
    for file, call in account.calls():
        key = session_key(file, call)
        paid.setdefault(key, ZERO)
        projects[key] = file.project
    for one in account.rewrites:
        paid[session_key(one.file, one.call)] += one.cost or ZERO
    keys = sorted(paid, key=lambda key: (-paid[key], key))[:4]
    calls, folders = session_timelines(account, keys), project_names(projects.values())
    names = session_names(paid)
    titles = [" · ".join(filter(None, (names[key], folders[projects[key]]))) for key in keys]
    titled = [(title, calls[key]) for title, key in zip(titles, keys, strict=True)]
    return session_views(f"timeline-{number}", titled, 0)


def workload_timeline(
    number: int, explanation: Explanation, calls: Sequence[Call], made: Sequence[SimulatedCall], prices: CallPrices
) -> list[TimelineView]:
    """The calls of a log or of a strategy, in order; `made` are their replay, which knows where breakpoints stand."""
    again = rewritten_by_call(explanation)
    bills: Sequence[BilledCall | None] = [None] * len(calls)
    if explanation.billed is not None:
        bills = RecordedSessions("").add_all(call for call in calls if not call.is_simulated)
    columns = []
    for place, (call, one, bill) in enumerate(zip(calls, made, bills, strict=True), 1):
        number = call.number or place
        row = replace(one.row, call=number)
        if bill:
            costs = call_class_costs(bill, prices)
            is_exact = bill.usage == row.usage  # only then is known how what was billed divides among layers
            row = replace(row, usage=bill.usage, cost=Cost(**costs), is_priced=bool(costs), error=None)
            row = row if is_exact else replace(row, by_layer={}, cost_by_layer={})
        columns.append(CallColumn(row, one.timeline, rewritten=again.get(number, ZERO)))
    if not columns:
        return []
    usage = sum((column.row.usage for column in columns[1:]), columns[0].row.usage)
    cost = sum((column.row.cost.total for column in columns), ZERO)
    says = usage_sentence(len(columns), usage, cost if all(one.row.is_priced for one in columns) else None)
    says += " billed" if explanation.billed is not None else " simulated"
    scale = TimelineScale(longest_prompt(columns))
    return [timeline_view(explanation.strategy or "calls", f"timeline-{number}-0", says, columns, scale)]
