"""What `cachecost bill` prints for people: the total, what was written again and why, and a row a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import IO

from cachecost.analysis.bill.account import BilledRewrite
from cachecost.analysis.bill.summary import BillSummary
from cachecost.analysis.bill.unwritten import unwritten_cost
from cachecost.base.formatting import count_text, dollars, percent, tokens
from cachecost.caches.causes import Cause
from cachecost.views.bill.tables import causes_table, rows_table
from cachecost.views.bill.words import LIST_PRICES, period
from cachecost.views.streams import report_console
from cachecost.views.tables.fitting import fit_table, hidden_note
from cachecost.views.tables.text import PIPE_WIDTH, render_table

ROWS_SHOWN = 10


def print_bill(
    summary: BillSummary,
    rewrites: Sequence[BilledRewrite],
    advice: dict[Cause, str],
    hints: Sequence[str],
    stream: IO[str],
    most: int | None = ROWS_SHOWN,
) -> None:
    """Print to `stream`; `advice` stands beside its cause, `hints` below the tables."""
    console = report_console(stream, PIPE_WIDTH)

    def say(text: str) -> None:
        console.print(text, markup=False, soft_wrap=True, highlight=False)

    say(headline(summary))
    fitted = []
    if rewrites:
        say("")
        say(rewritten_line(summary))
        fitted.append(fit_table(causes_table(summary, rewrites, advice), console.width))
        console.print(render_table(fitted[-1]))
    for line in accounted(summary):
        say(line)
    say("")
    fitted.append(fit_table(rows_table(summary, rewrites, most), console.width))
    console.print(render_table(fitted[-1]))
    hidden = len(summary.rows) - len(summary.rows[:most])
    if hidden:
        say(f"  … {count_text(hidden, 'more row')}: --by {summary.by} shows all")
    for line in filter(None, (hidden_note(fitted, "--csv F"), *hints)):
        say(line)


def headline(summary: BillSummary) -> str:
    """The answer: what it cost, where it comes from, and what caching did."""
    total = summary.total
    when = f", {period(total)}" if period(total) else ""
    parts = [
        f"{dollars(total.cost)} in {count_text(summary.sessions, 'session')}, {count_text(total.calls, 'call')}{when}",
        f"cache hit rate {percent(total.hit_rate)}",
    ]
    if total.saved_by_caching:
        parts.append(f"caching saved {dollars(total.saved_by_caching)}")
    return " · ".join(parts)


def rewritten_line(summary: BillSummary) -> str:
    total = summary.total
    share = f" ({percent(total.rewritten / total.cost)})" if total.cost else ""
    return f"  {dollars(total.rewritten)}{share} was paid to write again what had been cached before:"


def accounted(summary: BillSummary) -> Iterator[str]:
    """The identity, and what is not in the dollars."""
    total = summary.total
    if total.rewritten:
        yield (
            f"  Everything is accounted for: {dollars(total.necessary)} necessary + {dollars(total.rewritten)} above "
            f"= {dollars(total.cost)}."
        )
    if summary.warm_calls:
        first_calls = count_text(summary.warm_calls, "first call")
        yield f"  {first_calls} read {tokens(summary.warm_tokens)} tokens cached before the session: no loss."
    if summary.copies:
        yield f"  {count_text(summary.copies, 'repeated call')} of resumed or copied sessions counted once."
    unwritten = unwritten_cost(summary.unwritten)
    if unwritten:
        yield f"  {dollars(unwritten)} more for calls in no transcript (compactions, titles), by the client's own sums."
    for reason, calls in sorted(summary.unpriced.items()):
        yield f"  {count_text(calls, 'call')} not in the dollars: {reason}"


def list_price_note(total: Decimal) -> str:
    """Whose prices these are."""
    return LIST_PRICES if total else ""
