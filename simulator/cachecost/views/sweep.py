"""A sweep on the terminal: who is cheapest where, then the table, then what could not be evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import groupby
from math import ceil, sqrt
from pathlib import Path
from statistics import stdev
from textwrap import indent
from typing import Any, TextIO

import msgspec
from rich.text import Text

from cachecost.base.formatting import (
    UNKNOWN,
    all_of,
    count_text,
    dollar_places,
    dollar_range,
    dollars,
    exact,
    percent,
    percent_column,
    point_aligned,
    tokens,
)
from cachecost.sweep.rows import COUNTS, NO_SEED, SweepRow
from cachecost.views.streams import inert_console
from cachecost.views.tables.output import pick
from cachecost.views.tables.table import (
    ANSWER,
    COMPARISON,
    COUNT,
    LOWER_BOUND,
    Column,
    Table,
    fit_table,
    hidden_note,
    render_table,
    shorten_middle,
)

PERCENTILES = (5, 25, 50, 75, 95)
CONFIDENCE = 1.96
MOST_LINES, MOST_FAULTS = 60, 1_000
SPREAD = (5, 50, 95)
"""The percentiles that a narrow table hides last."""
LEAST_STRATEGY, LONGEST_LABEL = 20, 32
BEST_EFFORT = "Where a cost is a range, hits are best effort: the cheapest strategy is the cheapest at best."
RECORDINGS = (".jsonl", ".json")


class SweepLine:
    """A strategy at one point of the grid: its first row, and the dollars of all its seeds in the order of their size;
    tokens to compute where no price is known. Where hits are best effort `costs` are the least, and `missed` the
    most."""

    def __init__(self, first: SweepRow) -> None:
        self.first = first
        self.is_priced, self.may_miss = True, False
        self.costs, self.missed = list[Decimal](), list[Decimal]()
        self.fault = ""
        self._read, self._prefill = 0, list[int]()

    def add(self, row: SweepRow) -> None:
        self.is_priced = self.is_priced and row.cost_usd is not None
        self.may_miss = self.may_miss or row.cost_if_missed_usd is not None
        self.costs += [row.cost_usd] if row.cost_usd is not None else []
        self.missed += [cost for cost in (row.cost_if_missed_usd, row.cost_usd) if cost is not None][:1]
        self._prefill.append(row.prefill)
        self._read += row.read
        self.fault = self.fault or row.fault

    def finish(self, is_priced: bool) -> SweepLine:
        """The line, after its last seed; `is_priced` says whether all strategies of the point have prices."""
        self.is_priced = is_priced
        self.costs = sorted(self.costs if is_priced else map(Decimal, self._prefill))
        self.missed = sorted(self.missed) if is_priced and self.may_miss else []
        return self

    @property
    def cache_hit_rate(self) -> Decimal | None:
        whole = self._read + sum(self._prefill)
        return Decimal(self._read) / whole if whole else None

    @property
    def labels(self) -> tuple[str, ...]:
        return self.first.key.labels

    @property
    def strategy(self) -> str:
        return self.first.strategy

    @property
    def has_seeds(self) -> bool:
        return self.first.key.seed != NO_SEED

    @property
    def cost(self) -> Decimal:
        """USD (or tokens): that of the scenario as written, or the mean of its seeds."""
        return _mean(self.costs)

    @property
    def most(self) -> Decimal | None:
        """As `cost`, if no best-effort hit came about; None where all hits are certain."""
        return _mean(self.missed) if self.missed else None

    @property
    def percentiles(self) -> dict[int, Decimal]:
        """USD (or tokens) by nearest rank."""
        return _percentiles(self.costs)

    @property
    def most_percentiles(self) -> dict[int, Decimal]:
        """As `percentiles`, if no best-effort hit came about; empty where all hits are certain."""
        return _percentiles(self.missed) if self.missed else {}

    @property
    def convergence(self) -> float | None:
        """How far the mean may be from the true one, 95 times of 100, as a share of it; None for a single seed."""
        if len(self.costs) < 2 or not self.cost:
            return None
        return CONFIDENCE * stdev(map(float, self.costs)) / sqrt(len(self.costs)) / float(self.cost)


def _mean(amounts: Sequence[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0)) / len(amounts)


def _percentiles(amounts: Sequence[Decimal]) -> dict[int, Decimal]:
    return {percent: amounts[max(1, ceil(percent / 100 * len(amounts))) - 1] for percent in PERCENTILES}


def sum_points(rows: Iterable[SweepRow]) -> Iterator[list[SweepLine]]:
    """Rows in the order of the grid, summed up over their seeds: of each point its strategies. Holds one point."""
    for _, point in groupby(rows, lambda row: row.key.labels):
        lines: dict[str, SweepLine] = {}
        for row in point:
            lines.setdefault(row.strategy, SweepLine(row)).add(row)
        is_priced = all(line.is_priced for line in lines.values())
        yield [line.finish(is_priced) for line in lines.values()]


def sum_lines(rows: Iterable[SweepRow]) -> Iterator[SweepLine]:
    return (line for point in sum_points(rows) for line in point)


def print_json(scenario: str, axes: Sequence[str], cells: int, rows: Iterable[SweepRow], stream: TextIO) -> bool:
    """Print what `sweep --json` prints, line by line, and tell whether there were faults. `rows` are read twice."""
    head = {"format": 1, "scenario": scenario, "axes": list(axes), "cells": cells}
    stream.write(_json(head).removesuffix("\n}") + ',\n  "faults": ')
    faults = _print_list(
        ({**_point_object(axes, line), "fault": line.fault} for line in sum_lines(rows) if line.fault), stream
    )
    stream.write(',\n  "rows": ')
    _print_list((_line_object(axes, line) for line in sum_lines(rows) if line.strategy), stream)
    stream.write("\n}\n")
    return bool(faults)


def _print_list(items: Iterable[dict[str, Any]], stream: TextIO) -> int:
    """The items as an array one step inside; how many there were."""
    count = 0
    for count, item in enumerate(items, 1):
        stream.write(("[\n" if count == 1 else ",\n") + indent(_json(item), "    "))
    stream.write("\n  ]" if count else "[]")
    return count


def _json(value: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _cost(line: SweepLine) -> dict[str, Any]:
    """Dollars; where no price is known, None, the tokens that must be computed and how much need not be."""
    if line.is_priced:
        error_margin = {} if line.most is None else {"cost_range_usd": [exact(line.cost), exact(line.most)]}
        return {"cost_usd": exact(line.cost), **error_margin}
    share = None if line.cache_hit_rate is None else exact(round(line.cache_hit_rate, 6))
    return {"cost_usd": None, "prefill_tokens": exact(line.cost), "cache_hit_rate": share}


def _point_object(axes: Sequence[str], line: SweepLine) -> dict[str, Any]:
    return {"at": dict(zip(axes, line.labels, strict=True)), "strategy": line.strategy or None}


def _line_object(axes: Sequence[str], line: SweepLine) -> dict[str, Any]:
    if not line.has_seeds:
        return {**_point_object(axes, line), **pick(line.first, *COUNTS), **_cost(line)}
    unit = "usd" if line.is_priced else "tokens"
    return {
        **_point_object(axes, line),
        "seeds": len(line.costs),
        **pick(line.first, "calls", "errors"),
        **_cost(line),
        f"percentiles_{unit}": {str(percent): exact(value) for percent, value in line.percentiles.items()},
        "convergence": line.convergence,
    }


class SweepSummary:
    """What is kept of a sweep's lines to be printed: the first of them, the first faults, and who won how often."""

    def __init__(self) -> None:
        self.lines: list[SweepLine] = []
        self.faults: list[SweepLine] = []
        self.count = self.fault_count = 0
        self.winners: Counter[tuple[str, ...]] = Counter()
        self.least = self.most = Decimal(0)
        self.is_priced = True
        self.may_miss = False

    def add(self, point: Sequence[SweepLine]) -> None:
        for line in point:
            if line.strategy:
                self.is_priced = self.is_priced and line.is_priced
                self.may_miss = self.may_miss or line.most is not None
                self.count += 1
                self.lines += [line] if self.count <= MOST_LINES else []
            if line.fault:
                self.fault_count += 1
                self.faults += [line] if self.fault_count <= MOST_FAULTS else []
        good = [line for line in point if line.strategy and not line.first.errors]
        if good:
            cost = min(line.cost for line in good)
            self.least, self.most = (min(self.least, cost), max(self.most, cost)) if self.winners else (cost, cost)
            self.winners[tuple(line.strategy for line in good if line.cost == cost)] += 1  # several where they tie


