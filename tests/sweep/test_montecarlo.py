"""Many seeds at once cost exactly what each costs alone in the engine, whatever the rules, the breakpoints and the
draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.base.structs import replace
from cachecost.conversations.distributions import (
    Choice,
    LogNormal,
    SyntheticInquiries,
    SyntheticPauses,
    SyntheticSpec,
    Uniform,
    synthetic,
)
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.usage import Usage
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, plan_workload, read_workload
from cachecost.strategies.spec import StrategySpec
from cachecost.sweep.montecarlo import Draw, Retries, montecarlo, numbers, resample_pauses, retime, uniforms
from one_seed import calls_alone, traffic_alone
from slow_cases import examples

RECORDINGS = Path(__file__).parents[2] / "scenarios" / "recordings"
MODELS = ("claude-opus-4-6", "claude-sonnet-4-5", "claude-haiku-5-5")
TWO_LIVES = StrategySpec.model_validate(
    {"name": "two lives", "breakpoints": [{"last_tool": {"ttl": "1h"}}, {"last_system": {"ttl": "1h"}}, "last_message"]}
)
STRATEGIES: list[str | StrategySpec] = ["none", "automatic", "progressive", "answer_inquiry, forced", TWO_LIVES]
PRICES = PriceBook.load()
PAUSES = (None, 10, 300, Uniform(0, 900), LogNormal(200, 300), Choice((0, 299.999999, 300, 4_000), (1, 1, 1, 1)))


def traffic(
    strategy: str | StrategySpec = "progressive", rules: Any = (), day: date = date(2026, 11, 1), **spec: Any
) -> Workload:
    """A synthetic conversation as a strategy sends it."""
    told = {"turns": 4, "calls": 3, "head_tools": (6_000,), "head_system": (3_000,), "model": MODELS[0], **spec}
    terms = ReplaySetup(RuleBook(assumptions_from(dict(rules)), day), PRICES, tokens="bytes", model=str(told["model"]))
    return plan_workload(strategy, [synthetic(SyntheticSpec(**told))], terms)


def engine(alone: Workload) -> tuple[Decimal, Usage]:
    simulation = alone.simulation()
    rows = [simulation.row(call) for call in alone.calls]
    return sum((row.cost.total for row in rows), Decimal(0)), sum((row.usage for row in rows), Usage())


def assert_equal_to_the_engine(of: Workload, draw: Draw, seeds: Sequence[int]) -> None:
    found = montecarlo(of, draw, seeds)
    for number, seed in enumerate(seeds):
        assert (found.costs[number], found.usage(number)) == engine(traffic_alone(of, draw, seed)), seed


@pytest.mark.parametrize("first_token", [None, Uniform(0, 5)])
def test_late_entries_of_a_lagging_day_are_those_of_the_engine(first_token: Any) -> None:
    rules, march = {"visibility_lag_by_date": 0.7}, date(2026, 3, 20)
    of = traffic("progressive", rules, march, model="claude-sonnet-4-5", calls=6)
    draw = Draw(loop=Uniform(1, 5), first_token=first_token)
    assert_equal_to_the_engine(of, draw, range(12))
    on_time = montecarlo(traffic("progressive", (), march, model="claude-sonnet-4-5", calls=6), draw, range(12))
    assert sum(montecarlo(of, draw, range(12)).costs) > sum(on_time.costs)


draws = st.builds(
    Draw,
    turn=st.sampled_from(PAUSES),
    loop=st.sampled_from(PAUSES),
    first_token=st.sampled_from([None, 0, 3, Uniform(0, 30)]),
    retries=st.builds(
        Retries, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0, 2, Uniform(0, 400)]), st.booleans()
    ),
    eviction=st.sampled_from([None, 0.0, 0.2, 1.0]),
    lag_probability=st.sampled_from([None, 0.5]),
    lag_s=st.sampled_from([None, 20.0]),
)
readings = st.fixed_dictionaries(
    {
        "shallow_breakpoints": st.sampled_from(["rewrite", "refresh", "ignore"]),
        "ttl_in_key": st.booleans(),
        "lookback_runs": st.sampled_from(["by_date", "collapsed", "counted"]),
    }
)


@given(
    strategy=st.sampled_from(STRATEGIES),
    model=st.sampled_from(MODELS),
    rules=readings,
    draw=draws,
    seed=st.integers(0, 50),
    tools=st.sampled_from([1, 25]),
    asks=st.booleans(),
)
@settings(max_examples=examples(60))
def test_every_seed_costs_what_the_engine_says(
    strategy: str | StrategySpec, model: str, rules: dict[str, Any], draw: Draw, seed: int, tools: int, asks: bool
) -> None:
    inquiries = SyntheticInquiries(rate=0.5, batch=2) if asks else None
    of = traffic(strategy, rules, seed=seed, model=model, tools=tools, inquiries=inquiries)
    assert_equal_to_the_engine(of, draw, [1, 2, 3, 1_000_003 + seed])


@pytest.mark.parametrize("name", ["claude-code-56-minutes"])
def test_a_recording_with_its_bills_and_resampled_pauses(name: str) -> None:
    log = RECORDINGS / "sessions" / f"{name}.jsonl"
    of = read_workload(log, ReplaySetup(RuleBook(), PRICES))
    draw = replace(resample_pauses(of.calls), eviction=0.02, retries=Retries(0.1, 5, billed=True))
    assert_equal_to_the_engine(of, draw, [1, 2, 3])


def test_nothing_drawn_is_as_planned() -> None:
    of = traffic(pauses=SyntheticPauses(loop=6.5, turn=400))
    planned, _ = engine(of)
    assert montecarlo(of, Draw(), 3).costs == [planned] * 3


def test_a_seed_is_the_same_alone_and_in_company() -> None:
    of, draw = traffic(), Draw(turn=LogNormal(300, 200), eviction=0.1)
    together = montecarlo(of, draw, 2_500)
    for seed in (1, 2_000, 2_001, 2_500):
        assert montecarlo(of, draw, [seed]).costs == [together.costs[seed - 1]]
    assert montecarlo(of, draw, [7, 3]).costs == [together.costs[6], together.costs[2]]


def test_both_sides_of_a_lifetime() -> None:
    """A pause of exactly the TTL finds nothing; a microsecond less does."""
    of = traffic(turns=2, calls=1)
    live, dead = (montecarlo(of, Draw(turn=pause), 1) for pause in (299.999999, 300.0))
    assert live.usage(0).read > 0
    assert dead.usage(0).read == 0


def test_a_billed_retry_reads_what_the_lost_attempt_wrote() -> None:
    of = traffic(turns=1, calls=1)
    lost, failed = (montecarlo(of, Draw(retries=Retries(1.0, 5, billed)), 1) for billed in (True, False))
    assert lost.usage(0).read == failed.usage(0).write_5m > 0
    assert lost.usage(0).output_tokens == 2 * failed.usage(0).output_tokens
    assert failed.costs == [engine(of)[0]]


def test_what_is_asked_in_between_keeps_its_share_of_the_pause() -> None:
    of = traffic("answer_inquiry, forced", inquiries=SyntheticInquiries(rate=1.0), pauses=SyntheticPauses(loop=10))
    moved = calls_alone(of, Draw(loop=40), 1)
    main = [call for call in of.calls if call.purpose == "main"]
    shares = [
        (before.start, call.start, after.start)
        for plan in (of.calls, moved)
        for before, call, after in zip(plan, plan[1:], plan[2:], strict=False)
        if call.purpose == "inquiry" and before.purpose == after.purpose == "main"
    ]
    assert len(main) > 4
    half = len(shares) // 2
    assert half
    for (a, b, c), (x, y, z) in zip(shares[:half], shares[half:], strict=True):
        assert (y - x) / (z - x) == pytest.approx((b - a) / (c - a), abs=1e-5)
        assert z - x == pytest.approx(40 if c - a < 100 else c - a, abs=1e-5)


def test_agents_that_plan_anew_get_the_same_times() -> None:
    """A conversation at a seed's times, planned, is the plan at the seed's times."""
    spec = SyntheticSpec(turns=5, calls=3, model=MODELS[0], head_tools=(6_000,))
    conversation, terms = (
        synthetic(spec),
        ReplaySetup(RuleBook(as_of=date(2026, 11, 1)), PRICES, tokens="bytes", model=MODELS[0]),
    )
    draw = Draw(turn=LogNormal(300, 300), loop=Uniform(1, 60), first_token=Uniform(0, 4), retries=Retries(0.3, 9))
    of = plan_workload("automatic", [conversation], terms)
    for seed in (1, 2, 3):
        again = plan_workload("automatic", retime([conversation], draw, seed), terms)
        assert [call.start for call in again.calls] == [call.start for call in calls_alone(of, draw, seed)]
        assert engine(again)[0] == montecarlo(of, draw, [seed]).costs[0]


@pytest.mark.parametrize(
    ("of", "mean", "low", "high"),
    [
        (5, 5.0, 5, 5),
        (Uniform(2, 4), 3.0, 2, 4),
        (LogNormal(10, 5), 10.0, 0, np.inf),
        (LogNormal(0, 5), 0.0, 0, 0),
        (LogNormal(10, 5, max=10), None, 0, 10),
        (Choice((1, 2, 4), (1, 0, 1)), 2.5, 1, 4),
    ],
)
def test_drawn_numbers_are_of_their_distribution(of: Any, mean: float | None, low: float, high: float) -> None:
    uniform = uniforms(range(20_000), 2)
    drawn = numbers(of, uniform[:, 0], uniform[:, 1])
    assert mean is None or drawn.mean() == pytest.approx(mean, rel=0.02)
    assert low <= drawn.min()
    assert drawn.max() <= high
    assert set(np.unique(drawn)) == {1, 4} or not isinstance(of, Choice)


def test_uniform_numbers_never_change() -> None:
    """They are part of every seed's result."""
    assert uniforms([1, 2], 3)[:, 0].tolist() == uniforms([1, 2], 1)[:, 0].tolist()
    assert [f"{share:.12f}" for share in uniforms([1], 3)[0]] == PINNED


