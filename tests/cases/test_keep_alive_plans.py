"""Plans with keep-alives cost no more than the presets, the rule that knows only the past, and the exact optimum."""

from __future__ import annotations

import random
from decimal import Decimal
from itertools import product

import pytest
from case_files import Run, json_of

from cachecost.analysis.optimum.exact import exact, train_slots
from cachecost.analysis.optimum.online_rule import cheapest_rule
from cachecost.analysis.optimum.optimum import Optimum, optimum_of
from cachecost.analysis.optimum.plan_evaluator import PlanEvaluator
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Message, Thread, given_block
from cachecost.prompts.request import Request
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from slow_cases import mostly_slow

CASE = "55-plan-with-keep-alives"
START = 1_794_000_000.0
TINY, LONGER = (200, 600, 880, 1800, 4000), (30, 280, 400, 900, 2000, 4000)


def terms() -> ReplaySetup:
    return ReplaySetup(RuleBook(), PriceBook(), tokens="bytes")


def log(seed: int, calls: int, pauses: tuple[int, ...], model: str = "") -> list[Call]:
    """Calls that go on from one another, or part from an earlier one, with pauses around the TTLs."""
    rng = random.Random(seed)
    model = model or rng.choice(("claude-opus-5-5", "claude-sonnet-4-5"))
    threads, made, now = [Thread()], [], START
    for _ in range(calls):
        thread = rng.choice(threads) if rng.random() < 0.3 else threads[-1]
        for _ in range(rng.randint(1, 2)):
            role = "assistant" if thread.length % 2 else "user"
            block = given_block("text", role, f"{seed} {rng.random()}", rng.choice((300, 800, 1500, 2500, 5000)))
            thread = thread.then(Message.of(role, (block,)))
        threads.append(thread)
        made.append(Call(Request(model, thread), now, first_token_s=rng.choice((0.0, 2.0)), output_tokens=0))
        now += rng.choice(pauses)
    return made


def check(found: Optimum, calls: list[Call]) -> PlanEvaluator:
    """A plan costs what it says, no more than presets and rule, and no less than its bound; it is proved only there."""
    evaluator = PlanEvaluator.of(calls, terms())
    assert evaluator.cost(found.plan) == found.usd
    assert found.lower_bound_usd <= found.usd <= found.best_preset.usd
    assert found.usd <= cheapest_rule(evaluator, found.presets, pings=True).usd
    assert not found.is_optimal or found.usd == found.lower_bound_usd
    return evaluator


def test_three_calls_are_kept_alive_through_two_pauses(run_case: Run) -> None:
    """Written once for five minutes, and read: two keep-alives through 880 s, one through 580 s."""
    found = json_of(run_case(CASE, "optimize", "log.jsonl", "--tokens", "bytes", "--json"))
    tokens, new = 2_457, 1_858
    parts = 5 * tokens + Decimal("0.2") * (3 * tokens + 2 * (tokens + new)) + 5 * new
    assert Decimal(found["best"]["cost_usd"]) == parts / 1_000_000
    assert found["proved_optimal"] is False


@pytest.mark.parametrize(("seed", "calls"), mostly_slow(product(range(8), [2, 3, 4]), 8))
def test_tiny_logs_are_planned_no_more_expensive_than_by_the_exact_search(seed: int, calls: int) -> None:
    made = log(seed * 77 + calls, calls, TINY)
    found = optimum_of(made, terms())
    evaluator = check(found, made)
    assert exact(evaluator, train_slots(evaluator), found.usd).steps is None, "it finds nothing cheaper"


@pytest.mark.parametrize("seed", mostly_slow(range(4), 1))
def test_longer_logs_are_planned_no_more_expensive_than_by_the_rule(seed: int) -> None:
    made = log(seed * 1000 + 15, 15, LONGER)
    check(optimum_of(made, terms()), made)


PAUSES = [(290, 290), (299, 301), (600, 600), (880, 580), (3_590, 3_610), (5_000, 200)]
MODELS = ["claude-opus-5-5", "claude-sonnet-4-5", "claude-haiku-4-5"]


@pytest.mark.parametrize(("model", "pauses"), mostly_slow(product(MODELS, PAUSES), 8))
def test_each_pause_is_bridged_in_the_cheaper_way(pauses: tuple[int, int], model: str) -> None:
    """Against every train of each TTL through each pause, for calls that only grow."""
    thread, made, now = Thread(), list[Call](), START
    for number, pause in enumerate((*pauses, 0)):
        role = "user"
        thread = thread.then(Message.of(role, (given_block("text", role, f"{model} {number}", 5_000),)))
        made.append(Call(Request(model, thread), now, output_tokens=0))
        now += pause
    found = optimum_of(made, terms())
    evaluator = check(found, made)
    best = exact(evaluator, train_slots(evaluator), found.usd)
    assert best.is_finished and best.steps is None, "it finds nothing cheaper"


def test_without_keep_alives_a_finished_search_proves_the_plan() -> None:
    made = log(5, 3, TINY)
    without = optimum_of(made, terms(), pings=False)
    assert without.extras == [] and without.is_optimal
    assert optimum_of(made, terms()).usd <= without.usd
