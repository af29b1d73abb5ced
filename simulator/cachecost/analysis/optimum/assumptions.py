"""Whether a plan's gain hangs on one reading of the documents: it is run again under every other one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.optimum.plan_evaluator import Step, marked, simulation_of
from cachecost.ledger.rows import WARM_START
from cachecost.providers.listing import switch_rows
from cachecost.replay.setup import ReplaySetup

Plan = Sequence[Step]


@dataclass(frozen=True, slots=True)
class Reading:
    """A plan and the presets it is compared with, under another reading of a switch. USD."""

    switch: str
    value: str
    plan_usd: Decimal
    preset_usd: Decimal

    @property
    def is_cheaper(self) -> bool:
        """Whether the plan is still no dearer than the best of the presets."""
        return self.plan_usd <= self.preset_usd


def readings_of(
    terms: ReplaySetup, plan: Plan, presets: Sequence[Plan], progress: Callable[[str, int], None]
) -> list[Reading]:
    """The plan and the presets under each reading that is not in force. Switches that are numbers are left out."""
    found = []
    for name, value in other_readings(terms):
        usd = cost_under(terms, plan, {name: value})
        beside = min((cost_under(terms, other, {name: value}) for other in presets), default=usd)
        found.append(Reading(name, value, usd, beside))
        progress(f"{name}={value}", len(plan))
    return found


def other_readings(terms: ReplaySetup) -> list[tuple[str, str]]:
    """(switch, value) of every reading that these terms do not take."""
    in_force = terms.rules.switches
    switches = in_force.on(terms.host)
    return [
        (row.name, reading.value)
        for row in switch_rows(terms.host)
        if row.number is None and row.name != WARM_START
        for reading in row.readings
        if reading.value != str(getattr(switches, row.name)).lower()
    ]


def cost_under(terms: ReplaySetup, plan: Plan, over: dict[str, object]) -> Decimal:
    """USD of a plan, simulated as it would be sent, with readings `over` those of the terms."""
    simulation = simulation_of(terms.with_assumptions(over))
    return sum((simulation.row(marked(step)).cost.total for step in plan), Decimal(0))
