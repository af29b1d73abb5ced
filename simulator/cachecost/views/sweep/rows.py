"""A sweep as people and machines read it: one line a point of the grid and strategy, seeds summed up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from math import ceil, sqrt
from statistics import stdev
from textwrap import indent
from typing import Any, TextIO

import msgspec

from cachecost.base.formatting import exact
from cachecost.sweep.rows import COUNTS, NO_SEED, SweepRow

PERCENTILES = (5, 25, 50, 75, 95)
CONFIDENCE = 1.96


@dataclass(frozen=True, slots=True)
class SweepLine:
    """A strategy at one point of the grid: its first row, and the dollars of all its seeds in the order of their
    size.

    Where no price is known `costs` are input tokens that must be computed, and not dollars. `cache_hit_rate` is how
    much of the input of all seeds was read; None where there was none. `fault`: "" is none. Where hits are best
    effort `costs` are the least, and `missed` the most, in the order of their size, too.
    """

    first: SweepRow
    costs: Sequence[Decimal]
    fault: str
    is_priced: bool = True
    cache_hit_rate: Decimal | None = None
    missed: Sequence[Decimal] = ()

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


class _Sums:
    """A line in the making."""

    def __init__(self, first: SweepRow) -> None:
        self.first = first
        self.costs: list[Decimal | None] = []
        self.missed: list[Decimal] = []
        self.may_miss = False
        self.prefill: list[int] = []
        self.read = 0
        self.fault = ""

    def add(self, row: SweepRow) -> None:
        self.costs.append(row.cost_usd)
        self.missed += [cost for cost in (row.cost_if_missed_usd, row.cost_usd) if cost is not None][:1]
        self.may_miss = self.may_miss or row.cost_if_missed_usd is not None
        self.prefill.append(row.prefill)
        self.read += row.read
        self.fault = self.fault or row.fault

    def line(self, is_priced: bool) -> SweepLine:
        costs = [cost for cost in self.costs if cost is not None] if is_priced else list(map(Decimal, self.prefill))
        whole = self.read + sum(self.prefill)
        share = Decimal(self.read) / whole if whole else None
        missed = sorted(self.missed) if is_priced and self.may_miss else ()
        return SweepLine(self.first, sorted(costs), self.fault, is_priced, share, missed)


def points_of(rows: Iterable[SweepRow]) -> Iterator[list[SweepLine]]:
    """Rows in the order of the grid, summed up over their seeds: of each point its strategies. Holds one point."""
    for _, point in groupby(rows, lambda row: row.key.labels):
        sums: dict[str, _Sums] = {}
        for row in point:
            sums.setdefault(row.strategy, _Sums(row)).add(row)
        is_priced = all(cost is not None for one in sums.values() for cost in one.costs)
        yield [one.line(is_priced) for one in sums.values()]


def lines_of(rows: Iterable[SweepRow]) -> Iterator[SweepLine]:
    """The lines of all points, one after the other."""
    return (line for point in points_of(rows) for line in point)


def print_json(scenario: str, axes: Sequence[str], cells: int, rows: Iterable[SweepRow], stream: TextIO) -> bool:
    """Print what `sweep --json` prints, line by line, and tell whether there were faults. `rows` are read twice."""
    head = {"format": 1, "scenario": scenario, "axes": list(axes), "cells": cells}
    stream.write(_json(head).removesuffix("\n}") + ',\n  "faults": ')
    faults = _print_list(
        ({**_point_object(axes, line), "fault": line.fault} for line in lines_of(rows) if line.fault), stream
    )
    stream.write(',\n  "rows": ')
    _print_list((_object(axes, line) for line in lines_of(rows) if line.strategy), stream)
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


def _object(axes: Sequence[str], line: SweepLine) -> dict[str, Any]:
    if not line.has_seeds:
        counts = {name: getattr(line.first, name) for name in COUNTS}
        return {**_point_object(axes, line), **counts, **_cost(line)}
    unit = "usd" if line.is_priced else "tokens"
    return {
        **_point_object(axes, line),
        "seeds": len(line.costs),
        "calls": line.first.calls,
        "errors": line.first.errors,
        **_cost(line),
        f"percentiles_{unit}": {str(percent): exact(value) for percent, value in line.percentiles.items()},
        "convergence": line.convergence,
    }
