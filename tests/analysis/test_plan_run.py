"""A plan with one changed call costs what it costs when all its calls run again, on random logs."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random

from billed_logs import random_workload
from hypothesis import given, settings
from hypothesis import strategies as st

from cachecost.analysis.bill.explanation import hold_losses
from cachecost.analysis.optimum.extras import Proposal, proposals
from cachecost.analysis.optimum.lower_bound import cheapest
from cachecost.analysis.optimum.online_rule import try_presets
from cachecost.analysis.optimum.plan_evaluator import BareCall, Breakpoints, PlanEvaluator, PlanStep
from cachecost.analysis.optimum.plan_run import PlanRun, plan_changes
from cachecost.analysis.optimum.planner import Choices, PlanCall, Planner, calls_in_order
from cachecost.analysis.optimum.tree import BlockTree, FutureUse
from cachecost.analysis.optimum.ttl_costs import TTLCosts
from cachecost.base.structs import replace
from cachecost.simulation.workload import Workload

ASSUMPTIONS: tuple[dict[str, object], ...] = (
    {},
    {"shallow_breakpoints": "refresh"},
    {"shallow_breakpoints": "ignore", "ttl_in_key": True},
    {"ttl_in_key": True},
    {"visibility_lag_probability": 0.5, "visibility_lag_s": 200.0},
)


def evaluator_of(work: Workload, assumptions: dict[str, object]) -> PlanEvaluator:
    return PlanEvaluator.of(work.calls, work.setup.with_assumptions(assumptions))


def with_extra_calls(evaluator: PlanEvaluator, steps: list[PlanStep]) -> list[PlanStep]:
    found = proposals(evaluator, BlockTree(evaluator.sent), steps)
    extra = [step for proposal in found for step in proposal.extra]
    return sorted([*steps, *extra], key=lambda step: step.sent.start)


@given(st.integers(0, 100_000), st.booleans(), st.sampled_from(ASSUMPTIONS))
@settings(max_examples=40)
def test_a_change_costs_the_same_as_if_all_calls_ran_again(
    seed: int, loses: bool, assumptions: dict[str, object]
) -> None:
    random, recorded = Random(seed), random_workload(seed)
    evaluator = evaluator_of(hold_losses(recorded)[0] if loses else recorded, assumptions)
    preset = random.choice([one for one in try_presets(evaluator, lambda *_: None) if not one.refused])
    run = PlanRun(evaluator, with_extra_calls(evaluator, preset.steps))
    assert run.usd == evaluator.cost(run.steps)
    changes = list(plan_changes(run))
    for number, changed in random.sample(changes, min(25, len(changes))):
        steps = [*run.steps[:number], *([changed] if changed else []), *run.steps[number + 1 :]]
        assert run.cost_with({float(number): changed}) == evaluator.cost(steps)


@given(st.integers(0, 100_000), st.booleans(), st.booleans(), st.sampled_from(ASSUMPTIONS))
@settings(max_examples=40)
def test_a_plan_with_more_calls_costs_the_same_as_if_it_were_planned_anew(
    seed: int, loses: bool, pings: bool, assumptions: dict[str, object]
) -> None:
    random, recorded = Random(seed), random_workload(seed)
    evaluator = evaluator_of(hold_losses(recorded)[0] if loses else recorded, assumptions)
    tree = BlockTree(evaluator.sent)
    choices = Choices(FutureUse(tree), TTLCosts(cheapest(evaluator), pings))
    run = PlanRun(evaluator, evaluator.sent, choices)
    assert run.usd == planned_usd(evaluator, evaluator.sent, choices)
    preset = random.choice([one for one in try_presets(evaluator, lambda *_: None) if not one.refused])
    known = [one for basis in (run.steps, preset.steps) for one in proposals(evaluator, tree, basis)]
    known += [Proposal([], {step.sent: step.breakpoints}) for step in preset.steps]
    extras: list[PlanStep] = []
    fixed: dict[BareCall, Breakpoints] = {}
    for proposal in random.sample(known, min(8, len(known))):
        added, more = [*extras, *proposal.extra], {**fixed, **proposal.fixed}
        calls = calls_in_order(evaluator.sent, added, more)
        usd = planned_usd(evaluator, calls, choices)
        assert run.cost_with(run.changes_to(calls)) == usd
        if random.random() < 0.5:
            extras, fixed, run = added, more, PlanRun(evaluator, calls, choices)
            assert run.usd == usd


def planned_usd(evaluator: PlanEvaluator, calls: Sequence[PlanCall], choices: Choices) -> Decimal:
    planner = Planner(evaluator, choices)
    return sum((planner.run_step(call).usd for call in calls), Decimal(0))


def test_calls_of_other_conversations_do_not_run_again() -> None:
    work = random_workload(5)
    evaluator = evaluator_of(replace(work, calls=[*work.calls, *random_workload(6).calls]), {})
    run = PlanRun(evaluator, next(one.steps for one in try_presets(evaluator, lambda *_: None) if not one.refused))
    ran: list[PlanStep] = []
    run.evaluator = CountingEvaluator(evaluator, ran)  # type: ignore[assignment]
    run.cost_with({0.0: PlanStep(run.steps[0].sent, ())})
    assert 0 < len(ran) < len(run.steps)


class CountingEvaluator:
    """Runs steps as an evaluator does, and remembers them."""

    def __init__(self, evaluator: PlanEvaluator, ran: list[PlanStep]) -> None:
        self._evaluator = evaluator
        self._ran = ran

    def run_step(self, cache: object, step: PlanStep) -> object:
        self._ran.append(step)
        return self._evaluator.run_step(cache, step)  # type: ignore[arg-type]