def print_sweep(
    name: str, axes: Sequence[str], cells: int, rows: Iterable[SweepRow], stream: TextIO, out: Path | None
) -> bool:
    """Print the sweep to `stream`, and tell whether there were faults; colour only where the terminal wants it."""
    summary = SweepSummary()
    for point in sum_points(rows):
        summary.add(point)
    console = inert_console(stream, highlight=False, soft_wrap=True)
    grid = f"{' × '.join(axes)} · " if axes else ""
    console.print(Text(f"{name}   {grid}{count_text(cells, 'cell')}"))
    for sentence in filter(None, [_answer(summary), BEST_EFFORT if summary.may_miss else ""]):
        console.print(Text(sentence))
    fitted = fit_table(_sweep_table(axes, summary.lines, console.width), console.width, LEAST_STRATEGY)
    if summary.lines:
        console.print()
        console.print(render_table(fitted), soft_wrap=False)
    where = f" in {out}" if out else "; --out F.parquet keeps all"
    below = [f"… {summary.count - MOST_LINES:,} more{where}"] if summary.count > MOST_LINES else []
    if summary.faults:
        rest = "all other cells were computed" if summary.lines else "no cell could be evaluated"
        below.append(f"\n{count_text(summary.fault_count, 'error')}; {rest}:")
    for line in summary.faults:
        at = ", ".join(f"{axis}={label}" for axis, label in zip(axes, line.labels, strict=True))
        below.append(f"  {at or 'the scenario'}{f' {line.strategy}' if line.strategy else ''}: {line.fault}")
    if summary.fault_count > MOST_FAULTS:
        below.append(f"  … {summary.fault_count - MOST_FAULTS:,} more{where}")
    for sentence in (*below, *([f"\ntable   {out}"] if out else [])):
        console.print(Text(sentence))
    if note := hidden_note([fitted], "--out F.csv"):
        console.print(Text(note))
    return bool(summary.faults)


