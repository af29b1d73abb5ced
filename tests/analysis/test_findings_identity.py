"""What findings claim is never more than is there: below the bill less its lower bound, and below each call's cost."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from planted.check import Found, asked, explained, written
from planted.prices import costs
from planted.random_logs import random_log
from slow_cases import mostly_slow

LOGS = 300
"""Random logs of each run; the slow test has MANY."""
MANY = 1000
PLACED = 24
"""Logs whose prompts have no faults, also compared with the lower bound of `optimize`."""
BATCH = 50


@cache
def found_in(seed: int, prompt_faults: bool = True) -> Found:
    with TemporaryDirectory() as folder:
        return explained(written(Path(folder, "log.jsonl"), random_log(seed, prompt_faults)))


@cache
def costs_of(seed: int) -> tuple[Decimal, ...]:
    """What each call of a random log costs."""
    return costs(random_log(seed))


def batches(count: int, size: int = BATCH) -> list[range]:
    return [range(first, first + size) for first in range(0, count, size)]


def findings_usd(found: Found) -> Decimal:
    return sum((Decimal(finding["cost_usd"]) for finding in found["findings"]), Decimal())


def overdrawn(found: Found, calls: tuple[Decimal, ...]) -> list[int]:
    """Calls whose findings are more than they cost."""
    by_call: dict[int, Decimal] = defaultdict(Decimal)
    for finding in found["findings"]:
        by_call[finding["call"]] += Decimal(finding["cost_usd"])
    return [call for call, usd in by_call.items() if usd > calls[call - 1]]


@pytest.mark.parametrize("seeds", mostly_slow(batches(LOGS), 3))
def test_findings_are_the_avoidable_dollars(seeds: range) -> None:
    for seed in seeds:
        found = found_in(seed)
        assert Decimal(found["cost_usd"]) == sum(costs_of(seed)), seed
        assert findings_usd(found) == Decimal(found["avoidable_usd"]), seed
        assert all(Decimal(finding["cost_usd"]) > 0 for finding in found["findings"]), seed


@pytest.mark.parametrize("seeds", mostly_slow(batches(LOGS), 3))
def test_no_call_has_findings_above_its_own_cost(seeds: range) -> None:
    assert not {seed: calls for seed in seeds if (calls := overdrawn(found_in(seed), costs_of(seed)))}


@pytest.mark.parametrize("seeds", mostly_slow(batches(LOGS), 3))
def test_findings_leave_at_least_the_lower_bound(seeds: range) -> None:
    """The bound is that of the log as the fixes would send it."""
    assert not [seed for seed in seeds if not leaves_the_bound(found_in(seed))]


def leaves_the_bound(found: Found) -> bool:
    return findings_usd(found) <= Decimal(found["cost_usd"]) - Decimal(found["lower_bound_usd"])


@pytest.mark.parametrize("seeds", mostly_slow(batches(PLACED, 8), 1))
def test_where_prompts_have_no_faults_the_bound_of_optimize_holds(seeds: range) -> None:
    assert not [seed for seed in seeds if not is_optimal_enough(seed)]


def is_optimal_enough(seed: int) -> bool:
    with TemporaryDirectory() as folder:
        path = written(Path(folder, "log.jsonl"), random_log(seed, prompt_faults=False))
        found, bound = explained(path), Decimal(json.loads(asked("optimize", path))["lower_bound_usd"])
    return findings_usd(found) <= Decimal(found["cost_usd"]) - bound


@pytest.mark.long
@pytest.mark.parametrize("seeds", batches(MANY)[LOGS // BATCH :])
def test_the_same_of_many_logs(seeds: range) -> None:
    for seed in seeds:
        found = found_in(seed)
        assert findings_usd(found) == Decimal(found["avoidable_usd"]), seed
        assert not overdrawn(found, costs_of(seed)), seed
        assert leaves_the_bound(found), seed
