"""`whatif`: all alternatives for a recording, their best combination, and the break-even of the 1h TTL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal

from cachecost.analysis.bill.held_losses import hold_losses
from cachecost.analysis.replays.replays import Progress, Replays, quiet
from cachecost.analysis.replays.steps import cost
from cachecost.analysis.whatif.action_costs import price_actions
from cachecost.analysis.whatif.alternatives import Alternative, TTLBreakEven, WhatifReport
from cachecost.analysis.whatif.assumptions import find_reversals, other_assumptions
from cachecost.analysis.whatif.catalogue import RecordingProfile
from cachecost.analysis.whatif.joint import best_together, jointly
from cachecost.analysis.whatif.option import Option
from cachecost.analysis.whatif.pauses import break_even
from cachecost.analysis.whatif.pricing import AlternativePricing
from cachecost.conversations.bills import BillTotal
from cachecost.ledger.margin import count_margin
from cachecost.simulation.workload import Workload

MOST_CALLS = 500
"""Recordings with more calls are replayed under other assumptions only on request."""
MOST_OFF = Decimal("0.1")
"""Share of the bill. What is further off was not simulated as it was: a cache warm before, tools of the server."""
FAR = "more than 10%"


def no_expectation(replays: int) -> None:
    """Nobody is told how many replays are to come."""


def what_if(
    traffic: Workload,
    asked: Sequence[str] = (),
    switched: Sequence[str] = (),
    at: int | None = None,
    tries_assumptions: bool | None = None,
    progress: Progress = quiet,
    expect: Callable[[int], None] = no_expectation,
    today: date | None = None,
) -> WhatifReport:
    """All alternatives for the calls of a workload, and their best combination.

    `asked` are alternatives to replay together, `switched` actions after the recorded call `at` (None: the last).
    `tries_assumptions`: whether to ask which savings change sign under other assumptions about open rules; None: if
    the recording is not long. `expect` is called with the number of replays that are still to come, as far as that can
    be known. Models and hosts that are withdrawn by `today` are no alternatives (None: those withdrawn by the
    recording's day).
    Raises InputError for a name that is not known; CannotEvaluate.
    """
    traffic.require_breakpoints("whatif")
    traffic, held = hold_losses(traffic)
    replays = Replays(traffic, progress)
    earlier, base = replays.recorded_rows()
    billed = billed_usd(traffic)
    simulated = cost(base)
    is_near = billed is None or near(simulated, billed)
    now = billed if billed is not None and is_near else simulated
    distrust = "" if is_near else f"the simulation is {FAR} off the bill"
    pricing = AlternativePricing(replays, now, base, distrust, earlier)
    profile = RecordingProfile.of(traffic, base, today)
    options = list(profile.options())
    wanted = profile.find_options(asked) if asked else []
    made = price_actions(profile, pricing, switched, at)
    expect(pricing.expected_replays(options) + 1)
    alternatives = [pricing.price_option(option) for option in options]
    expect(sum(alternative.is_gain for alternative in alternatives) + bool(wanted))
    is_asked = len(traffic.calls) <= MOST_CALLS if tries_assumptions is None else tries_assumptions
    if is_asked:
        alternatives = _with_reversals(pricing, options, alternatives)
    known = {alternative.name: alternative for alternative in alternatives}
    return WhatifReport(
        traffic.name,
        len(traffic.calls),
        pricing.now,
        simulated,
        billed,
        sorted(alternatives, key=_rank),
        _break_even(profile, pricing, options),
        best_together(pricing, options, alternatives),
        jointly(pricing, wanted, known) if wanted else None,
        made,
        traffic.setup.token_source,
        count_margin(base, traffic.setup.error_margin),
        is_asked,
        [f"{name}={value}" for name, value in other_assumptions(traffic)] if is_asked else [],
        profile.retired_models(),
        profile.main.rules.day if profile.main else None,
        len(held),
    )


def near(simulated: Decimal, billed: Decimal) -> bool:
    """Whether the bill is reproduced well enough for differences to be added to it."""
    return abs(simulated - billed) <= MOST_OFF * billed


def billed_usd(traffic: Workload) -> Decimal | None:
    """What the API charged for all calls, USD; None where a call has no bill or no price."""
    bill = BillTotal(traffic.setup.prices, traffic.setup.host)
    for call in traffic.setup.bills:
        if call.billed is None and not call.has_failed:
            return None
        bill.add(call)
    return bill.dollars if traffic.setup.bills and not bill.unpriced else None


def _rank(alternative: Alternative) -> tuple[bool, Decimal, str]:
    """What saves most first, what has no dollars last."""
    return alternative.saving is None, -(alternative.saving or Decimal(0)), alternative.name


def _with_reversals(
    pricing: AlternativePricing, options: Sequence[Option], alternatives: Sequence[Alternative]
) -> list[Alternative]:
    """The alternatives, each with the assumptions under which its saving changes sign."""
    reversals = find_reversals(pricing, options, alternatives)
    return [replace(alternative, depends_on=tuple(reversals.get(alternative.name, ()))) for alternative in alternatives]


def _break_even(
    profile: RecordingProfile, pricing: AlternativePricing, options: Sequence[Option]
) -> TTLBreakEven | None:
    if profile.main is None or profile.prices is None:
        return None
    ttls: Iterator[Option] = (option for option in options if option.name in ("ttl=5m", "ttl=1h"))
    short, hour = map(pricing.usage, ttls)
    return break_even(profile.main.rules, profile.prices, profile.pauses, short, hour)
