"""What `cachecost replay` prints for people: the sums of each strategy, and what the calls cost by cause."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import IO

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from cachecost.base.formatting import (
    UNKNOWN,
    change,
    counted,
    dollar_column,
    dollar_places,
    dollar_range,
    percent_column,
    point_aligned,
    token_column,
)
from cachecost.ledger.results import ZERO, CallRow, Ledger
from cachecost.ledger.rows import warm_reads
from cachecost.providers.usage import Usage
from cachecost.views.streams import inert_console
from cachecost.views.tables.columns import (
    ANSWER,
    COUNT,
    LOWER_BOUND,
    REFUSED,
    ZERO_CLASS,
    Column,
    Fit,
    fit,
    hidden_note,
)
from cachecost.views.tables.plain import PIPE_WIDTH

BILLED = "as billed"
UNPRICED = (
    "no price is known, so strategies are told by their tokens: give a server's [[gpu]] with --prices for dollars"
)
FLOOR = "over floor"
"""How far from the least that the same bytes can cost; a column where anybody asked."""
NARROWEST_NAME = 20


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
    sums = _sums(ledgers, billed, console.width)
    console.print(_drawn(sums))
    if not _are_priced(ledgers):
        _note(console, UNPRICED)
    _tell_each(console, ledgers, with_causes and not ranked)
    if note := hidden_note([sums], "--json"):
        _note(console, note)


def _tell_each(console: Console, ledgers: Sequence[Ledger], with_causes: bool) -> None:
    """The causes of each ledger, and why calls have no usage: once where that is the same for all."""
    everywhere = _common(ledgers)
    _print_warm_start(console, ledgers)
    for ledger in ledgers:
        if with_causes:
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


def _sums(ledgers: Sequence[Ledger], billed: Billed | None, width: int) -> Fit:
    """The bill, then the ledgers, in `width` cells."""
    rows = [_Row(BILLED, billed.calls, billed.usage, billed.dollars)] if billed else []
    rows += map(_row, ledgers)
    columns = _priced(rows, ledgers[0].lifetimes) if _are_priced(ledgers) else _unpriced(rows)
    return fit([row.name for row in rows], "strategy", columns, width, NARROWEST_NAME)


@dataclass(frozen=True, slots=True)
class _Row:
    """What one line of the sums tells; `usage` is None where no call could be evaluated."""

    name: str
    calls: int
    usage: Usage | None
    cost: Decimal | None
    most: Decimal | None = None
    above_floor: Decimal | None = None
    has_floor: bool = False
    refused: bool = False

    @property
    def hit_share(self) -> Decimal | None:
        if self.usage is None or not self.usage.total_input:
            return None
        return Decimal(self.usage.read) / self.usage.total_input


def _row(ledger: Ledger) -> _Row:
    """Where no call could be evaluated nothing is known; where some were refused the dollars are not those of all."""
    count, cost = len(ledger.rows), ledger.cost.total
    over = change(cost, ledger.floor)
    if ledger.errors == count:
        return _Row(ledger.strategy, count, None, None, None, over, ledger.floor is not None)
    refused = any(row.error is not None and row.error_type != "not_evaluated" for row in ledger.rows)
    return _Row(ledger.strategy, count, ledger.usage, cost, ledger.most, over, ledger.floor is not None, refused)


def _priced(rows: Sequence[_Row], lifetimes: tuple[str, str]) -> list[Column]:
    """Tokens by class and the cost; the lifetimes are the host's."""
    short, long = lifetimes
    costs = point_aligned(_costs(rows))
    columns = [
        _calls(rows),
        _tokens("read", rows, lambda usage: usage.read),
        _tokens(f"write {short}", rows, lambda usage: usage.write_5m),
        _tokens(f"write {long}", rows, lambda usage: usage.write_1h),
        _tokens("uncached", rows, lambda usage: usage.input_tokens),
        _tokens("output", rows, lambda usage: usage.output_tokens),
        Column("cost", "cost", costs),
    ]
    if not any(row.has_floor for row in rows):
        return columns
    over = percent_column([row.above_floor for row in rows], signed=True)
    cells = ["" if row.name == BILLED else cell for row, cell in zip(rows, over, strict=True)]
    return [*columns, Column("floor", FLOOR, cells, rank=LOWER_BOUND)]


