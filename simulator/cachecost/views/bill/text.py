"""What `cachecost bill` prints for people: the total, what was written again and why, and a row a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import IO

from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.summary import BillRow, BillSummary
from cachecost.analysis.bill.unwritten import unwritten_cost
from cachecost.base.formatting import count_text, dollar_column, dollars, percent
from cachecost.views.bill.lines import (
    NARROWEST_PROSE,
    StyledLine,
    header_line,
    plain,
    print_lines,
    prose_width,
    row_lines,
    rows_with_prose,
    wrap_line,
    wrap_parts,
)
from cachecost.views.bill.tables import MOST, cause_lines, causes_table, note_cells, row_names, rows_table
from cachecost.views.bill.words import (
    LIST_PRICES,
    caching_words,
    charged_words,
    class_words,
    partial_output_words,
    period,
)
from cachecost.views.streams import report_console
from cachecost.views.tables.fitting import FittedTable, fit_table, hidden_note
from cachecost.views.tables.table import Table
from cachecost.views.tables.text import PIPE_WIDTH

ROWS_SHOWN = 10
EXAMPLES = "the most expensive of each cause"


def print_bill(
    summary: BillSummary,
    rewrites: Sequence[BilledRewrite],
    hints: Sequence[str],
    stream: IO[str],
    most: int | None = ROWS_SHOWN,
) -> None:
    """Print to `stream`; `hints` stand below the tables."""
    console = report_console(stream, PIPE_WIDTH)
    print_lines(console, bill_lines(summary, rewrites, hints, console.width, most))


def bill_lines(
    summary: BillSummary,
    rewrites: Sequence[BilledRewrite],
    hints: Sequence[str],
    width: int,
    most: int | None = ROWS_SHOWN,
) -> Iterator[StyledLine]:
    """The lines of a bill in a terminal of `width` cells."""
    yield from plain(wrap_parts(headline(summary), width))
    if not summary.rows:
        return
    if split := class_words(summary.total, "it"):
        yield from plain(wrap_parts(f"  {split}", width, "    "))
    causes = fit_causes(causes_table(summary, rewrites), width) if rewrites else None
    if causes:
        yield from plain(["", *wrap_line(rewritten_line(summary), width, "  ")])
        yield header_line(causes), "dim"
        notes = note_cells(cause_lines(summary), rewrites if prose_width(causes) else [])
        yield from plain(rows_with_prose(causes, notes))
    for line in accounted(summary):
        yield from plain(wrap_line(line, width, "  ", "    "))
    rows = fit_rows(rows_table(summary, rewrites, most), width)
    yield "", ""
    yield header_line(rows), "dim"
    yield from plain(row_lines(rows))
    more = len(summary.rows) - len(summary.rows[:most])
    if more:
        yield f"  … {count_text(more, f'more {summary.by}')}: --by {summary.by} shows all", ""
    yield "", ""
    for line in filter(None, hints):
        indent = " " * (len(line) - len(line.lstrip()))
        yield from plain(wrap_line(line.strip(), width, indent, f"{indent}  " if indent else ""))
    hidden = hidden_note([rows, *([causes] if causes else [])], "--csv F")
    for line in filter(None, (hidden, next_options(summary))):
        yield from plain(wrap_parts(line, width))


def fit_causes(table: Table, width: int) -> FittedTable:
    """The causes without their notes, which wrap beside them; notes that have no room count as hidden."""
    *columns, notes = table.columns
    fitted = fit_table(replace(table, columns=columns), width)
    if prose_width(fitted) or not any(notes.cells):
        return fitted
    return replace(fitted, hidden=[*fitted.hidden, replace(notes, header=EXAMPLES, cells=[" " * NARROWEST_PROSE])])


def fit_rows(table: Table, width: int) -> FittedTable:
    """The rows, without the lengths of pauses where anything would be hidden for them."""
    fitted = fit_table(table, width)
    if fitted.room >= 0 and not fitted.hidden:
        return fitted
    shorter = [
        replace(column, cells=[cell.partition(" (")[0] for cell in column.cells]) if column.key == MOST else column
        for column in table.columns
    ]
    return fit_table(replace(table, columns=shorter), width)


def next_options(summary: BillSummary) -> str:
    """What to type next."""
    parts = ["--by session|project|day|model|agent"]
    if summary.by == "session" and summary.rows:
        parts.append(f"--session {row_names(summary)[0]} for its calls")
    return " · ".join([*parts, "--html bill.html"])


def headline(summary: BillSummary) -> str:
    """The answer: what it cost, where it comes from, and what caching did."""
    total = summary.total
    days = period(total, summary.zone)
    when = f", {days}" if days else ""
    parts = [
        f"{dollars(total.cost)} in {count_text(summary.sessions, 'session')}, {count_text(total.calls, 'call')}{when}",
        f"cache hit rate {percent(total.hit_rate)}",
    ]
    if total.saved_by_caching:
        parts.append(caching_words(total.saved_by_caching))
    return " · ".join(parts)


def rewritten_line(summary: BillSummary) -> str:
    total = summary.total
    share = f" ({percent(total.rewritten / total.cost)})" if total.cost else ""
    return f"{dollars(total.rewritten)}{share} was spent re-caching content that was already cached:"


def accounted(summary: BillSummary) -> Iterator[str]:
    """The identity, and what is not in the dollars."""
    total = summary.total
    if total.rewritten:
        necessary, rewritten, cost = dollar_column([total.necessary, total.rewritten, total.cost])
        yield f"{necessary} necessary + {rewritten} rewritten = {cost}"
    if summary.warm_calls:
        yield f"{count_text(summary.warm_calls, 'session')} began on a cache that was still warm."
    if charged := charged_words(total):
        yield charged
    if partial := partial_output_words(total, summary.estimates_output):
        yield partial
    if summary.copies:
        yield f"{count_text(summary.copies, 'repeated call')} of resumed or copied sessions counted once."
    unwritten = unwritten_cost(summary.unwritten)
    if unwritten:
        yield f"{dollars(unwritten)} more for calls in no transcript (compactions, titles), by the client's own sums."
    for reason, calls in sorted(summary.unpriced.items()):
        yield f"{count_text(calls, 'call')} not in the dollars: {reason}"


def list_price_note(total: BillRow) -> str:
    """Whose prices these are; empty where the answers themselves say what all calls were charged."""
    return LIST_PRICES if total.cost and total.charged_calls < total.calls else ""
