"""A session as bars, a call each: what its dollars paid for, and the pauses between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from cachecost.analysis.bill.timeline import LONG_IDLE_S, CallDollars, TimelineCall, fold_timeline
from cachecost.base.formatting import CENTS, count_text, dollars, duration, percent
from cachecost.providers.usage import ZERO
from cachecost.views.bill.bar_chart import Bar, BarChart, bar_chart
from cachecost.views.bill.session import agent_name, calls_table, rewrite_words, what_came_before
from cachecost.views.bill.words import clock, short_cause
from cachecost.views.tables.table import Column, Table

PARTS = (
    ("read", "read"),
    ("output", "output"),
    ("write_5m", "written"),
    ("input", "uncached"),
    ("write_1h", "rewritten"),
)
"""Colour class and name, from the bottom up."""
NOTHING: tuple[Decimal, ...] = (ZERO,) * len(PARTS)
MOST_BARS = 300


def session_chart(anchor: str, name: str, calls: Sequence[TimelineCall]) -> BarChart:
    """The picture of a session; in a long one a bar is several calls."""
    each = -(-len(calls) // MOST_BARS)
    groups = [calls[at : at + each] for at in range(0, len(calls), each)] if each else []
    bars = [bar for group in groups for bar in _bars(group)]
    thinned = f"A bar is {each} calls." if each > 1 else ""
    times = [clock(one.call.start)[:16] for one in (calls[0], calls[-1])] if calls else []
    return bar_chart(anchor, name, _says(calls), bars, PARTS, times, happenings_table(calls), thinned)


def _says(calls: Sequence[TimelineCall]) -> str:
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


def _bars(group: Sequence[TimelineCall]) -> Iterator[Bar]:
    """The bar of some calls, behind a gap where one of them came after a long pause."""
    idle = max((one.idle_s or 0.0 for one in group), default=0.0)
    if idle >= LONG_IDLE_S:
        yield Bar(NOTHING, f"idle for {duration(idle)}", is_pause=True)
    parts = [_in_order(one.dollars) for one in group]
    is_turn = any("human" in one.call.events and not one.agent_number for one in group)
    yield Bar([sum(amounts, ZERO) for amounts in zip(*parts, strict=True)], _bar_says(group), is_turn)


def _in_order(one: CallDollars) -> tuple[Decimal, ...]:
    return (one.read, one.output, one.written, one.uncached, one.rewritten)


def _bar_says(group: Sequence[TimelineCall]) -> str:
    first, last = group[0], group[-1]
    numbers = f"call {first.number:,}" if first is last else f"calls {first.number:,}–{last.number:,}"
    cost = sum((one.cost or ZERO for one in group), ZERO)
    parts = zip(*(_in_order(one.dollars) for one in group), strict=True)
    paid = [
        f"{name} {dollars(sum(amounts, ZERO))}" for (_, name), amounts in zip(PARTS, parts, strict=True) if any(amounts)
    ]
    lines = [f"{numbers} · {clock(first.call.start)} · {agent_name(first)} · {dollars(cost)}: {', '.join(paid)}"]
    lines += [words for one in group if (words := happening(one))]
    return "\n".join(lines)


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
