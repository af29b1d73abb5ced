"""Whether a plan's savings depend on an assumption: the plan is run again with every other value that matters to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.analysis.optimum.alike_prompts import AlikePrompts
from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanEvaluator, PlanStep, build_call, simulation_of
from cachecost.ledger.rows import WARM_START
from cachecost.providers.listing import assumption_rows
from cachecost.providers.usage import ZERO
from cachecost.simulation.setup import ReplaySetup

Plan = Sequence[PlanStep]
OF_PROMPTS = frozenset({"tool_choice_invalidation", "thinking_rendered_at", "structured_output_at", "lookback_runs"})
"""Assumptions on prompts and on rules besides: with alike prompts and equal rules they change nothing."""
OF_CACHE = frozenset({"shallow_breakpoints", "ttl_in_key"})
"""Assumptions on what the cache does with prompts: these stay as they are rendered."""


@dataclass(frozen=True, slots=True)
class AssumptionResult:
    """A plan and the best compared preset, with another value of an assumption. USD."""

    switch: str
    value: str
    plan_usd: Decimal
    preset_usd: Decimal

    @property
    def is_cheaper(self) -> bool:
        """Whether the plan still costs no more than the best of the presets."""
        return self.plan_usd <= self.preset_usd


def compare_assumptions(
    evaluator: PlanEvaluator, plan: Plan, presets: Sequence[Plan], progress: Callable[[str, int], None]
) -> list[AssumptionResult]:
    """The plan and the presets with each other value of the assumptions, except those that are numbers."""
    found, others = [], other_assumptions(evaluator.terms)
    costs = PlanCosts(evaluator, [plan, *presets])
    for name, value in others:
        usd, *beside = costs.under(name, value)
        found.append(AssumptionResult(name, value, usd, min(beside, default=usd)))
        progress("assumptions", len(others))
    return found


def other_assumptions(terms: ReplaySetup) -> list[tuple[str, str]]:
    """(assumption, value) of every value that is not in force."""
    in_force = terms.rules.assumptions
    assumptions = in_force.on(terms.host)
    return [
        (row.name, reading.value)
        for row in assumption_rows(terms.host)
        if row.number is None and row.name != WARM_START
        for reading in row.readings
        if reading.value != str(getattr(assumptions, row.name)).lower()
    ]


class PlanCosts:
    """What plans of the same calls cost under other assumptions. USD, answers included."""

    def __init__(self, evaluator: PlanEvaluator, plans: Sequence[Plan]) -> None:
        self._evaluator = evaluator
        self._plans = plans
        self._in_force = [evaluator.cost(plan) for plan in plans]
        sent = dict.fromkeys(step.sent for plan in plans for step in plan)
        self._prompts = AlikePrompts(evaluator, [one.call for one in sent])

    def under(self, name: str, value: str) -> list[Decimal]:
        """What each plan costs with this value of an assumption."""
        terms = self._evaluator.terms.with_assumptions({name: value})
        if name in OF_CACHE and self._prompts.have_equal_rules(terms):
            return list(self._with_rules(terms))
        if name in OF_PROMPTS and self._prompts.are_alike(terms):
            return self._in_force
        return [_simulated_usd(terms, plan) for plan in self._plans]

    def _with_rules(self, terms: ReplaySetup) -> Iterator[Decimal]:
        """The plans under the rules of these terms, as they are rendered."""
        known: dict[BareCall, BareCall] = {}
        for plan in self._plans:
            for sent in {step.sent for step in plan} - known.keys():
                known[sent] = replace(sent, rules=terms.rules_for(sent.call))
            yield self._evaluator.cost(PlanStep(known[step.sent], step.breakpoints) for step in plan)


def _simulated_usd(terms: ReplaySetup, plan: Plan) -> Decimal:
    simulation = simulation_of(terms)
    return sum((simulation.row(build_call(step)).cost.total for step in plan), ZERO)
