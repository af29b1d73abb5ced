"""What `cachecost replay` prints for people: the sums of each strategy, and what the calls cost by cause."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import IO

from rich.console import Console
from rich.table import Table

from cachecost.ledger import ZERO, CallRow, Ledger
from cachecost.numbers import UNKNOWN, change, counted, dollar_range, dollars, percent, tokens
from cachecost.providers.usage import Usage
from cachecost.rows import warm_reads
from cachecost.views.columns import REFUSED, shortened
from cachecost.views.plain_table import PIPE_WIDTH
from cachecost.views.streams import inert_console

BILLED = "as billed"
HEADERS = ("strategy", "calls", "read", "write {}", "write {}", "uncached", "output", "cost")
"""The lifetimes are the host's."""
UNPRICED_HEADERS = ("strategy", "calls", "prefill saved", "prefill to do", "hit share", "output", "cost")
"""Where no price is known: a server of one's own computes what it does not find, and bills nothing for keeping it."""
UNPRICED = (
    "no price is known, so strategies are told by their tokens: give a server's [[gpu]] with --prices for dollars"
)
FLOOR = "over floor"
"""How far from the least that the same bytes can cost; a column where anybody asked."""
NARROWEST_NAME = 12


@dataclass(frozen=True, slots=True)
class Billed:
    """What a recording says was charged."""

    calls: int
    usage: Usage
    dollars: Decimal


