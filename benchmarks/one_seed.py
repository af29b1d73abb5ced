"""One seed alone, as calls for the engine: what the arrays must agree with to the last digit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.simulation.workload import Workload
from cachecost.sweep.montecarlo import MAIN, Draw, Times, draw_times, main_calls, seeded_rules

RETRIED = "failed"


def traffic_alone(traffic: Workload, draw: Draw, seed: int) -> Workload:
    """The calls with the times that `seed` draws, and the rules whose draws follow the seed. They start cold."""
    rules = seeded_rules(traffic.setup.rules, draw, seed)
    setup = replace(traffic.setup, rules=rules, starts_warm=False)
    return replace(traffic, calls=calls_alone(traffic, draw, seed), setup=setup)


def calls_alone(traffic: Workload, draw: Draw, seed: int) -> list[Call]:
    """The calls that `seed` makes of the traffic, in the order they are simulated. Days stay as planned."""
    times = draw_times(main_calls(traffic.calls), draw, [seed])
    return list(_timed(traffic, draw, times))


def _timed(traffic: Workload, draw: Draw, times: Times) -> Iterator[Call]:
    main = 0
    for call in traffic.calls:
        if call.purpose != MAIN:
            yield replace(call, start=float(times.at(call.start)[0]))
            continue
        waited = call.first_token_s if times.waited is None else float(times.waited[0, main])
        if draw.retries.billed and times.retried[0, main]:
            yield _retried(replace(call, start=float(times.first[0, main]), first_token_s=waited))
        yield replace(call, start=float(times.final[0, main]), first_token_s=waited)
        main += 1


def _retried(call: Call) -> Call:
    if call.has_failed:
        return call
    unbilled: dict[str, Any] = {
        "billed": None,
        "iterations": (),
        "status": None,
        "lengths": None,
        "output_billed": None,
    }
    return replace(call, **unbilled, purpose=RETRIED, is_simulated=True)
