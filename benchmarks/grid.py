"""Microseconds of a simulated call in a grid, against the same call in a replay of its own.

    python benchmarks/grid.py [--turns 400] [--runs 3] [--json]

Grids of 8 strategies × 3 models × 2 TTLs, alone and with 100 seeds; then all strategies there are, in one process
against one replay each. Conversations have five calls a turn; tokens are counted as bytes. Processor time, the least of
the runs; the exponent is that of the grid's time over twice the calls. `start_s` is what each replay of its own as a
process would take besides.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from math import log2
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time

from cachecost.conversations.distributions import LogNormal, SyntheticSpec, Uniform, synthetic
from cachecost.conversations.model import Conversation
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.simulation.workload import plan_workload
from cachecost.strategies.agent import Agent
from cachecost.strategies.registry import find_strategy, names
from cachecost.sweep.montecarlo import Draw, montecarlo
from cachecost.sweep.totals import SharedTotals

MODELS = ("claude-opus-4-6", "claude-sonnet-4-5", "claude-haiku-5-5")
LIVES = ("5m", "1h")
STRATEGIES = ("automatic", "base", "claude-code", "goose", "openhands", "progressive", "roo-code", "system-and-n")
DAY = date(2026, 11, 1)
PRICES = PriceBook.load(None, DAY)
SEEDS = 100
DRAW = Draw(turn=LogNormal(200, 300), loop=Uniform(2, 40))
HALF, MICRO = 2, 1e6


def conversation(turns: int) -> Conversation:
    return synthetic(SyntheticSpec(seed=1, turns=turns, calls=5, head_tools=(6_000,), head_system=(3_000,)))


def terms(model: str) -> ReplaySetup:
    return ReplaySetup(RuleBook(as_of=DAY), PRICES, tokens="bytes", model=model)


def grid(of: Conversation, *others: Conversation) -> int:
    """Simulated calls of the grid, every cell by what it shares with the others."""
    shared, calls = SharedTotals([of, *others]), 0
    for model in MODELS:
        for ttl in LIVES:
            for name in STRATEGIES:
                totals = shared.totals(f"{name}@{ttl}", terms(model))
                assert totals is not None, "nothing of this grid is unusual"
                calls += totals.calls
    return calls


def seeded_grid(of: Conversation) -> int:
    """Simulated calls of the grid with drawn pauses."""
    cells = [(f"{name}@{ttl}", model) for model in MODELS for ttl in LIVES for name in STRATEGIES]
    return sum(montecarlo(plan_workload(name, [of], terms(model)), DRAW, SEEDS).calls * SEEDS for name, model in cells)


def plain(of: Conversation) -> int:
    """Simulated calls of one replay a strategy, on one model with one TTL."""
    return sum(len(replay_strategy(name, of, terms(MODELS[0])).rows) for name in STRATEGIES)


def everyone() -> list[str]:
    """The strategies there are; ways to ask are left out where nobody asks."""
    return [name for name in names() if not (isinstance(one := find_strategy(name), Agent) and one.inquiry)]


def together(of: Conversation) -> int:
    """All strategies in one process. Those that look at what was paid are replayed as they would be alone."""
    shared, calls = SharedTotals([of]), 0
    for name in everyone():
        totals = shared.totals(name, terms(MODELS[0]))
        calls += totals.calls if totals else len(replay_strategy(name, of, terms(MODELS[0])).rows)
    return calls


def apart(of: Conversation) -> int:
    return sum(len(replay_strategy(name, of, terms(MODELS[0])).rows) for name in everyone())


def seconds(work: Callable[[Conversation], int], of: Conversation) -> tuple[float, int]:
    """Processor seconds, and the simulated calls."""
    gc.collect()
    start = process_time()
    calls = work(of)
    return process_time() - start, calls


def start_seconds() -> float:
    """Processor seconds until a process could begin to replay."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-c", "import cachecost.simulation.setup, cachecost.conversations.distributions"], check=True
    )
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(turns: int, runs: int) -> dict[str, float]:
    """Works take turns, so that a machine that slows down slows all; the least of each counts."""
    whole, half = conversation(turns), conversation(turns // HALF)
    works = {
        "plain": (plain, whole),
        "grid": (grid, whole),
        "half": (grid, half),
        "seeds": (seeded_grid, half),
        "together": (together, whole),
        "apart": (apart, whole),
    }
    rounds = [{name: seconds(*work) for name, work in works.items()} for _ in range(runs)]
    least = {name: min(one[name] for one in rounds) for name in works}
    each = {name: took / calls * MICRO for name, (took, calls) in least.items()}
    start_s = start_seconds()
    alone = least["apart"][0] + start_s * len(everyone())
    return {
        **{f"{name}_us": each[name] for name in ("plain", "grid", "seeds", "together")},
        "ratio": each["grid"] / each["plain"],
        "exponent": log2(least["grid"][0] / least["half"][0]),
        "strategies": len(everyone()),
        "start_s": start_s,
        "one_process": least["together"][0] / least["apart"][0],
        "of_processes": (least["together"][0] + start_s) / alone,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Microseconds of a simulated call in a grid.")
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measured(options.turns, options.runs)
    if options.json:
        print(json.dumps(found))
        return
    print(f"plain     {found['plain_us']:6.1f} µs a call   a replay of its own")
    print(
        f"grid      {found['grid_us']:6.1f} µs a call   {found['ratio']:.3f} × plain, length ^ {found['exponent']:.2f}"
    )
    print(f"seeds     {found['seeds_us']:6.1f} µs a call   {SEEDS} seeds a cell")
    print(
        f"together  {found['together_us']:6.1f} µs a call   {found['strategies']} strategies: "
        f"{found['one_process']:.2f} × as many replays, {found['of_processes']:.2f} × as many processes"
    )


if __name__ == "__main__":
    main()
