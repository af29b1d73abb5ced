"""The plan on larger workloads: legal, as the simulation bills it, between lower bound and best preset; pings;
readings.
"""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from cachecost.analysis.optimum.extras import proposals
from cachecost.analysis.optimum.lower_bound import LowerBound, lower_bound_of
from cachecost.analysis.optimum.optimum import (
    LatencyFit,
    Optimum,
    fit_of,
    load_of,
    optimum_of,
    other_assumptions,
    simulated_rows,
)
from cachecost.analysis.optimum.plan_evaluator import (
    PlanEvaluator,
    PlanStep,
    build_call,
    rendered_breakpoints,
    simulation_of,
)
from cachecost.analysis.optimum.plan_run import rounds
from cachecost.analysis.optimum.tree import BlockTree
from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Message, Part, Thread, given_block
from cachecost.prompts.render import BreakpointPrefix
from cachecost.prompts.request import Request, refusal, sent_breakpoints
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup

MODEL = "claude-opus-4-6"
START = 1_790_000_000.0
SYSTEM = Part((given_block("text", "system", "you are", 6_000),))


def terms() -> ReplaySetup:
    return ReplaySetup(RuleBook(), PriceBook(), tokens="bytes")


def block(role: str, name: str, tokens: int, kind: str = "text") -> Block:
    return given_block(kind, role, name, tokens)


def growing(gaps: list[float], tokens: int = 400, name: str = "", system: Part = SYSTEM) -> list[Call]:
    """A conversation that grows by two messages a call; `gaps` are the seconds before each."""
    thread, calls, now = Thread(), list[Call](), START
    for number, gap in enumerate(gaps):
        now += gap
        thread = thread.then(Message.of("user", (block("user", f"{name}{number}", tokens),)))
        calls.append(Call(Request(MODEL, thread, system=system), now, output_tokens=10))
        thread = thread.then(Message.of("assistant", (block("assistant", f"{name}r{number}", tokens),)))
    return calls


def test_a_steady_conversation_is_proved_and_costs_what_automatic_does_but_for_its_last_end() -> None:
    found = optimum_of(growing([10] * 12), terms())
    automatic = next(one for one in found.presets if one.name == "automatic")
    assert found.is_optimal and found.usd == found.lower_bound_usd == found.lower_bound.usd
    # The last call's new message, and the answer before it, are sent as they are: 800 tokens at $5, not $6.25.
    assert automatic.usd - found.usd == Decimal("0.001000")
    assert found.plan[-1].breakpoints[-1].prefix is not found.plan[-1].sent.prompt.end


@pytest.mark.parametrize(("pause", "ttl"), [(299, "5m"), (300, "1h"), (3599, "1h")])
def test_only_what_a_pause_follows_is_written_for_an_hour(pause: float, ttl: str) -> None:
    found = optimum_of(growing([10] * 6 + [pause] + [10] * 5), terms(), pings=False)
    assert [step.breakpoints[-1].ttl for step in found.plan[:-1]] == ["5m"] * 5 + [ttl] + ["5m"] * 5
    assert found.usd == found.lower_bound.usd


def test_a_pause_of_an_hour_is_bridged_by_a_ping_if_that_is_allowed() -> None:
    calls = growing([10] * 6 + [3700] + [10] * 5, tokens=4_000)
    with_pings, without = (optimum_of(calls, terms(), pings=pings) for pings in (True, False))
    assert [step.sent.call.purpose for step in with_pings.extras] == ["ping"]
    assert with_pings.lower_bound_usd <= with_pings.usd < without.usd
    assert without.lower_bound.usd == without.usd
    ping = with_pings.extras[0].sent.call
    assert (ping.request.params["max_tokens"], ping.output_tokens) == (0, 0)
    assert START < ping.start < calls[6].start


