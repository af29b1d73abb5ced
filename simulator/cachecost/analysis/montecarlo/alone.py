"""One seed alone, as calls for the engine: what the arrays must agree with to the last digit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from cachecost.analysis.montecarlo.draws import Draw
from cachecost.analysis.montecarlo.times import MAIN, Times, drawn_times, of_calls
from cachecost.providers.rules import RuleBook
from cachecost.simulation import Call
from cachecost.traffic import Traffic

RETRIED = "failed"


def traffic_alone(traffic: Traffic, draw: Draw, seed: int) -> Traffic:
    """The calls with the times that `seed` draws, and the rules whose draws follow the seed. They start cold."""
    rules = seeded(traffic.rules, draw, seed)
    return replace(traffic, calls=calls_alone(traffic, draw, seed), rules=rules, starts_warm=False)


def seeded(rules: RuleBook, draw: Draw, seed: int = 0) -> RuleBook:
    """The rules with the draw's evictions and lags, drawn by `seed`."""
    given = rules.switches.given | set(draw.readings) | {"seed"}
    over: dict[str, Any] = {**draw.readings, "seed": seed, "given": given}
    readings = replace(rules.switches, **over)
    return RuleBook(readings, rules.as_of, rules.own)


def calls_alone(traffic: Traffic, draw: Draw, seed: int) -> list[Call]:
    """The calls that `seed` makes of the traffic, in the order they are simulated. Days stay as planned."""
    times = drawn_times(of_calls(traffic.calls), draw, [seed])
    return list(_timed(traffic, draw, times))


def _timed(traffic: Traffic, draw: Draw, times: Times) -> Iterator[Call]:
    main = 0
    for call in traffic.calls:
        if call.purpose != MAIN:
            yield replace(call, start=float(times.at(call.start)[0]))
            continue
        waited = call.first_token_s if times.waited is None else float(times.waited[0, main])
        if draw.retries.billed and times.retried[0, main]:
            yield replace(call, start=float(times.first[0, main]), first_token_s=waited, purpose=RETRIED)
        yield replace(call, start=float(times.final[0, main]), first_token_s=waited)
        main += 1
