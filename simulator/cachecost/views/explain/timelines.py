"""The prompt timelines of an explanation: what was billed, where there are bills; with what was paid again above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount, session_key
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.bill.timeline import call_class_costs, session_timelines
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call, Call
from cachecost.conversations.input_files import BilledCall
from cachecost.conversations.start_times import RecordedSessions
from cachecost.ledger.findings import Explanation
from cachecost.ledger.rows import CallRow, Cost
from cachecost.providers.usage import ZERO
from cachecost.simulation.engine import SimulatedCall
from cachecost.views.bill.page import session_timeline
from cachecost.views.bill.words import project_names, session_names
from cachecost.views.timeline.columns import MOST, CallColumn, most_spots, rewritten_by_call
from cachecost.views.timeline.picture import TimelineScale, TimelineView, longest_prompt, timeline_view, usage_sentence

MOST_SESSIONS = 4


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
    keys = sorted(paid, key=lambda key: (-paid[key], key))[:MOST_SESSIONS]
    calls, folders = session_timelines(account, keys), project_names(projects.values())
    names = session_names(paid)
    return [
        session_timeline(
            f"timeline-{number}-{place}",
            " · ".join(filter(None, (names[key], folders[projects[key]]))),
            calls[key],
            most_spots(len(keys) - 1) if place else MOST,
            is_open=not place,
        )
        for place, key in enumerate(keys)
    ]


def workload_timeline(
    number: int, explanation: Explanation, calls: Sequence[Call], made: Sequence[SimulatedCall], prices: CallPrices
) -> list[TimelineView]:
    """The calls of a log or of a strategy, in order; `made` are their replay, which knows where breakpoints stand."""
    again = rewritten_by_call(explanation)
    bills = _bills(calls) if explanation.billed is not None else [None] * len(calls)
    columns = [
        _column(place, call, one, bill, prices, again)
        for place, (call, one, bill) in enumerate(zip(calls, made, bills, strict=True), 1)
    ]
    if not columns:
        return []
    usage = sum((column.row.usage for column in columns[1:]), columns[0].row.usage)
    cost = sum((column.row.cost.total for column in columns), ZERO)
    says = usage_sentence(len(columns), usage, cost if all(one.row.is_priced for one in columns) else None)
    says += " billed" if explanation.billed is not None else " simulated"
    scale = TimelineScale(longest_prompt(columns))
    return [timeline_view(explanation.strategy or "calls", f"timeline-{number}-0", says, columns, scale)]


def _bills(calls: Sequence[Call]) -> list[BilledCall | None]:
    return RecordedSessions("").add_all(call for call in calls if isinstance(call, Call))


def _column(
    place: int,
    call: Call,
    made: SimulatedCall,
    bill: BilledCall | None,
    prices: CallPrices,
    rewritten: Mapping[int, Decimal],
) -> CallColumn:
    number = call.number or place
    row = replace(made.row, call=number)
    again = rewritten.get(number, ZERO)
    return CallColumn(_billed_row(row, bill, prices) if bill else row, made.timeline, rewritten=again)


def _billed_row(row: CallRow, bill: BilledCall, prices: CallPrices) -> CallRow:
    """The row with what was billed; how that divides among layers is known where the replay is exact."""
    costs = call_class_costs(bill, prices)
    billed = replace(row, usage=bill.usage, cost=Cost(**costs), is_priced=bool(costs), error=None)
    return billed if bill.usage == row.usage else replace(billed, by_layer={}, cost_by_layer={})