def _answer(summary: SweepSummary) -> str:
    """ "a is cheapest everywhere: $0.10 to $0.20.", "Who is cheapest depends on the point: a at 3, b at 1 of 4."."""
    ranked, points, is_priced = summary.winners.most_common(), summary.winners.total(), summary.is_priced
    first = summary.lines[0] if summary.lines else None
    seeds = f", means of {len(first.costs):,} seeds" if first and first.has_seeds else ""
    if len(ranked) > 1:
        ties = ((names[0] if len(names) == 1 else f"a tie of {all_of(names)}", times) for names, times in ranked)
        places = ", ".join(f"{who} at {times}" for who, times in ties)
        what = "Who is cheapest" if is_priced else "Who has least to compute"
        return f"{what} depends on the point: {places} of {points}{seeds}."
    if not ranked or (len({line.strategy for line in summary.lines}) == 1 and not is_priced):
        return ""
    names = ranked[0][0]
    verb = "tie with least to compute" if len(names) > 1 else "has least to compute"
    if is_priced:
        verb = f"{'tie as the cheapest' if len(names) > 1 else 'is cheapest'}{' at best' * summary.may_miss}"
    low, high = (dollars(amount) if is_priced else tokens(int(amount)) for amount in (summary.least, summary.most))
    several = points > 1
    return f"{all_of(names)} {verb}{' everywhere' * several}: {low}{f' to {high}' * several}{seeds}."


def _sweep_table(axes: Sequence[str], lines: Sequence[SweepLine], width: int) -> Table:
    """The strategies with the point that each line is of, and its figures; narrow, an axis has its path's last word."""
    columns = [Column("name", "strategy", [line.strategy for line in lines], right=False)]
    for number, axis in enumerate(axes):
        labels = [line.labels[number] for line in lines]
        stems = [Path(label).stem if label.endswith(RECORDINGS) else label for label in labels]
        cells = [shorten_middle(stem, LONGEST_LABEL) for stem in stems]
        header = axis.rpartition(".")[2] if width < 100 else axis
        columns.append(Column(f"axis {axis}", header, cells, right=False, leads=True))
    is_priced = all(line.is_priced for line in lines)
    rates = percent_column([one.cache_hit_rate for one in lines])
    shares = [] if is_priced else [_column("cache hit rate", rates, COMPARISON)]
    costs = _costs(lines, [(line.cost, line.most) for line in lines])
    errors = [line.first.errors for line in lines]  # calls without usage, whose tokens are in no other column
    refused = [_column("refused", [f"{calls:,}" for calls in errors], COMPARISON)] if any(errors) else []
    if not lines or not lines[0].has_seeds:
        calls = _column("calls", [f"{line.first.calls:,}" for line in lines], COUNT)
        return Table([*columns, calls, *refused, *shares, _column("cost" if is_priced else "prefill to do", costs)])
    settled = [f"± {percent(line.convergence)}" if line.convergence is not None else UNKNOWN for line in lines]
    columns += [*refused, *shares, _column("mean", costs), _column("settled", settled, LOWER_BOUND)]
    for at in PERCENTILES:
        cells = _costs(lines, [(line.percentiles[at], line.most_percentiles.get(at)) for line in lines])
        columns.append(_column(f"p{at}", cells, COMPARISON if at in SPREAD else COUNT))
    return Table(columns)


def _column(head: str, cells: list[str], rank: int = ANSWER) -> Column:
    return Column(head, head, point_aligned(cells), rank=rank)


def _costs(lines: Sequence[SweepLine], amounts: Sequence[tuple[Decimal, Decimal | None]]) -> list[str]:
    """Dollars in one precision; tokens of prefill where no price is known."""
    places = dollar_places(amount for pair in amounts for amount in pair)
    return [
        dollar_range(amount, most, places) if line.is_priced else tokens(int(amount))
        for line, (amount, most) in zip(lines, amounts, strict=True)
    ]