def print_ledgers(
    title: str,
    ledgers: Sequence[Ledger],
    stream: IO[str],
    billed: Billed | None = None,
    ranked: bool = False,
    with_causes: bool = True,
    calls: int = 0,
) -> None:
    """A line of sums a ledger, the bill before them, then a line a cause; rich respects NO_COLOR, pipes, the width.

    `ranked` sorts by dollars, those with refused calls last, and leaves the causes out. `calls` are those of the log
    (0: as many as the first ledger has); a strategy may make more.
    """
    console = inert_console(stream, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    if not ledgers:
        console.print(f"{title}   no calls", markup=False, soft_wrap=True)
        return
    console.print(f"{title}   {counted(calls or len(ledgers[0].rows), 'call')}", markup=False, soft_wrap=True)
    if ranked:
        ledgers = sorted(ledgers, key=_rank if _are_priced(ledgers) else _rank_by_tokens)
    console.print(_sums(ledgers, billed, console.width))
    if not _are_priced(ledgers):
        _note(console, UNPRICED)
    everywhere = _common(ledgers)
    _print_warm_start(console, ledgers)
    for ledger in ledgers:
        if with_causes and not ranked:
            console.print()
            console.print(_causes(ledger, ledger.strategy if len(ledgers) > 1 else "cause"))
        for reason, count in _errors(ledger.rows).items():
            if (reason, count) not in everywhere:
                told = f"{ledger.strategy}: " if len(ledgers) > 1 else ""
                _note(console, f"{told}{counted(count, 'call')} without usage: {reason}")
    _tell_what_is_missing(console, ledgers, everywhere)


def _tell_what_is_missing(console: Console, ledgers: Sequence[Ledger], everywhere: dict[tuple[str, int], None]) -> None:
    """Calls that no ledger has a usage of, and those whose output nobody recorded."""
    for reason, count in everywhere:
        _note(console, f"{counted(count, 'call')} without usage: {reason}")
    if silent := max(map(_without_output, ledgers)):
        _note(console, f"{counted(silent, 'call')} without recorded output: 0 output tokens counted")


def _without_output(ledger: Ledger) -> int:
    return sum(1 for row in ledger.rows if row.error is None and row.cause and not row.output_is_recorded)


def _print_warm_start(console: Console, ledgers: Sequence[Ledger]) -> None:
    sentences = (warm_reads(ledger.rows).sentence for ledger in ledgers)
    if sentence := next(filter(None, sentences), ""):
        _note(console, sentence)


def _common(ledgers: Sequence[Ledger]) -> dict[tuple[str, int], None]:
    """The reasons, with the number of calls, that are the same for all of several ledgers: told once."""
    if len(ledgers) < 2:
        return {}
    first, *others = (dict.fromkeys(_errors(ledger.rows).items()) for ledger in ledgers)
    return {pair: None for pair in first if all(pair in other for other in others)}


def _note(console: Console, text: str) -> None:
    console.print(f"  {text}", markup=False, soft_wrap=True)


def _rank(ledger: Ledger) -> tuple[object, ...]:
    """The cheapest first, after those that ask what was asked those that do not, last those with refused calls."""
    return ledger.errors, not ledger.inquiries, ledger.cost.total, ledger.strategy


def _rank_by_tokens(ledger: Ledger) -> tuple[object, ...]:
    return ledger.errors, not ledger.inquiries, ledger.usage.total_input - ledger.usage.read, ledger.strategy


def _are_priced(ledgers: Sequence[Ledger]) -> bool:
    return all(ledger.is_priced for ledger in ledgers)


def _sums(ledgers: Sequence[Ledger], billed: Billed | None, width: int) -> Table:
    """Names lose their middle where the table is wider than the terminal; numbers lose nothing."""
    plain, rows = _priced(ledgers, billed) if _are_priced(ledgers) else _unpriced(ledgers, billed)
    headers = plain
    taken = _taken(headers, rows)
    if any(one.floor is not None for one in ledgers) and width - taken >= NARROWEST_NAME + len(FLOOR) + 2:
        headers, rows = (*plain, FLOOR), _with_floors(rows, ledgers, bool(billed))
        taken = _taken(headers, rows)
    table = _table(*headers)
    for name, *numbers in rows:
        table.add_row(shortened(name, max(width - taken, NARROWEST_NAME)), *numbers)
    return table


def _priced(ledgers: Sequence[Ledger], billed: Billed | None) -> tuple[tuple[str, ...], list[list[str]]]:
    """The heads of the columns, and the rows."""
    rows = [_amounts(BILLED, billed.calls, billed.usage, billed.dollars)] if billed else []
    lifetimes = iter(ledgers[0].lifetimes)
    headers = tuple(name.format(next(lifetimes)) if "{}" in name else name for name in HEADERS)
    return headers, [*rows, *map(_ledger_amounts, ledgers)]


def _unpriced(ledgers: Sequence[Ledger], billed: Billed | None) -> tuple[tuple[str, ...], list[list[str]]]:
    """As `_priced`, in tokens: of a bill, too, the dollars are not known."""
    rows = [_tokens(BILLED, billed.calls, billed.usage)] if billed else []
    return UNPRICED_HEADERS, [*rows, *(_tokens(one.strategy, len(one.rows), one.usage) for one in ledgers)]


def _tokens(name: str, calls: int, usage: Usage) -> list[str]:
    whole, found = usage.total_input, [UNKNOWN] * 4
    if whole:
        share = percent(Decimal(usage.read) / whole)
        found = [tokens(usage.read), tokens(whole - usage.read), share, tokens(usage.output_tokens)]
    return [name, f"{calls:,}", *found, UNKNOWN]


def _taken(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """Cells that the columns behind the names take."""
    return sum(max(map(len, column)) + 2 for column in list(zip(headers, *rows, strict=True))[1:]) + 2


def _with_floors(rows: Sequence[list[str]], ledgers: Sequence[Ledger], has_bill: bool) -> list[list[str]]:
    floors = [percent(change(one.cost.total, one.floor), signed=True) for one in ledgers]
    return [[*row, cell] for row, cell in zip(rows, [*[""] * has_bill, *floors], strict=True)]


def _ledger_amounts(ledger: Ledger) -> list[str]:
    """Where no call could be evaluated nothing is known; where some were refused the dollars are not those of all."""
    if ledger.errors == len(ledger.rows):
        return [ledger.strategy, f"{len(ledger.rows):,}", *[UNKNOWN] * (len(HEADERS) - 2)]
    told = _amounts(ledger.strategy, len(ledger.rows), ledger.usage, ledger.cost.total, ledger.most)
    refused = any(row.error is not None and row.error_type != "not_evaluated" for row in ledger.rows)
    return [*told[:-1], f"{REFUSED} {told[-1]}"] if refused else told


def _amounts(name: str, calls: int, usage: Usage, cost: Decimal, most: Decimal | None = None) -> list[str]:
    amounts = (usage.read, usage.write_5m, usage.write_1h, usage.input_tokens, usage.output_tokens)
    return [name, f"{calls:,}", *map(tokens, amounts), dollar_range(cost, most)]


def _causes(ledger: Ledger, title: str) -> Table:
    if not ledger.is_priced:
        return _token_causes(ledger, title)
    table = _table(title, "calls", "read", "written", "cost", "share")
    total = ledger.cost.total
    for cause, rows in _by_cause(ledger.rows).items():
        cost = sum((row.cost.total for row in rows), ZERO)
        read, written = sum(row.usage.read for row in rows), sum(row.usage.write for row in rows)
        share = percent(cost / total if total else Decimal(0))
        table.add_row(cause, f"{len(rows):,}", tokens(read), tokens(written), dollars(cost), share)
    return table


def _token_causes(ledger: Ledger, title: str) -> Table:
    """What must be computed, by cause, the most first."""
    table = _table(title, "calls", "prefill saved", "prefill to do", "share")
    found = {cause: sum((row.usage for row in rows), Usage()) for cause, rows in _by_cause(ledger.rows).items()}
    to_do = {cause: usage.total_input - usage.read for cause, usage in found.items()}
    whole = sum(to_do.values())
    for cause in sorted(found, key=lambda cause: (-to_do[cause], cause)):
        calls = sum(row.cause == cause for row in ledger.rows)
        share = percent(Decimal(to_do[cause]) / whole if whole else Decimal(0))
        table.add_row(cause, f"{calls:,}", tokens(found[cause].read), tokens(to_do[cause]), share)
    return table


def _by_cause(rows: Sequence[CallRow]) -> dict[str, list[CallRow]]:
    """The rows that have a cause, the dearest cause first."""
    groups: dict[str, list[CallRow]] = {}
    for row in rows:
        if row.cause is not None:
            groups.setdefault(row.cause, []).append(row)
    return dict(sorted(groups.items(), key=lambda item: (-sum(row.cost.total for row in item[1]), item[0])))


def _errors(rows: Sequence[CallRow]) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for row in rows:
        if row.error is not None:
            reasons[row.error] = reasons.get(row.error, 0) + 1
    return reasons


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=True, header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table
