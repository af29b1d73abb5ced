"""The online policy: it looks at the past only, its requests are legal, and it comes near the lower bound."""

from __future__ import annotations

from datetime import date

import pytest

from cachecost.analysis.optimum.lower_bound import lower_bound_of
from cachecost.conversations.calls import Call, date_call
from cachecost.conversations.distributions import SyntheticPauses, SyntheticSpec, synthetic
from cachecost.conversations.model import Conversation
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import plan_workload
from cachecost.strategies.agent import Agent
from cachecost.strategies.placements import Placement
from cachecost.strategies.presets import BASE, LEARNED

ADAPTIVE = LEARNED
DAY = date(2026, 10, 1)


def terms() -> ReplaySetup:
    return ReplaySetup(RuleBook(as_of=DAY), PriceBook.load(None, DAY), model="claude-opus-4-6")


def conversation(pause: float, turns: int = 10) -> Conversation:
    spec = SyntheticSpec(
        seed=3,
        turns=turns,
        pauses=SyntheticPauses(turn=pause),
        head_tools=(8_000,),
        head_system=(4_000,),
        model="claude-opus-4-6",
    )
    return synthetic(spec)


def cost(agent: Agent, told: Conversation) -> float:
    simulation = Simulation(terms())
    rows = [simulation.row(date_call(call)) for call in agent.plan(told)]
    assert not any(row.error for row in rows)
    return float(sum(row.cost.total for row in rows))


@pytest.mark.parametrize(("pause", "most"), [(20.0, 1.1), (420.0, 1.1), (1_200.0, 1.1), (3_000.0, 1.1)])
def test_it_comes_near_the_clairvoyant_floor(pause: float, most: float) -> None:
    told = conversation(pause)
    lower_bound = float(lower_bound_of(plan_workload("base", [told], terms()).calls, terms()).usd)
    found = cost(ADAPTIVE, told)
    assert lower_bound <= found <= lower_bound * most


@pytest.mark.parametrize("pause", [420.0, 1_200.0])
def test_it_beats_five_minutes_and_an_hour_throughout_where_pauses_mix(pause: float) -> None:
    told = conversation(pause)
    fives, hours = (cost(Agent(name=ttl, placement=Placement(BASE, ttl)), told) for ttl in ("5m", "1h"))  # type: ignore[arg-type]
    assert cost(ADAPTIVE, told) < min(fives, hours)


def seen(calls: list[Call]) -> list[object]:
    return [
        (call.start, [(breakpoint.block_key, breakpoint.ttl) for breakpoint in call.request.breakpoints])
        for call in calls
    ]


def test_what_comes_later_changes_nothing_before() -> None:
    whole = conversation(900.0)
    replies = [number for number, event in enumerate(whole.events) if type(event).__name__ == "Reply"]
    from dataclasses import replace

    for keep in (5, 12, 20):
        cut = replace(whole, events=whole.events[: replies[keep] + 1])
        long = [call for call in ADAPTIVE.plan(whole) if call.purpose == "main"]
        short = [call for call in ADAPTIVE.plan(cut) if call.purpose == "main"]
        assert seen(short) == seen(long)[: len(short)]


def test_a_breakpoint_never_follows_one_that_lives_shorter_and_there_are_at_most_four() -> None:
    for call in ADAPTIVE.plan(conversation(900.0)):
        ttls = [breakpoint.ttl for breakpoint in call.request.breakpoints]
        assert len(ttls) <= 4 and ttls == sorted(ttls)