def _unpriced(rows: Sequence[_Row]) -> list[Column]:
    """As `_priced`, in tokens: a server of one's own computes what it does not find, and bills nothing for keeping."""
    return [
        _calls(rows),
        _tokens("prefill saved", rows, lambda usage: usage.read),
        _tokens("prefill to do", rows, lambda usage: usage.total_input - usage.read),
        Column("share", "hit share", percent_column([row.hit_share for row in rows])),
        _tokens("output", rows, lambda usage: usage.output_tokens),
        Column("cost", "cost", [UNKNOWN] * len(rows), rank=ZERO_CLASS),
    ]


def _calls(rows: Sequence[_Row]) -> Column:
    return Column("calls", "calls", [f"{row.calls:,}" for row in rows], rank=COUNT)


def _tokens(name: str, rows: Sequence[_Row], count: Callable[[Usage], int]) -> Column:
    """A class of tokens; one that is zero everywhere may be hidden, one that counts never."""
    counts = [None if row.usage is None else count(row.usage) for row in rows]
    return Column(name, name, token_column(counts), rank=ANSWER if any(counts) else ZERO_CLASS)


def _costs(rows: Sequence[_Row]) -> list[str]:
    places = dollar_places(amount for row in rows for amount in (row.cost, row.most))
    return [f"{REFUSED} " * row.refused + dollar_range(row.cost, row.most, places) for row in rows]


def _causes(ledger: Ledger, title: str) -> Table:
    """What calls cost, by cause, the dearest first; where no price is known, what must be computed, the most first."""
    causes = {cause: sum((row.usage for row in rows), Usage()) for cause, rows in _by_cause(ledger.rows).items()}
    columns = _dollars_by_cause(ledger, causes) if ledger.is_priced else _prefill_by_cause(causes)
    order = sorted(causes, key=lambda cause: (-columns.weights[cause], cause))
    names, calls = list(causes), [sum(row.cause == cause for row in ledger.rows) for cause in causes]
    table = _table(title, "calls", *columns.cells)
    for cause in order:
        at = names.index(cause)
        table.add_row(cause, f"{calls[at]:,}", *(cells[at] for cells in columns.cells.values()))
    return table


@dataclass(frozen=True, slots=True)
class _ByCause:
    """Columns by their heads, a cell a cause, and what each cause weighs."""

    cells: dict[str, list[str]]
    weights: Mapping[str, Decimal]


def _dollars_by_cause(ledger: Ledger, causes: Mapping[str, Usage]) -> _ByCause:
    total = ledger.cost.total
    costs = {cause: sum((row.cost.total for row in rows), ZERO) for cause, rows in _by_cause(ledger.rows).items()}
    cells = {
        "read": token_column([usage.read for usage in causes.values()]),
        "written": token_column([usage.write for usage in causes.values()]),
        "cost": dollar_column(list(costs.values())),
        "share": percent_column([cost / total if total else ZERO for cost in costs.values()]),
    }
    return _ByCause(cells, costs)


def _prefill_by_cause(causes: Mapping[str, Usage]) -> _ByCause:
    to_do = {cause: Decimal(usage.total_input - usage.read) for cause, usage in causes.items()}
    whole = sum(to_do.values())
    cells = {
        "prefill saved": token_column([usage.read for usage in causes.values()]),
        "prefill to do": token_column([int(count) for count in to_do.values()]),
        "share": percent_column([count / whole if whole else ZERO for count in to_do.values()]),
    }
    return _ByCause(cells, to_do)


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


def _drawn(sums: Fit) -> Table:
    """A table that neither wraps nor cuts a number."""
    table = Table(box=None, pad_edge=True, header_style="bold")
    for column in sums.columns:
        justify: JustifyMethod = "right" if column.right else "left"
        table.add_column(column.header, justify=justify, no_wrap=True, min_width=column.width)
    for number in range(len(sums.names.cells)):
        table.add_row(*(Text(column.flush(number)) for column in sums.columns))
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=True, header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table
