"""`whatif`: all alternatives for a recording, their combinations, and the break-even of the 1h TTL. Combinations are
replayed, as savings do not add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal

from cachecost.analysis.bill.explanation import hold_losses
from cachecost.analysis.whatif.actions import price_actions
from cachecost.analysis.whatif.pricing import AlternativePricing, find_reversals, other_assumptions
from cachecost.analysis.whatif.results import (
    NOT_EVALUATED,
    NOT_SUPPORTED,
    YES,
    Alternative,
    Combination,
    TTLBreakEven,
    WhatifReport,
    break_even,
)
from cachecost.changes.catalogue import RecordingProfile
from cachecost.changes.option import Option
from cachecost.changes.steps import Progress, Replays, cost, quiet
from cachecost.conversations.calls import BillTotal
from cachecost.ledger.findings import count_margin
from cachecost.providers.usage import ZERO
from cachecost.simulation.workload import Workload

ELSEWHERE = frozenset({"host", "batch", "us"})
"""Kinds that send calls elsewhere: combined only on request."""


def best_together(
    pricing: AlternativePricing, options: Sequence[Option], alternatives: Sequence[Alternative]
) -> Combination | None:
    """The combination that saves most, of alternatives that keep the answers; None if none saves.

    From the best one on each is added that saves more with those before, or in the place of one that it excludes,
    until none does: so together they never save less than the best of them.
    """
    gains = {one.name: one for one in alternatives if one.is_gain and one.keeps_answers and one.kind not in ELSEWHERE}
    by_saving = sorted(
        (option for option in options if option.name in gains), key=lambda one: -_saving(gains[one.name])
    )
    chosen, best, has_grown = list[Option](), ZERO, True
    while has_grown:
        has_grown = False
        for option in by_saving:
            if option in chosen:
                continue
            more = [one for one in chosen if one.kind != option.kind] + [option]
            saving = pricing.saving(more)
            if saving > best:
                chosen, best, has_grown = more, saving, True
                break
    return jointly(pricing, chosen, gains) if chosen else None


def _saving(alternative: Alternative) -> Decimal:
    return alternative.saving or ZERO


def jointly(pricing: AlternativePricing, options: Sequence[Option], known: dict[str, Alternative]) -> Combination:
    """What these options save together, and the sum of the parts."""
    parts = [known.get(option.name) or pricing.price_option(option) for option in options]
    savings = [_saving(part) for part in parts]
    best = max(savings, default=ZERO)
    names = tuple(option.name for option in options)
    failed = next((part.supported for part in parts if part.cost is None), "")
    if (
        not failed
        and (refused := pricing.replay_once(options).error)
        and all(row.error is None for row in pricing.base)
    ):
        failed = NOT_EVALUATED + refused
    if failed:
        return Combination(names, None, None, sum(savings, ZERO), best, supported=failed)
    saving = pricing.saving(options)
    doubtful = [part.name for part in parts if part.supported.startswith(NOT_SUPPORTED)]
    supported = f"{NOT_SUPPORTED}neither are {', '.join(doubtful)}" if doubtful else YES
    why = ""
    if len(parts) > 1 and saving < best:
        losers = [part.name for part in parts if part.saving is not None and part.saving < 0]
        why = (
            f"{', '.join(losers)} costs more than it saves, also on its own"
            if losers
            else "they avoid the same cost, so one pays for what the other makes unnecessary"
        )
    return Combination(names, pricing.now - saving, saving, sum(savings, ZERO), best, why, supported)


MOST_CALLS = 500
"""Recordings with more calls are replayed under other assumptions only on request."""
MOST_OFF = Decimal("0.1")
"""Share of the bill. What is further off was not simulated as it was: a cache warm before, tools of the server."""
FAR = "more than 10%"


def what_if(
    traffic: Workload,
    asked: Sequence[str] = (),
    switched: Sequence[str] = (),
    at: int | None = None,
    tries_assumptions: bool | None = None,
    progress: Progress = quiet,
    expect: Callable[[int], None] = lambda _: None,
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
    traffic.require_support("whatif")
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
        alternatives = find_reversals(pricing, options, alternatives)
    known = {alternative.name: alternative for alternative in alternatives}
    return WhatifReport(
        traffic.name,
        len(traffic.calls),
        pricing.now,
        simulated,
        billed,
        sorted(alternatives, key=lambda one: (one.saving is None, -_saving(one), one.name)),
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


def _break_even(
    profile: RecordingProfile, pricing: AlternativePricing, options: Sequence[Option]
) -> TTLBreakEven | None:
    if profile.main is None or profile.prices is None or not profile.main.rules.uses_breakpoints:
        return None
    ttls: Iterator[Option] = (option for option in options if option.name in ("ttl=5m", "ttl=1h"))
    short, hour = map(pricing.usage, ttls)
    return break_even(profile.main.rules, profile.prices, profile.pauses, short, hour)
