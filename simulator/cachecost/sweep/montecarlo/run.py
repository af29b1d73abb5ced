"""Many seeds at once: the structure is made once, then every call is one step over all seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cachecost.conversations.calls import Call
from cachecost.ledger.rows import NOT_EVALUATED
from cachecost.providers.rules import RuleBook
from cachecost.simulation.workload import Workload
from cachecost.sweep.montecarlo.distribution import TOKEN_FIELDS, CostDistribution
from cachecost.sweep.montecarlo.draws import Draw, Floats
from cachecost.sweep.montecarlo.seed_caches import SeedCaches, Some
from cachecost.sweep.montecarlo.times import MAIN, draw_times, main_calls
from cachecost.sweep.montecarlo.visits import Visit, VisitTable, build_visits

SEEDS_AT_ONCE = 2_000
"""So many that numpy's own overhead does not count, so few that their entries stay in the processor's cache."""
SAFE = 2**62
PER_TOKEN_PLACES = 6
Ints = NDArray[np.int64]


def montecarlo(traffic: Workload, draw: Draw, seeds: int | Sequence[int]) -> CostDistribution:
    """Dollars of the traffic's calls under each of `seeds` (a number: from 1 on), times drawn anew for each.

    Only times vary: which calls there are, what they send and the day whose rules and prices hold stay as planned. Each
    seed costs exactly what the engine makes of the calls at its times, one by one. Raises CannotEvaluate.
    """
    wanted = range(1, seeds + 1) if isinstance(seeds, int) else list(seeds)
    if not wanted:
        raise ValueError("seeds: expected one or more; got none")
    traffic.require_breakpoints("the Monte Carlo of many seeds at once")
    on = replace(traffic, setup=replace(traffic.setup, rules=seeded_rules(traffic.setup.rules, draw)))
    table = build_visits(on, 2 if draw.retries.billed and draw.retries.rate else 1)
    bills = _Bills(table)
    parts = [
        _Chunk(on.calls, table, draw, wanted[first : first + SEEDS_AT_ONCE]).run(bills)
        for first in range(0, len(wanted), SEEDS_AT_ONCE)
    ]
    units, tokens = (np.concatenate(column) for column in zip(*parts, strict=True))
    errors = tuple(error for _, error in table.errors)
    not_evaluated = tuple(error for kind, error in table.errors if kind == NOT_EVALUATED)
    calls = len(traffic.calls)
    return CostDistribution(traffic.strategy, wanted, units, bills.places, tokens, calls, errors, not_evaluated)


def seeded_rules(rules: RuleBook, draw: Draw, seed: int = 0) -> RuleBook:
    """The rules with the evictions and visibility lags of the draw, which `seed` decides."""
    given = rules.assumptions.given | set(draw.readings) | {"seed"}
    over: dict[str, Any] = {**draw.readings, "seed": seed, "given": given}
    return RuleBook(replace(rules.assumptions, **over), rules.as_of, rules.own)


class _Bills:
    """Usage and dollars of every case of every visit. Dollars are whole units, so that sums are exact."""

    def __init__(self, table: VisitTable) -> None:
        costs = [[visit.prices.total_cost(usage) for usage in visit.usages] for visit in table.visits]
        exponents = [_exponent(cost) for row in costs for cost in row]
        self.places = max([PER_TOKEN_PLACES, *(-exponent for exponent in exponents)])
        units = [[int(cost.scaleb(self.places)) for cost in row] for row in costs]
        most = 2 * sum(max(row) for row in units)
        self.type = np.dtype(np.int64) if most < SAFE else np.dtype(object)
        self.units = [np.array(row, dtype=self.type) for row in units]
        self.tokens = [
            np.array([[getattr(usage, name) for name in TOKEN_FIELDS] for usage in visit.usages], dtype=np.int64)
            for visit in table.visits
        ]


def _exponent(cost: Decimal) -> int:
    exponent = cost.normalize().as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


class _Chunk:
    """Some seeds on their way through all visits."""

    def __init__(self, calls: Sequence[Call], table: VisitTable, draw: Draw, seeds: Sequence[int]) -> None:
        self._calls = calls
        self._draw = draw
        self._visits = table.visits
        self._times = draw_times(main_calls(calls), draw, seeds)
        writes = 2 * sum(len(visit.writes) for visit in table.visits)
        self._caches = SeedCaches(table.entries, seeds, writes)
        self._seeds = seeds

    def run(self, bills: _Bills) -> tuple[NDArray[np.object_] | Ints, Ints]:
        """Units and tokens of each seed."""
        units = np.zeros(len(self._seeds), dtype=bills.type)
        tokens = np.zeros((len(self._seeds), len(TOKEN_FIELDS)), dtype=np.int64)
        for number, visit, start, first_token, active in self._steps():
            case = self._caches.visit(visit, start, first_token, active)
            if active is None:
                units += bills.units[number][case]
                tokens += bills.tokens[number][case]
            else:
                units += np.where(active, bills.units[number][case], 0)
                tokens += np.where(active[:, None], bills.tokens[number][case], 0)
        return units, tokens

    def _steps(self) -> Iterator[tuple[int, Visit, Floats, Floats | float, Some | None]]:
        """(number of the visit, visit, start, first token, the seeds that make it or None for all)."""
        main = _main_numbers(self._calls)
        for number, visit in enumerate(self._visits):
            call, column = self._calls[visit.attempt.call], main[visit.attempt.call]
            start = self._start(call, column, visit.attempt.is_final)
            active = None if visit.attempt.is_final else self._times.retried[:, column]
            if active is None or active.any():
                yield number, visit, start + visit.later_s, self._first_token(call, column, visit), active

    def _start(self, call: Call, column: int, is_final: bool) -> Floats:
        if call.purpose != MAIN:
            return self._times.at(call.start)
        return (self._times.final if is_final else self._times.first)[:, column]

    def _first_token(self, call: Call, column: int, visit: Visit) -> Floats | float:
        drawn = self._times.waited if call.purpose == MAIN else None
        return visit.first_token_s if drawn is None else drawn[:, column]


def _main_numbers(calls: Sequence[Call]) -> list[int]:
    """The number of each call among the main ones; that of the main call before, for others."""
    return [count - 1 for count in accumulate(call.purpose == MAIN for call in calls)]
