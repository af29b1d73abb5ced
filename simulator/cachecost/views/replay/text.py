"""What `cachecost replay` prints for people: the sums of each strategy, and what the calls cost by cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from rich.console import Console

from cachecost.analysis.comparison.apart import apart_sentences
from cachecost.analysis.comparison.ranking import rank_sentences
from cachecost.analysis.comparison.summary import summarise_ledgers
from cachecost.base.formatting import count_text
from cachecost.ledger.results import CallRow, Ledger
from cachecost.ledger.rows import warm_reads
from cachecost.simulation.engine import AS_RECORDED
from cachecost.views.replay.tables import Billed, cause_table, sum_table
from cachecost.views.streams import report_console
from cachecost.views.tables.fitting import fit_table, hidden_note
from cachecost.views.tables.lower_bounds import lower_bound_sentence
from cachecost.views.tables.text import PIPE_WIDTH, render_table

UNPRICED = "no price is known, so strategies are compared by tokens; for dollars, give a server's [[gpu]] with --prices"
NARROWEST_NAME = 20


def print_ledgers(
    title: str,
    ledgers: Sequence[Ledger],
    stream: IO[str],
    billed: Billed | None = None,
    ranked: bool = False,
    are_strategies: bool = True,
    calls: int = 0,
) -> None:
    """A line of sums a ledger, the bill before them, then a line a cause; rich respects NO_COLOR, pipes, the width.

    `ranked` sorts by dollars, those with refused calls last, and leaves the causes out. If not `are_strategies`, they
    are capacities of a server: without causes, and without ranks. `calls` are those of the log (0: as many as the first
    ledger has); a strategy may make more.
    """
    console = report_console(stream, PIPE_WIDTH)
    if not ledgers:
        console.print(f"{title}   no calls", markup=False, soft_wrap=True)
        return
    console.print(f"{title}   {count_text(calls or len(ledgers[0].rows), 'call')}", markup=False, soft_wrap=True)
    if ranked:
        ledgers = sorted(ledgers, key=_rank if _are_priced(ledgers) else _rank_by_tokens)
    summary = summarise_ledgers(ledgers) if are_strategies and len(ledgers) > 1 else None
    sums = fit_table(sum_table(ledgers, billed, summary), console.width, NARROWEST_NAME)
    console.print(render_table(sums))
    for sentence in [*rank_sentences(summary), *apart_sentences(summary)] if summary else []:
        _print_note(console, sentence)
    if not _are_priced(ledgers):
        _print_note(console, UNPRICED)
    elif sentence := lower_bound_sentence(ledgers):
        _print_note(console, sentence)
    _print_details(console, ledgers, are_strategies and not ranked)
    if note := hidden_note([sums], "--json"):
        _print_note(console, note)


def _print_details(console: Console, ledgers: Sequence[Ledger], with_causes: bool) -> None:
    """The causes of each ledger, and why calls have no usage: once where that is the same for all."""
    everywhere = _common_errors(ledgers)
    _print_warm_start(console, ledgers)
    for sentence in [note for ledger in ledgers if ledger.strategy == AS_RECORDED for note in ledger.notes]:
        _print_note(console, sentence)
    for ledger in ledgers:
        if with_causes:
            console.print()
            causes = cause_table(ledger, ledger.strategy if len(ledgers) > 1 else "cause")
            console.print(render_table(fit_table(causes, console.width)))
        for reason, count in _errors(ledger.rows).items():
            if (reason, count) not in everywhere:
                name = f"{ledger.strategy}: " if len(ledgers) > 1 else ""
                _print_note(console, f"{name}{count_text(count, 'call')} without usage: {reason}")
    _print_missing(console, ledgers, everywhere)


def _print_missing(console: Console, ledgers: Sequence[Ledger], everywhere: dict[tuple[str, int], None]) -> None:
    """Calls that no ledger has a usage of, and those whose output nobody recorded."""
    for reason, count in everywhere:
        _print_note(console, f"{count_text(count, 'call')} without usage: {reason}")
    if silent := max(map(_without_output, ledgers)):
        _print_note(console, f"{count_text(silent, 'call')} without recorded output: 0 output tokens counted")


def _without_output(ledger: Ledger) -> int:
    return sum(1 for row in ledger.rows if row.error is None and row.cause and not row.output_is_recorded)


def _print_warm_start(console: Console, ledgers: Sequence[Ledger]) -> None:
    sentences = (warm_reads(ledger.rows).sentence for ledger in ledgers)
    if sentence := next(filter(None, sentences), ""):
        _print_note(console, sentence)


def _common_errors(ledgers: Sequence[Ledger]) -> dict[tuple[str, int], None]:
    """The reasons, with the number of calls, that all of several ledgers share."""
    if len(ledgers) < 2:
        return {}
    first, *others = (dict.fromkeys(_errors(ledger.rows).items()) for ledger in ledgers)
    return {pair: None for pair in first if all(pair in other for other in others)}


def _print_note(console: Console, text: str) -> None:
    console.print(f"  {text}", markup=False, soft_wrap=True)


def _rank(ledger: Ledger) -> tuple[object, ...]:
    """The cheapest first, after those that ask what was asked those that do not, last those with refused calls."""
    return ledger.errors, not ledger.inquiries, ledger.cost.total, ledger.strategy


def _rank_by_tokens(ledger: Ledger) -> tuple[object, ...]:
    return ledger.errors, not ledger.inquiries, ledger.usage.total_input - ledger.usage.read, ledger.strategy


def _are_priced(ledgers: Sequence[Ledger]) -> bool:
    return all(ledger.is_priced for ledger in ledgers)


def _errors(rows: Sequence[CallRow]) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for row in rows:
        if row.error is not None:
            reasons[row.error] = reasons.get(row.error, 0) + 1
    return reasons
