"""The page of `bill`: the answer, the causes, the dollars of each day, the sessions, and the most expensive ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.advice import Advice
from cachecost.analysis.bill.summary import BillSummary, summarize
from cachecost.analysis.bill.timeline import session_timelines
from cachecost.base.formatting import count_text, dollar_column, dollars, percent, token_column
from cachecost.base.version import __version__
from cachecost.providers.usage import ZERO
from cachecost.views.bill.advice import how_words
from cachecost.views.bill.days import days_chart
from cachecost.views.bill.tables import cause_lines, note_cells, row_names, rows_table
from cachecost.views.bill.text import accounted, list_price_note
from cachecost.views.bill.timelines import session_timeline
from cachecost.views.bill.words import caching_words, class_words, period, project_names
from cachecost.views.html.frame import render_page
from cachecost.views.tables.table import Column, Table
from cachecost.views.timeline.columns import MOST, most_spots
from cachecost.views.timeline.picture import TimelineView, timeline_key

TIMELINES = 8
LONGEST_PROJECT = 60
LATER = ("most", "calls", "hit_rate", "model")
"""Columns of the sessions that stand behind the dollars."""
QUESTION = "What did these sessions cost, and what of it was spent re-caching content that was already cached?"


@dataclass(frozen=True, slots=True)
class CauseRow:
    """A row of the table of causes; `width` is the length of its bar in percent."""

    name: str
    is_part: bool
    times: str
    cost: str
    tokens: str
    width: str
    note: str


def bill_page(account: BillAccount, again: str, advice: Sequence[Advice] = (), estimates_output: bool = True) -> str:
    """The whole page. `again` is the command that makes it."""
    summary = replace(summarize(account), estimates_output=estimates_output)
    timelines = _timelines(account, summary)
    return render_page(
        "bill.html",
        title=" · ".join(filter(None, ("Bill", period(summary.total, account.zone)))),
        question=QUESTION,
        answer=_answer(summary),
        saving=_rewritten(summary),
        more=[f"{line.rstrip('.')}." for line in _facts(summary) if line],
        causes=_cause_rows(account, summary),
        changes=_changes(advice) if advice else None,
        days=days_chart(account, summary.total),
        sessions=_cost_first(rows_table(summary, account.rewrites, project_cells=LONGEST_PROJECT)),
        timelines=timelines,
        key=timeline_key(timelines),
        note=list_price_note(summary.total),
        again=again,
        version=__version__,
    )


def _answer(summary: BillSummary) -> str:
    total = summary.total
    calls, sessions = count_text(total.calls, "call"), count_text(summary.sessions, "session")
    if not total.rewritten:
        return f"{dollars(total.cost)} in {sessions} and {calls}; nothing was spent re-caching what was already cached."
    return f"{dollars(total.cost)} in {sessions} and {calls}; {dollars(total.necessary)} of it was necessary."


def _rewritten(summary: BillSummary) -> tuple[str, str] | None:
    """What was rewritten in large type, and its words."""
    total = summary.total
    if not total.rewritten:
        return None
    share = f", {percent(total.rewritten / total.cost)} of the bill" if total.cost else ""
    return dollars(total.rewritten), f"was spent re-caching content that was already cached{share}"


def _facts(summary: BillSummary) -> Iterator[str]:
    """What else is to be said of the total; some of it may be empty."""
    yield class_words(summary.total)
    yield _caching(summary)
    yield from accounted(summary)


def _caching(summary: BillSummary) -> str:
    total = summary.total
    return f"Cache hit rate {percent(total.hit_rate)}; {caching_words(total.saved_by_caching)}"


def _cause_rows(account: BillAccount, summary: BillSummary) -> list[CauseRow]:
    lines = cause_lines(summary)
    costs, counts = dollar_column([one.cost for one in lines]), token_column([one.tokens for one in lines])
    highest = max((one.cost for one in lines), default=ZERO)
    notes = note_cells(lines, account.rewrites)
    return [
        CauseRow(one.name, one.is_part, f"{one.times:,} ×", cost, tokens, f"{_share(one.cost, highest):.1f}", note)
        for one, cost, tokens, note in zip(lines, costs, counts, notes, strict=True)
    ]


def _changes(advice: Sequence[Advice]) -> Table:
    """What to change, and what it would have saved."""
    return Table(
        [
            Column("change", "change", [one.change for one in advice], right=False),
            Column("saved", "saved", dollar_column([one.saved for one in advice])),
            Column("how", "how", [how_words(one) for one in advice], right=False),
        ],
        "Each alone, with everything else as it was",
    )


def _share(part: Decimal, whole: Decimal) -> float:
    """In percent."""
    return float(100 * part / whole) if whole else 0.0


def _cost_first(table: Table) -> Table:
    """The answer before what may be compared: a narrow window shows the first columns."""
    return replace(
        table, columns=sorted(table.columns, key=lambda one: LATER.index(one.key) if one.key in LATER else -1)
    )


def _timelines(account: BillAccount, summary: BillSummary) -> list[TimelineView]:
    """The most expensive sessions, the first of them open."""
    rows = summary.rows[:TIMELINES]
    calls = session_timelines(account, [row.key for row in rows])
    projects, names = project_names(row.project for row in summary.rows), row_names(summary)
    titles = [" · ".join(filter(None, (name, projects[row.project]))) for name, row in zip(names, rows, strict=False)]
    spots = most_spots(len(rows) - 1)
    return [
        session_timeline(
            f"session-{number}", title, calls[row.key], MOST if number == 1 else spots, is_open=number == 1
        )
        for number, (row, title) in enumerate(zip(rows, titles, strict=True), 1)
    ]
