"""What `cachecost replay` prints for people: the sums of each strategy, and what its calls cost by cause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import IO

from rich.console import Console

from cachecost.analysis.comparison.summary import (
    Summary,
    apart_sentences,
    count_refusals,
    rank_sentences,
    shown_name,
    summarise_ledgers,
)
from cachecost.base.formatting import (
    UNKNOWN,
    change,
    count_text,
    dollar_column,
    dollar_places,
    dollar_range,
    percent_column,
    point_aligned,
    token_column,
)
from cachecost.ledger.results import Ledger
from cachecost.ledger.rows import NOT_EVALUATED, CallRow, warm_reads
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.engine import AS_RECORDED
from cachecost.views.streams import report_console
from cachecost.views.tables.output import have_own_bounds, lower_bound_sentence, rank_column
from cachecost.views.tables.table import (
    ANSWER,
    COUNT,
    LOWER_BOUND,
    PIPE_WIDTH,
    REFUSED,
    ZERO_CLASS,
    Column,
    Table,
    fit_table,
    hidden_note,
    render_table,
)

BILLED = "billed"
UNPRICED = "no price is known, so strategies are compared by tokens; for dollars, give a server's [[gpu]] with --prices"
NARROWEST_NAME = 20


@dataclass(frozen=True, slots=True)
class Billed:
    """What a recording says was charged, in USD."""

    calls: int
    usage: Usage
    dollars: Decimal


def sum_table(ledgers: Sequence[Ledger], billed: Billed | None, summary: Summary | None = None) -> Table:
    """The bill, then a row a ledger; in tokens where no price is known. The ranks are those of the `summary`."""
    rows = [_SumRow(BILLED, billed.calls, billed.usage, billed.dollars)] if billed else []
    rows += map(_sum_row, ledgers)
    first = [BILLED] * (billed is not None)
    lines = [summary.line(ledger.strategy) if summary else None for ledger in ledgers]
    names = [shown_name(line) if line else ledger.strategy for ledger, line in zip(ledgers, lines, strict=True)]
    columns = [
        Column("name", "strategy", [*first, *names], right=False),
        Column("calls", "calls", [f"{row.calls:,}" for row in rows], rank=COUNT),
    ]
    if _are_priced(ledgers):
        short, long = ledgers[0].ttls
        places = dollar_places(amount for row in rows for amount in (row.cost, row.most))
        costs = [f"{REFUSED} " * row.refused + dollar_range(row.cost, row.most, places) for row in rows]
        columns += [
            _token_column("read", rows, lambda usage: usage.read),
            _token_column(f"write {short}", rows, lambda usage: usage.write_5m),
            _token_column(f"write {long}", rows, lambda usage: usage.write_1h),
            _token_column("uncached", rows, lambda usage: usage.input_tokens),
            _token_column("output", rows, lambda usage: usage.output_tokens),
            Column("cost", "cost", point_aligned(costs)),
        ]
        if have_own_bounds(ledgers):  # a bound that all share is a line under the table
            over = percent_column([row.above_lower_bound for row in rows], signed=True)
            cells = ["" if row.name == BILLED else cell for row, cell in zip(rows, over, strict=True)]
            columns.append(Column("lower_bound", "above lower bound", cells, rank=LOWER_BOUND))
    else:  # in tokens: a server of your own computes what it does not find, and storage is free
        columns += [
            _token_column("prefill saved", rows, lambda usage: usage.read),
            _token_column("prefill to do", rows, lambda usage: usage.unread),
            Column("share", "cache hit rate", percent_column([row.cache_hit_rate for row in rows])),
            _token_column("output", rows, lambda usage: usage.output_tokens),
            Column("cost", "cost", [UNKNOWN] * len(rows), rank=ZERO_CLASS),
        ]
    if summary:
        columns.append(rank_column(summary, [*[""] * len(first), *(ledger.strategy for ledger in ledgers)]))
    return Table(columns)


def cause_table(ledger: Ledger, header: str) -> Table:
    """What calls cost, by cause, the most expensive first; where no price is known, the tokens to compute."""
    groups: dict[str, list[CallRow]] = {}
    for row in ledger.rows:
        if row.cause is not None:
            groups.setdefault(row.cause, []).append(row)
    is_priced = ledger.is_priced  # looks at every row
    weights = {
        cause: sum((row.cost.total if is_priced else Decimal(row.usage.unread)) for row in rows)
        for cause, rows in groups.items()
    }
    causes = dict(sorted(groups.items(), key=lambda item: (-weights[item[0]], item[0])))
    usages = [sum((row.usage for row in rows), Usage()) for rows in causes.values()]
    columns = [
        Column("cause", header, list(causes), right=False),
        Column("calls", "calls", [f"{len(rows):,}" for rows in causes.values()]),
    ]
    if not is_priced:
        to_do = [usage.unread for usage in usages]
        columns.append(Column("saved", "prefill saved", token_column([usage.read for usage in usages])))
        columns.append(Column("to do", "prefill to do", token_column(to_do)))
        return Table([*columns, _share_column([Decimal(count) for count in to_do], Decimal(sum(to_do)))])
    costs = [sum((row.cost.total for row in rows), ZERO) for rows in causes.values()]
    columns += [
        Column("read", "read", token_column([usage.read for usage in usages])),
        Column("written", "written", token_column([usage.write for usage in usages])),
        Column("cost", "cost", dollar_column(costs)),
    ]
    return Table([*columns, _share_column(costs, ledger.cost.total)])


@dataclass(frozen=True, slots=True)
class _SumRow:
    """The sums of a strategy, or of the bill; `usage` is None where no call could be evaluated."""

    name: str
    calls: int
    usage: Usage | None
    cost: Decimal | None
    most: Decimal | None = None
    above_lower_bound: Decimal | None = None
    refused: bool = False

    @property
    def cache_hit_rate(self) -> Decimal | None:
        if self.usage is None or not self.usage.total_input:
            return None
        return Decimal(self.usage.read) / self.usage.total_input


def _sum_row(ledger: Ledger) -> _SumRow:
    """Where no call could be evaluated nothing is known; where some were refused the dollars are not those of all."""
    count, cost = len(ledger.rows), ledger.cost.total
    over = change(cost, ledger.lower_bound)
    if ledger.errors == count:
        return _SumRow(ledger.strategy, count, None, None, None, over)
    refused = any(row.error is not None and row.error_type != NOT_EVALUATED for row in ledger.rows)
    return _SumRow(ledger.strategy, count, ledger.usage, cost, ledger.most, over, refused)


def _token_column(name: str, rows: Sequence[_SumRow], count: Callable[[Usage], int]) -> Column:
    """A class of tokens; one that is zero everywhere may be hidden, one that counts never."""
    counts = [None if row.usage is None else count(row.usage) for row in rows]
    return Column(name, name, token_column(counts), rank=ANSWER if any(counts) else ZERO_CLASS)


def _share_column(amounts: Sequence[Decimal], whole: Decimal) -> Column:
    return Column("share", "share", percent_column([amount / whole if whole else ZERO for amount in amounts]))


def print_ledgers(
    title: str,
    ledgers: Sequence[Ledger],
    stream: IO[str],
    billed: Billed | None = None,
    ranked: bool = False,
    are_strategies: bool = True,
    calls: int = 0,
) -> None:
    """A line of sums a ledger, the bill before them, then a line a cause. `ranked` sorts by dollars, those with refused
    calls last, and leaves the causes out, as do capacities of a server (not `are_strategies`). `calls` are those of the
    log (0: as many as the first ledger has); a strategy may make more."""
    console = report_console(stream, PIPE_WIDTH)
    if not ledgers:
        console.print(f"{title}   no calls", markup=False, soft_wrap=True)
        return
    console.print(f"{title}   {count_text(calls or len(ledgers[0].rows), 'call')}", markup=False, soft_wrap=True)
    if ranked:
        # the cheapest first, after those that ask what was asked those that do not, last those with refused calls
        is_priced = _are_priced(ledgers)
        ledgers = sorted(
            ledgers,
            key=lambda one: (
                one.errors,
                not one.inquiries,
                one.cost.total if is_priced else one.usage.unread,
                one.strategy,
            ),
        )
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
    first, *others = (_errors(ledger.rows) for ledger in ledgers)
    everywhere = {pair for pair in first.items() if others and all(pair in other.items() for other in others)}
    warm = next(filter(None, (warm_reads(ledger.rows).sentence for ledger in ledgers)), "")
    notes = [note for ledger in ledgers if ledger.strategy == AS_RECORDED for note in ledger.notes]
    for sentence in filter(None, (warm, *notes)):
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
    for reason, count in first.items():
        if (reason, count) in everywhere:
            _print_note(console, f"{count_text(count, 'call')} without usage: {reason}")
    silent = max(
        sum(row.error is None and bool(row.cause) and not row.output_is_recorded for row in ledger.rows)
        for ledger in ledgers
    )
    if silent:
        _print_note(console, f"{count_text(silent, 'call')} without recorded output: 0 output tokens counted")


def _print_note(console: Console, text: str) -> None:
    console.print(f"  {text}", markup=False, soft_wrap=True)


def _are_priced(ledgers: Sequence[Ledger]) -> bool:
    return all(ledger.is_priced for ledger in ledgers)


def _errors(rows: Sequence[CallRow]) -> dict[str, int]:
    return {one.reason: one.calls for one in count_refusals(rows)}
