"""What a plan costs under another assumption is what its calls cost when they are rendered and simulated anew."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pytest
from billed_logs import random_workload
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.analysis.bill.explanation import hold_losses
from cachecost.analysis.optimum.online_rule import try_presets
from cachecost.analysis.optimum.optimum import PlanCosts, other_assumptions
from cachecost.analysis.optimum.plan_evaluator import AlikePrompts, PlanEvaluator, PlanStep, build_call, simulation_of
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Part, given_block
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload, recorded_workload

TOOLS = Part((given_block("tool", "tools", "search", 900),))
PARAMS: tuple[dict[str, Any], ...] = (
    {},
    {"tool_choice": {"type": "auto"}},
    {"tool_choice": {"type": "none"}},
    {"tool_choice": {"type": "any"}},
    {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    {"output_config": {"effort": "low"}},
    {"output_format": {"type": "json_schema", "schema": {"type": "object"}}},
)


def random_params(seed: int) -> Workload:
    """A random recording of calls with tools, whose parameters change at times."""
    random, work = Random(seed), random_workload(seed)
    few = random.sample(PARAMS, 2)
    calls = [
        replace(call, request=replace(call.request, tools=TOOLS, params=random.choice(few))) for call in work.calls
    ]
    return recorded_workload("log", calls, replace(work.setup, bills=(), counters={}).with_recorded(calls, None))


def simulated_usd(setup: ReplaySetup, plan: list[PlanStep]) -> Decimal:
    simulation = simulation_of(setup)
    return sum((simulation.row(build_call(step)).cost.total for step in plan), Decimal(0))


@given(st.integers(0, 100_000), st.booleans())
@settings(max_examples=15)
def test_every_assumption_costs_what_the_simulation_says(seed: int, loses: bool) -> None:
    recorded = random_params(seed)
    work = hold_losses(recorded)[0] if loses else recorded
    evaluator = PlanEvaluator.of(work.calls, work.setup)
    presets = [one.steps for one in try_presets(evaluator, lambda *_: None) if not one.refused]
    plans = Random(seed).sample(presets, 2)
    costs = PlanCosts(evaluator, plans)
    for name, value in other_assumptions(work.setup):
        under = work.setup.with_assumptions({name: value})
        assert costs.under(name, value) == [simulated_usd(under, plan) for plan in plans], name


def calls_with(*params: dict[str, Any]) -> tuple[list[Call], ReplaySetup]:
    work = random_workload(1)
    sent = [replace(work.calls[0], request=replace(work.calls[0].request, tools=TOOLS, params=one)) for one in params]
    return list(sent), work.setup


@pytest.mark.parametrize(
    ("params", "name", "value", "is_alike"),
    [
        (({}, {"tool_choice": {"type": "auto"}}), "tool_choice_invalidation", "any_change", True),
        (({}, {"tool_choice": {"type": "none"}}), "tool_choice_invalidation", "any_change", False),
        (({}, {"tool_choice": {"type": "any"}}), "tool_choice_invalidation", "never", False),
        (({}, {}), "thinking_rendered_at", "tools", True),
        (({}, {"output_config": {"effort": "low"}}), "thinking_rendered_at", "tools", False),
        (({}, {}), "structured_output_at", "tools", True),
    ],
)
def test_prompts_are_alike_where_no_parameter_tells_the_readings_apart(
    params: tuple[dict[str, Any], ...], name: str, value: str, is_alike: bool
) -> None:
    calls, setup = calls_with(*params)
    bare = replace(setup, bills=(), counters={}, tokens="bytes")
    evaluator = PlanEvaluator.of(calls, bare)
    assert AlikePrompts(evaluator, evaluator.calls).are_alike(bare.with_assumptions({name: value})) == is_alike
