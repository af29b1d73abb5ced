"""Whether a plan's savings depend on an assumption: the plan is run again with every other value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.optimum.plan_evaluator import PlanStep, build_call, simulation_of
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import WARM_START
from cachecost.providers.listing import assumption_rows
from cachecost.providers.usage import ZERO
from cachecost.simulation.setup import ReplaySetup

Plan = Sequence[PlanStep]


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
    terms: ReplaySetup, plan: Plan, presets: Sequence[Plan], progress: Callable[[str, int], None]
) -> list[AssumptionResult]:
    """The plan and the presets with each other value of the assumptions, except those that are numbers."""
    found, sent = [], list(map(build_call, plan))
    sent_by_presets = [list(map(build_call, preset)) for preset in presets]
    for name, value in other_assumptions(terms):
        under = terms.with_assumptions({name: value})
        usd = cost_under(under, sent)
        beside = min((cost_under(under, other) for other in sent_by_presets), default=usd)
        found.append(AssumptionResult(name, value, usd, beside))
        progress(f"{name}={value}", len(plan))
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


def cost_under(terms: ReplaySetup, calls: Sequence[Call]) -> Decimal:
    """USD of calls, simulated under these terms."""
    simulation = simulation_of(terms)
    return sum((simulation.row(call).cost.total for call in calls), ZERO)
