"""The cheapest content for caches that find by themselves what was sent before: what `optimize` answers there.

Changes that are assumed to keep the answers are combined, the best first, each replayed with those before it, as long
as they save more than the token counts may be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from cachecost.analysis.bill.explanation import hold_losses
from cachecost.analysis.optimum.lower_bound import automatic_bound
from cachecost.analysis.whatif.pricing import AlternativePricing
from cachecost.analysis.whatif.report import billed_usd
from cachecost.analysis.whatif.results import Alternative
from cachecost.base.structs import replace
from cachecost.changes.catalogue import RecordingProfile
from cachecost.changes.option import CONTENT, Option
from cachecost.changes.steps import Replays, cost
from cachecost.ledger.findings import count_margin
from cachecost.providers.usage import ZERO
from cachecost.simulation.workload import Workload


@dataclass(frozen=True, slots=True)
class ContentPlan:
    """Changes of content that together make the calls cheapest, each with what it saves on top of those before it.

    `now` and `usd` are USD without and with them; as the plan sends the calls, they cost at least `lower_bound_usd`.
    """

    calls: int
    changes: list[Alternative]
    now: Decimal
    usd: Decimal
    lower_bound_usd: Decimal
    token_source: str
    error_margin: float
    held_losses: int

    @property
    def is_optimal(self) -> bool:
        """Whether no pause, no order of the calls and no other machine could make these requests cheaper."""
        return self.usd <= self.lower_bound_usd


def plan_content(traffic: Workload, today: date | None = None) -> ContentPlan:
    """The plan for calls whose caches find by themselves what was sent before. Raises CannotEvaluate."""
    traffic, held = hold_losses(traffic)
    replays = Replays(traffic)
    _, base = replays.recorded_rows()
    billed, simulated = billed_usd(traffic), cost(base)
    pricing = AlternativePricing(replays, simulated if billed is None else billed, base)
    left = [
        one for one in RecordingProfile.of(traffic, base, today).options() if one.rank == CONTENT and one.keeps_answers
    ]
    chosen, changes, saved = list[Option](), list[Alternative](), ZERO
    while left := [one for one in left if not one.unchanged and not one.unsupported]:
        best = max(left, key=lambda one: pricing.saving([*chosen, one]))
        priced, together = pricing.price_option(best), pricing.saving([*chosen, best])
        if together - saved <= (priced.error or ZERO):
            break
        changes.append(replace(priced, saving=together - saved, cost=pricing.now - together))
        chosen, saved = [*chosen, best], together
        left.remove(best)
    steps = pricing.plan(chosen).steps
    least = automatic_bound([step.call for step in steps], replays.preparer(steps))
    rows = pricing.replay(chosen).rows
    usd = pricing.now - saved
    return ContentPlan(
        len(traffic.calls),
        changes,
        pricing.now,
        usd,
        min(usd, least),
        traffic.setup.token_source,
        count_margin(rows, traffic.setup.error_margin),
        len(held),
    )
