"""The page of `bill`: the answer, the causes, the dollars of each day and the most expensive sessions, in pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.advice import Advice
from cachecost.analysis.bill.summary import PERIODS, BillRow, summarize
from cachecost.analysis.bill.timeline import LONG_IDLE_S, TimelineCall, fold_timeline, session_timelines
from cachecost.base.formatting import CENTS, count_text, dollar_column, dollars, duration, percent, token_column
from cachecost.base.structs import replace
from cachecost.base.times import zone_name
from cachecost.base.version import __version__
from cachecost.ledger.results import EMPTY_TIMELINE, CallTimeline
from cachecost.ledger.rows import CallRow, Cost
from cachecost.providers.usage import ZERO
from cachecost.views.bill.json_output import how_words
from cachecost.views.bill.text import (
    accounted,
    agent_name,
    calls_table,
    is_human,
    list_price_note,
    rewrite_words,
    what_came_before,
)
from cachecost.views.bill.words import (
    caching_words,
    cause_lines,
    class_words,
    clock,
    note_cells,
    period,
    project_names,
    row_names,
    rows_table,
    short_cause,
)
from cachecost.views.html.frame import render_page
from cachecost.views.tables.table import Column, Table, word_column
from cachecost.views.timeline.columns import HEIGHT, MOST, CallColumn, gap_path, limit_spots, step_path
from cachecost.views.timeline.picture import TimelineScale, TimelineView, longest_prompt, timeline_key, timeline_view

FEWEST_UNITS = 6
"""Units that a picture is wide at least, so that a few bars are no walls."""


@dataclass(frozen=True, slots=True)
class StackedBar:
    """A bar: its parts in USD from the bottom up, and what it says."""

    parts: Sequence[Decimal]
    says: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """A picture with its words: the classes of its parts with their paths and names, and the table behind it.

    `gaps` is a path, too; empty where there is nothing. `axis` are the words below.
    """

    anchor: str
    title: str
    says: str
    width: int
    parts: list[tuple[str, str, str]]
    gaps: str
    bars: Sequence[StackedBar]
    top: str
    axis: Sequence[str]
    table: Table

    @property
    def height(self) -> int:
        """Units of the picture."""
        return HEIGHT

    @property
    def filled(self) -> int:
        """Percent of its width that bars take."""
        return round(100 * len(self.bars) / self.width)


TitledCalls = tuple[str, Sequence[TimelineCall]]


def session_views(anchor: str, sessions: Sequence[TitledCalls], first: int, zone: tzinfo = UTC) -> list[TimelineView]:
    """The pictures of sessions with their titles, numbered from `first` on; the first is open.

    Behind each are the rows of `bill --session` with what happened. A person's words are not in it.
    """
    views = []
    for number, (title, calls) in enumerate(sessions):
        columns = [billed_column(one, zone) for one in calls]
        times = list(dict.fromkeys(clock(one.call.start, zone)[:16] for one in (calls[0], calls[-1]))) if calls else []
        scale = TimelineScale(longest_prompt(columns), spots=limit_spots(len(sessions) - 1) if number else MOST)
        groups = list(fold_timeline(calls))
        words = [happening(group[0]) if len(group) == 1 else "each read all that was cached" for group in groups]
        happened = Column("happened", "what happened", words, right=False)
        columns_of_calls = calls_table(groups, zone).columns
        table = Table([*columns_of_calls, happened], f"Call by call; times in {zone_name(zone)}")
        name, says = f"{anchor}-{number + first}", session_sentence(calls)
        views.append(timeline_view(title, name, says, columns, scale, is_open=not number, table=table, axis=times))
    return views


def billed_column(one: TimelineCall, zone: tzinfo) -> CallColumn:
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
    place = " · ".join(filter(None, (clock(call.start, zone), agent_name(one))))
    timeline = CallTimeline(is_human=True) if is_human(one) else EMPTY_TIMELINE
    idle = one.idle_s or 0.0
    pause = f"idle for {duration(idle)}" if idle >= LONG_IDLE_S else ""
    return CallColumn(
        row, timeline, rewritten=paid.rewritten, place=place, words="; ".join(filter(None, (pause, happening(one))))
    )


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


def happening(one: TimelineCall) -> str:
    """What came before a call, and what it wrote again."""
    rewritten = rewrite_words(one.rewrite) if one.rewrite else ""
    return "; ".join(filter(None, (what_came_before(one, {}, one.call.model), rewritten)))


PARTS = (("read", "necessary"), ("rewritten", "rewritten"))
MOST_BARS = 186
"""Half a year of days."""


def days_chart(account: BillAccount, total: BillRow) -> BarChart | None:
    """The bars of the shortest periods that are not too many, without holes; None where no call has a time."""
    if total.first is None or total.last is None:
        return None
    first, last = (datetime.fromtimestamp(at, account.zone).date() for at in (total.first, total.last))
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    keys_by = {by: list(dict.fromkeys(day.strftime(form) for day in days)) for by, form in PERIODS.items()}
    by = next(by for by, keys in keys_by.items() if len(keys) <= MOST_BARS or by == "month")
    keys, summary = keys_by[by], summarize(account, by)
    rows = {row.key: row for row in summary.rows}
    bars = []
    for key in keys:
        if row := rows.get(key):
            again = f", {dollars(row.rewritten, CENTS)} of it rewritten" if row.rewritten else ""
            says = f"{key}: {dollars(row.cost, CENTS)} in {count_text(row.calls, 'call')}{again}"
            bars.append(StackedBar((row.necessary, row.rewritten), says))
        else:
            bars.append(StackedBar((ZERO, ZERO), f"{key}: no calls"))
    highest = max(sum(bar.parts, ZERO) for bar in bars)
    most = max(summary.rows, key=lambda row: row.cost)
    return BarChart(
        "days-chart",
        f"Dollars a {by}",
        f"{count_text(len(rows), by)} with calls; the most expensive is {most.key} with {dollars(most.cost, CENTS)}",
        max(len(bars), FEWEST_UNITS),
        bar_parts(bars, highest),
        gap_path(len(bars)),
        bars,
        dollars(highest),
        [keys[0]] if len(keys) == 1 else [keys[0], keys[-1]],
        rows_table(summary, []),
    )


def bar_parts(bars: Sequence[StackedBar], highest: Decimal) -> list[tuple[str, str, str]]:
    """Class, path and name of the parts that occur, the uppermost first."""
    found = []
    for number, (colour, name) in reversed(list(enumerate(PARTS))):
        if any(bar.parts[number] > 0 for bar in bars):
            tops = [round(sum(bar.parts[: number + 1], ZERO) * HEIGHT / highest) if highest else 0 for bar in bars]
            found.append((colour, step_path(tops), name))
    return found


TIMELINES = 8
LONGEST_NAME = 60
LATER = ("most", "calls", "hit_rate", "model")
"""Columns of the sessions that stand behind the dollars."""


def bill_page(account: BillAccount, again: str, advice: Sequence[Advice] = (), estimates_output: bool = True) -> str:
    """The whole page. `again` is the command that makes it."""
    summary = replace(summarize(account), estimates_output=estimates_output)
    rows = summary.rows[:TIMELINES]
    timeline_calls = session_timelines(account, [row.key for row in rows])
    projects, names = project_names(row.project for row in summary.rows), row_names(summary)
    titled = [
        (" · ".join(filter(None, (name, row.title, projects[row.project]))), timeline_calls[row.key])
        for name, row in zip(names, rows, strict=False)
    ]
    timelines = session_views("session", titled, 1, account.zone)
    total, lines = summary.total, cause_lines(summary)
    costs, counts = dollar_column([one.cost for one in lines]), token_column([one.tokens for one in lines])
    highest = max((one.cost for one in lines), default=ZERO)
    notes = note_cells(lines, account.rewrites)
    widths = [f"{float(100 * one.cost / highest) if highest else 0.0:.1f}" for one in lines]
    calls = f"{count_text(summary.sessions, 'session')} and {count_text(total.calls, 'call')}"
    necessary, saving = "nothing was spent re-caching what was already cached", None
    if total.rewritten:
        necessary = f"{dollars(total.necessary)} of it was necessary"
        share = f", {percent(total.rewritten / total.cost)} of the bill" if total.cost else ""
        saving = dollars(total.rewritten), f"was spent re-caching content that was already cached{share}"
    hit_rate = f"Cache hit rate {percent(total.hit_rate)}; {caching_words(total.saved_by_caching)}"
    changes = [
        word_column("change", [one.change for one in advice]),
        Column("saved", "saved", dollar_column([one.saved for one in advice])),
        word_column("how", [how_words(one) for one in advice]),
    ]
    sessions = rows_table(summary, account.rewrites, name_cells=LONGEST_NAME)
    return render_page(
        "bill.html",
        title=" · ".join(filter(None, ("Bill", period(total, account.zone)))),
        question="What did these sessions cost, and what of it was spent re-caching content that was already cached?",
        answer=f"{dollars(total.cost)} in {calls}; {necessary}.",
        saving=saving,
        more=[f"{line.rstrip('.')}." for line in (class_words(total), hit_rate, *accounted(summary)) if line],
        causes=list(zip(lines, costs, counts, widths, notes, strict=True)),
        changes=Table(changes, "Each alone, with everything else as it was") if advice else None,
        days=days_chart(account, total),
        # a narrow window shows the first columns: the answer comes before what may be compared
        sessions=replace(
            sessions, columns=sorted(sessions.columns, key=lambda one: LATER.index(one.key) if one.key in LATER else -1)
        ),
        timelines=timelines,
        key=timeline_key(timelines),
        note=list_price_note(total),
        again=again,
        version=__version__,
    )