def test_keep_alives_of_an_entry_for_an_hour_are_legal_after_a_call_that_marks_for_five_minutes() -> None:
    calls = growing([10, 10], tokens=4_000)
    fork = calls[0].request.thread.then(Message.of("assistant", (block("assistant", "another", 9),)))
    fork = fork.then(Message.of("user", (block("user", "question", 9),)))
    calls.append(replace(calls[1], request=replace(calls[1].request, thread=fork), start=START + 7_000))
    evaluator = PlanEvaluator.of(calls, terms())
    first, second, third = evaluator.sent
    system = first.prompt.head.parent
    assert system is not None
    breakpoints = (
        (BreakpointPrefix(first.prompt.end, "1h"),),
        (BreakpointPrefix(system, "5m"), BreakpointPrefix(second.prompt.end, "5m")),
        (BreakpointPrefix(third.prompt.end, "5m"),),
    )
    steps = list(map(PlanStep, evaluator.sent, breakpoints))
    found = [step for one in proposals(evaluator, BlockTree(evaluator.sent), steps) for step in one.extra]
    assert any(step.breakpoints[0].prefix is system for step in found)
    for step in found:
        request = build_call(step).request
        assert refusal(request, sent_breakpoints(request), step.sent.rules) is None


def test_parallel_cold_calls_are_warmed_up_ahead() -> None:
    calls = [
        replace(growing([0], name=f"{n} ", system=Part((block("system", "big", 30_000),)))[0], first_token_s=2.0)
        for n in range(6)
    ]
    with_pings, without = (optimum_of(calls, terms(), pings=pings) for pings in (True, False))
    assert [step.sent.call.purpose for step in with_pings.extras] == ["warm"]
    assert with_pings.extras[0].sent.start < START
    assert with_pings.usd < without.usd / 3
    assert with_pings.lower_bound_usd <= with_pings.usd


def test_one_call_alone_is_sent_without_breakpoints() -> None:
    found = optimum_of(growing([0]), terms())
    assert (found.plan[0].breakpoints, found.is_optimal, found.best_preset.name) == ((), True, "none")


def test_what_is_below_the_minimum_is_never_cached() -> None:
    calls = growing([10] * 3, tokens=10, system=Part((block("system", "small", 900),)))
    lower_bound = lower_bound_of(calls, terms())
    assert lower_bound.usd == lower_bound.fixed_usd == lower_bound.with_pings_usd


def mixed(seed: int) -> list[Call]:
    """Conversations that share a head, fork, retry and pause; some calls start together."""
    rng = random.Random(seed)
    threads, calls, now = [Thread()], list[Call](), START
    for number in range(30):
        thread = rng.choice(threads[-3:])
        more = rng.choice((0, 2, 2, 2, 26)) if thread.length else 1  # each call ends with a message of the user's
        for extra in range(more):
            role = "assistant" if thread.length % 2 else "user"
            thread = thread.then(Message.of(role, (block(role, f"{number}.{extra}", rng.randint(5, 3_000)),)))
        threads.append(thread)
        if thread.length:
            calls.append(
                Call(Request(MODEL, thread, system=SYSTEM), now, first_token_s=rng.choice((0, 3)), output_tokens=5)
            )
        now += rng.choice((0, 1, 20, 280, 400, 2_000, 4_000))
    return calls


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=pytest.mark.slow if seed > 2 else ()) for seed in range(6)])
@pytest.mark.parametrize("pings", [False, True])
def test_plans_are_legal_never_above_a_preset_and_never_below_the_floor(seed: int, pings: bool) -> None:
    found = optimum_of(mixed(seed), terms(), pings)
    assert found.lower_bound_usd <= found.usd <= found.best_preset.usd
    assert (
        found.lower_bound.with_pings_usd
        <= found.lower_bound.usd
        <= min(one.usd for one in found.presets if not one.refused)
    )
    assert sum(row.cost.total for row in simulated_rows(terms(), found.plan)) == found.usd
    assert {"automatic", "progressive", "system-only", "none"} <= {one.name for one in found.presets}
    assert found.is_optimal <= (found.usd == found.lower_bound_usd)


@pytest.mark.parametrize("seed", range(3))
def test_the_bench_bills_as_the_simulation_does(seed: int) -> None:
    calls = [replace(call, request=replace(call.request, automatic="1h")) for call in mixed(seed)]
    bench = PlanEvaluator.of(calls, terms())
    steps = [
        PlanStep(sent, rendered_breakpoints(sent, call.request)) for sent, call in zip(bench.sent, calls, strict=True)
    ]
    simulation = simulation_of(terms())
    assert bench.cost(steps) == sum((simulation.row(call).cost.total for call in calls), Decimal(0))
    assert [build_call(step).request.breakpoints[-1].ttl for step in steps] == ["1h"] * len(steps)


