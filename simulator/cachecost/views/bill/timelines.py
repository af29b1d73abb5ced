"""A billed session as a prompt timeline: what its calls read and wrote, and the dollars that were rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.analysis.bill.timeline import LONG_IDLE_S, TimelineCall, fold_timeline
from cachecost.base.formatting import CENTS, count_text, dollars, duration, percent
from cachecost.ledger.rows import CallRow, Cost
from cachecost.ledger.timelines import EMPTY_TIMELINE, CallTimeline
from cachecost.providers.usage import ZERO
from cachecost.views.bill.session import agent_name, calls_table, rewrite_words, what_came_before
from cachecost.views.bill.words import clock, short_cause
from cachecost.views.tables.table import Column, Table
from cachecost.views.timeline.columns import CallColumn
from cachecost.views.timeline.picture import TimelineScale, TimelineView, longest_prompt, timeline_view


def session_timeline(
    anchor: str, name: str, calls: Sequence[TimelineCall], spots: int, *, is_open: bool
) -> TimelineView:
    """The picture of a session. A person's words are not in it."""
    columns = [billed_column(one) for one in calls]
    times = list(dict.fromkeys(clock(one.call.start)[:16] for one in (calls[0], calls[-1]))) if calls else []
    scale = TimelineScale(longest_prompt(columns), spots=spots)
    says = session_sentence(calls)
    return timeline_view(name, anchor, says, columns, scale, is_open=is_open, table=happenings_table(calls), axis=times)


def billed_column(one: TimelineCall) -> CallColumn:
    """A billed call as a column; where its breakpoints were is not in a bill."""
    call, paid = one.call, one.dollars
    written = paid.written + paid.rewritten
    cost = Cost(read=paid.read, write_5m=written, input=paid.uncached, output=paid.output, fees=paid.fees)
    row = CallRow(
        call=one.number,
        start=call.start or 0.0,
        timestamp=None,
        strategy="",
        model=call.model,
        usage=call.usage,
        cost=cost,
        cause=None,
        by_layer={},
        cost_by_layer={},
        is_priced=one.cost is not None,
    )
    is_human = "human" in call.events and not one.agent_number
    place = " · ".join(filter(None, (clock(call.start), agent_name(one))))
    timeline = CallTimeline(is_human=True) if is_human else EMPTY_TIMELINE
    return CallColumn(row, timeline, rewritten=paid.rewritten, place=place, words=_happened(one))


def session_sentence(calls: Sequence[TimelineCall]) -> str:
    """The picture in one sentence."""
    cost = sum((one.cost or ZERO for one in calls), ZERO)
    again = sum((one.dollars.rewritten for one in calls), ZERO)
    words = f"{dollars(cost, CENTS)} in {count_text(len(calls), 'call')}"
    if not again:
        return f"{words}, nothing rewritten"
    worst = max(calls, key=lambda one: one.dollars.rewritten)
    share = f" ({percent(again / cost)})" if cost else ""
    most = f"{'most' * (sum(1 for one in calls if one.rewrite) > 1)} at call {worst.number:,}".strip()
    return f"{words}, {dollars(again, CENTS)}{share} of it rewritten, {most} ({short_cause(worst.cause)})"


def happenings_table(calls: Sequence[TimelineCall]) -> Table:
    """The rows of `bill --session` with a column for what happened. A person's words are not in it."""
    groups = list(fold_timeline(calls))
    words = [happening(group[0]) if len(group) == 1 else "each read all that was cached" for group in groups]
    columns = [*calls_table(groups).columns, Column("happened", "what happened", words, right=False)]
    return Table(columns, "Call by call; times in UTC")


def happening(one: TimelineCall) -> str:
    """What came before a call, and what it wrote again."""
    rewritten = rewrite_words(one.rewrite) if one.rewrite else ""
    return "; ".join(filter(None, (what_came_before(one, {}, one.call.model), rewritten)))


def _happened(one: TimelineCall) -> str:
    """The same behind the pause before it."""
    idle = one.idle_s or 0.0
    pause = f"idle for {duration(idle)}" if idle >= LONG_IDLE_S else ""
    return "; ".join(filter(None, (pause, happening(one))))
