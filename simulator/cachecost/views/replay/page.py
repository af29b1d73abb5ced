"""The page of a replay: the same as that of a run, for the calls of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from cachecost.analysis.comparison.summary import CLASS_FIELDS, Summary, rank_sentences, summarise
from cachecost.base.formatting import change, change_text, count_text, dollars, percent, range_text, tokens
from cachecost.base.times import day_of
from cachecost.base.version import __version__
from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import Assumption, Comparison, Ledger, RunResult
from cachecost.providers.rules import data_date
from cachecost.views.replay.tables import Billed
from cachecost.views.run.page import BilledRow, run_page


def replay_page(
    log: str,
    ledgers: Sequence[Ledger],
    host: str,
    as_of: date | None,
    rules: dict[str, str],
    prices: str,
    again: str,
    billed: Billed | None = None,
    explanations: Sequence[Explanation] = (),
    is_bounded: bool = False,
) -> str:
    """The whole page. `as_of` None: each call has its own day, and the page names the last one, or that of the rules
    where the log tells no day. `is_bounded`: the cache holds only so many tokens."""
    days = [day_of(row.start) for ledger in ledgers for row in ledger.rows if row.timestamp]
    days = days or [as_of or data_date(host)]
    models = ", ".join(dict.fromkeys(row.model for ledger in ledgers for row in ledger.rows))
    day = as_of or max(days)
    first = ledgers[0].strategy
    comparison = Comparison("", host, models, day, rules, list(ledgers), first)
    summary = summarise(comparison)
    about = [
        count_text(len(ledgers[0].rows), "call"),
        f"billed {dollars(billed.dollars)} for {count_text(billed.calls, 'call')}" if billed else "",
        models,
        range_text(str(min(days)), str(max(days)), " to "),
    ]
    assumed = [] if as_of else ["Each call has the rules and prices of its own day."]
    if is_bounded:
        assumed.append("The server keeps the stated number of tokens; the least recently used are evicted first.")
    else:
        assumed.append("No entry is evicted before its TTL ends, so hits are an upper bound.")
    result = RunResult(
        log,
        "What does this recording cost, call by call?",
        " · ".join(filter(None, about)),
        _verdict(summary, billed),
        [comparison],
        list(map(Assumption, assumed)),
        versions={"cachecost": __version__, "prices": prices},
        explanations=list(explanations),
    )
    row, best = None, summary.best
    if billed:  # the first row of the table, and in large type with what is simulated beside it
        cells = {
            "calls": f"{billed.calls:,}",
            **{name: tokens(getattr(billed.usage, CLASS_FIELDS[name])) for name in summary.classes},
            "cost": dollars(billed.dollars, summary.first.places if summary.first else None),
        }
        simulated = f"; simulated {best.answer}, {change_text(change(best.total, billed.dollars))}" if best else ""
        row = BilledRow(billed.dollars, cells, (dollars(billed.dollars), f"billed{simulated}"))
    return run_page(result, again, row, with_ranks=True)


def _verdict(summary: Summary, billed: Billed | None) -> str:
    best, first = summary.best, summary.first
    if best is None or first is None:
        return "No strategy ran without a refused call."
    bill = f"{dollars(billed.dollars)} billed. " if billed else ""
    if len(summary.lines) > 1:
        return f"{bill}{' '.join(rank_sentences(summary))}"
    whole = best.usage.total_input
    share = percent(Decimal(best.usage.read) / whole) if whole else percent(0)
    read = f"for {tokens(whole)} tokens of input, {share} of them read from the cache"
    gap = change(best.total, billed.dollars) if billed else None
    if billed and gap is not None:
        return f"{dollars(billed.dollars)} billed; simulated {best.answer}, {change_text(gap)}, {read}."
    return f"{best.answer} {read}."
