"""A sweep as people and machines read it: one line a point of the grid and strategy, seeds summed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil, sqrt
from statistics import stdev
from typing import Any

from cachecost.numbers import exact
from cachecost.sweep.rows import COUNTS, NO_SEED, Row

PERCENTILES = (5, 25, 50, 75, 95)
CONFIDENCE = 1.96


@dataclass(frozen=True, slots=True)
class Line:
    """A strategy at one point of the grid: the rows of all its seeds. `fault`: "" is none."""

    labels: tuple[str, ...]
    strategy: str
    rows: Sequence[Row]
    costs: Sequence[Decimal]
    fault: str

    @property
    def has_seeds(self) -> bool:
        return self.rows[0].key.seed != NO_SEED

    @property
    def cost(self) -> Decimal:
        """USD: that of the scenario as written, or the mean of its seeds."""
        return sum(self.costs, Decimal(0)) / len(self.costs)

    @property
    def percentiles(self) -> dict[int, Decimal]:
        """USD by nearest rank."""
        return {percent: self.costs[max(1, ceil(percent / 100 * len(self.costs))) - 1] for percent in PERCENTILES}

    @property
    def convergence(self) -> float | None:
        """How far the mean may be from the true one, 95 times of 100, as a share of it; None for a single seed."""
        if len(self.costs) < 2 or not self.cost:
            return None
        return CONFIDENCE * stdev(map(float, self.costs)) / sqrt(len(self.costs)) / float(self.cost)


def lines_of(rows: Sequence[Row]) -> list[Line]:
    """Rows in the order of the grid, summed up over their seeds."""
    groups: dict[tuple[tuple[str, ...], str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.key.labels, row.strategy), []).append(row)
    return [_line(labels, strategy, some) for (labels, strategy), some in groups.items()]


def _line(labels: tuple[str, ...], strategy: str, rows: Sequence[Row]) -> Line:
    fault = next((row.fault for row in rows if row.fault), "")
    return Line(labels, strategy, rows, sorted(row.cost_usd for row in rows), fault)


def sweep_object(scenario: str, axes: Sequence[str], cells: int, rows: Sequence[Row]) -> dict[str, Any]:
    """What `sweep --json` prints."""
    lines = lines_of(rows)
    return {
        "format": 1,
        "scenario": scenario,
        "axes": list(axes),
        "cells": cells,
        "faults": [{**_named(axes, line), "fault": line.fault} for line in lines if line.fault],
        "rows": [_object(axes, line) for line in lines if line.strategy],
    }


def _named(axes: Sequence[str], line: Line) -> dict[str, Any]:
    return {"at": dict(zip(axes, line.labels, strict=True)), "strategy": line.strategy or None}


def _object(axes: Sequence[str], line: Line) -> dict[str, Any]:
    first = line.rows[0]
    if not line.has_seeds:
        counts = {name: getattr(first, name) for name in COUNTS}
        return {**_named(axes, line), **counts, "cost_usd": exact(first.cost_usd)}
    return {
        **_named(axes, line),
        "seeds": len(line.rows),
        "calls": first.calls,
        "errors": first.errors,
        "cost_usd": exact(line.cost),
        "percentiles_usd": {str(percent): exact(value) for percent, value in line.percentiles.items()},
        "convergence": line.convergence,
    }
