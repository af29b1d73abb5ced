"""Seconds of a Monte Carlo, and what the same seeds take one by one in the engine.

    python benchmarks/sweep_seeds.py [--seeds 10000] [--json]

A conversation of 100 calls, marked progressively; pauses drawn, then evictions and billed retries, too. Processor time.
"""

from __future__ import annotations

import argparse
import json
from datetime import date
from time import process_time

from cachecost.conversations.distributions import LogNormal, SyntheticSpec, Uniform, synthetic
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, plan_workload
from cachecost.sweep.montecarlo import Draw, Retries, montecarlo
from one_seed import traffic_alone

MODEL = "claude-opus-4-6"
ONE_BY_ONE = 20
PAUSES = Draw(turn=LogNormal(200, 300), loop=Uniform(2, 40), first_token=Uniform(0.5, 4))
ALL = Draw(PAUSES.turn, PAUSES.loop, PAUSES.first_token, Retries(0.05, 5, billed=True), eviction=0.02)


def traffic() -> Workload:
    """20 turns of 5 calls."""
    spec = SyntheticSpec(seed=1, turns=20, calls=5, head_tools=(21_000,), head_system=(6_000,), model=MODEL)
    terms = ReplaySetup(RuleBook(as_of=date(2026, 11, 1)), PriceBook.load(), tokens="bytes", model=MODEL)
    return plan_workload("progressive", [synthetic(spec)], terms)


def measured(seeds: int) -> dict[str, dict[str, float]]:
    of = traffic()
    montecarlo(of, PAUSES, 10)
    return {name: _timed(of, draw, seeds) for name, draw in (("pauses", PAUSES), ("all", ALL))}


def _timed(of: Workload, draw: Draw, seeds: int) -> dict[str, float]:
    start = process_time()
    found = montecarlo(of, draw, seeds)
    together = process_time() - start
    start = process_time()
    for seed in range(1, ONE_BY_ONE + 1):
        alone = traffic_alone(of, draw, seed)
        cost = sum(row.cost.total for row in alone.simulation().rows(alone.calls))
        assert cost == found.costs[seed - 1], "the arrays and the engine differ"
    engine = (process_time() - start) / ONE_BY_ONE * seeds
    calls = len(of.calls) * seeds
    return {
        "seconds": together,
        "engine_s": engine,
        "ns_a_call": together / calls * 1e9,
        "converged": found.convergence,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds of a Monte Carlo.")
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measured(options.seeds)
    if options.json:
        print(json.dumps(found))
        return
    for name, one in found.items():
        print(
            f"{name:7} {one['seconds']:6.2f} s   {one['ns_a_call']:5.0f} ns a call and seed   "
            f"one by one {one['engine_s']:6.1f} s   mean settled to ± {one['converged']:.2%}"
        )


if __name__ == "__main__":
    main()