def test_a_plan_that_hangs_on_a_reading_says_so_and_is_not_called_optimal() -> None:
    found = optimum_of(growing([10] * 6 + [2_000] + [10] * 5), terms(), pings=False)
    worse = [(one.switch, one.value) for one in found.assumptions if not one.is_cheaper]
    assert found.usd == found.lower_bound.usd
    assert (found.depends_on, found.is_optimal) == (sorted({name for name, _ in worse}), not worse)


def test_every_reading_but_those_in_force_is_tried() -> None:
    readings = other_assumptions(terms().with_assumptions({"ttl_in_key": "true"}))
    assert ("ttl_in_key", "false") in readings and ("ttl_in_key", "true") not in readings
    assert ("shallow_breakpoints", "ignore") in readings and ("shallow_breakpoints", "rewrite") not in readings
    assert not any(name.endswith(("_s", "probability", "seed")) for name, _ in readings)


def test_calls_of_which_none_can_be_evaluated_are_no_workload() -> None:
    unknown = [replace(call, request=replace(call.request, model="claude-imaginary-9")) for call in growing([0])]
    with pytest.raises(CannotEvaluate, match=r"^nothing to optimise: .*claude-imaginary-9"):
        optimum_of(unknown, terms())
    with pytest.raises(CannotEvaluate, match=r"^nothing to optimise: there are no calls$"):
        optimum_of([], terms())


def test_the_load_is_what_is_not_read() -> None:
    bench = PlanEvaluator.of(growing([0, 10, 70]), terms())
    load = load_of(list(bench.run([PlanStep(sent, ()) for sent in bench.sent])))
    assert (load.mean_share, load.p95_share) == (1.0, 1.0)
    assert load.unread_tokens == 6_400 + 7_200 + 8_000
    assert load.peak_per_minute == 6_400 + 7_200  # the third starts 70 s after the second


@pytest.mark.parametrize(("noise", "is_supported"), [(0.0, True), (40.0, False)])
def test_seconds_are_told_only_where_a_line_fits(noise: float, is_supported: bool) -> None:
    rng = random.Random(1)
    calls = [
        replace(call, first_token_s=1 + 0.0001 * (6_400 + 800 * number) + noise * rng.random())
        for number, call in enumerate(growing([10] * 20))
    ]
    bench = PlanEvaluator.of(calls, terms())
    fit = fit_of(list(bench.run([PlanStep(sent, ()) for sent in bench.sent])))
    assert fit is not None and fit.is_supported == is_supported
    if is_supported:
        assert (round(fit.base_s, 6), round(fit.per_token_s, 9), round(fit.r2, 6)) == (1.0, 0.0001, 1.0)
    assert not LatencyFit(1.0, 0.1, 0.9, 7).is_supported and LatencyFit(1.0, 0.1, 0.2, 8).is_supported


def test_the_search_is_bounded() -> None:
    assert (rounds(1), rounds(300), rounds(2_000), rounds(100_000)) == (600, 500, 75, 40)


def test_a_floor_never_depends_on_the_breakpoints_that_calls_have() -> None:
    calls = growing([10, 400, 10])
    sent = [replace(call, request=replace(call.request, automatic="5m")) for call in calls]
    bounds = lower_bound_of(calls, terms()), lower_bound_of(sent, terms()), LowerBound(PlanEvaluator.of(calls, terms()))
    assert len({(one.usd, one.with_pings_usd, one.fixed_usd) for one in bounds}) == 1


def test_the_recorded_breakpoints_are_priced_beside_the_plan() -> None:
    calls = [replace(call, request=replace(call.request, automatic="5m")) for call in growing([10] * 4)]
    found: Optimum = optimum_of(calls, terms())
    assert found.recorded_usd == next(one.usd for one in found.presets if one.name == "automatic")
    assert optimum_of(growing([10] * 4), terms()).recorded_usd is None