PINNED = ["0.539959944771", "0.035048490941", "0.611852157926"]


def test_the_distribution_tells_percentiles_and_how_settled_it_is() -> None:
    found = montecarlo(traffic(), Draw(turn=Choice((10, 1_000), (1, 1))), 400)
    ordered = sorted(found.costs)
    assert found.percentiles == {5: ordered[19], 25: ordered[99], 50: ordered[199], 75: ordered[299], 95: ordered[379]}
    assert found.mean == sum(found.costs, Decimal(0)) / 400
    more = montecarlo(traffic(), Draw(turn=Choice((10, 1_000), (1, 1))), 6_400)
    assert found.convergence / more.convergence == pytest.approx(4, rel=0.15)
    assert montecarlo(traffic(), Draw(), 1).convergence == 0


def test_a_frame_has_a_row_a_seed() -> None:
    found = montecarlo(traffic(), Draw(turn=500), [4, 9])
    frame = found.frame()
    assert list(frame.index) == [4, 9]
    assert frame["cost_usd"].tolist() == list(map(float, found.costs))
    assert found.frame(money="decimal")["cost_usd"].tolist() == found.costs
    assert frame["usage.cache_read_input_tokens"].tolist() == [found.usage(number).read for number in (0, 1)]


def test_no_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="expected one or more; got none"):
        montecarlo(traffic(), Draw(), 0)
