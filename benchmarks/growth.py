"""How the time to replay a synthetic conversation grows with its length: the exponent of a power law fitted to it.

    python benchmarks/growth.py [--turns 200 400 800 1600 3200] [--runs 3] [--json]

Each length is replayed `runs` times on a model that keeps thinking and on one that strips it; the best time counts. The
exponent is the slope of log(time) over log(turns), the worse of the two models. 1 is linear; 2 is what looking at the
whole conversation again at every call would cost.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections import deque
from collections.abc import Sequence
from math import log
from time import process_time

from cachecost.conversations.calls import date_call
from cachecost.conversations.distributions import SyntheticSpec, synthetic
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.strategies.presets import PRESETS

MODELS = ("claude-opus-4-6", "claude-sonnet-4-5")
TURNS = (200, 400, 800, 1_600, 3_200)
HEAD_TOOLS, HEAD_SYSTEM = (6_000,), (3_000,)


def replay_seconds(turns: int, model: str) -> float:
    """Processor seconds to plan and simulate a conversation of `turns` human turns of five calls, once it is made.

    Tokens are counted as bytes: then no context window ends the conversation (rule 6).
    """
    spec = SyntheticSpec(seed=1, turns=turns, model=model, head_tools=HEAD_TOOLS, head_system=HEAD_SYSTEM)
    conversation = synthetic(spec)
    simulation = Simulation(ReplaySetup(RuleBook(), PriceBook.load(), tokens="bytes"))
    gc.collect()
    start = process_time()
    calls = PRESETS["base"].plan(conversation)
    deque(simulation.rows(map(date_call, calls)), maxlen=0)
    return process_time() - start


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log(seconds) over log(sizes), by least squares."""
    points = [(log(size), log(time)) for size, time in zip(sizes, seconds, strict=True)]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def measured(turns: Sequence[int], runs: int) -> dict[str, list[float]]:
    """The best seconds of each length, by model. Lengths take turns; the first replay of all only warms up."""
    replay_seconds(turns[0], MODELS[0])
    rounds = [{model: [replay_seconds(size, model) for size in turns] for model in MODELS} for _ in range(runs)]
    return {model: [min(times) for times in zip(*(one[model] for one in rounds), strict=True)] for model in MODELS}


def main() -> None:
    parser = argparse.ArgumentParser(description="The exponent of replay time over conversation length.")
    parser.add_argument("--turns", type=int, nargs="+", default=TURNS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    seconds = measured(options.turns, options.runs)
    exponents = {model: exponent(options.turns, times) for model, times in seconds.items()}
    if options.json:
        print(json.dumps({"exponent": max(exponents.values()), "turns": options.turns, "seconds": seconds}))
        return
    for model, times in seconds.items():
        print(f"{model:18} {'  '.join(f'{time:.3f} s' for time in times)}   length ^ {exponents[model]:.2f}")


if __name__ == "__main__":
    main()
