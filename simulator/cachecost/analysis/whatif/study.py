"""`whatif`: every promise on a recording, the best of them together, and what it would take for an hour to pay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from cachecost.analysis.whatif.action import actions
from cachecost.analysis.whatif.assumptions import other_readings, turned
from cachecost.analysis.whatif.catalogue import Study
from cachecost.analysis.whatif.facts import BreakEven, Promise, Whatif
from cachecost.analysis.whatif.joint import best_together, jointly
from cachecost.analysis.whatif.option import Option
from cachecost.analysis.whatif.pauses import break_even
from cachecost.analysis.whatif.pricing import Pricing
from cachecost.analysis.whatif.replaying import Progress, Replays, quiet
from cachecost.analysis.whatif.steps import cost
from cachecost.conversations.bills import Bill
from cachecost.replay.workload import Workload

MOST_CALLS = 500
"""Recordings with more calls than these are asked under other readings of the rules only when that is wanted."""
MOST_OFF = Decimal("0.1")
"""Share of the bill. What is further off was not simulated as it was: a cache warm before, tools of the server."""
FAR = "more than 10%"


def what_if(
    traffic: Workload,
    asked: Sequence[str] = (),
    switched: Sequence[str] = (),
    at: int | None = None,
    readings: bool | None = None,
    progress: Progress = quiet,
) -> Whatif:
    """Every promise on the calls of a traffic, and the best together.

    `asked` are promises to be replayed together, `switched` actions after the recorded call `at` (None: the last).
    `readings`: whether to ask which promises turn under another reading of the open rules; None: if the recording is
    not long.
    Raises InputError for a name that is not known; CannotEvaluate.
    """
    traffic.require_breakpoints("whatif")
    replays = Replays(traffic, progress)
    base = replays.rows(replays.recorded)
    billed = billed_usd(traffic)
    simulated = cost(base)
    is_near = billed is None or near(simulated, billed)
    now = billed if billed is not None and is_near else simulated
    pricing = Pricing(replays, now, base, "" if is_near else f"the simulation of what was sent is {FAR} off its bill")
    study = Study.of(traffic, base)
    options = list(study.options())
    wanted = study.named(asked) if asked else []
    made = actions(study, pricing, switched, at)
    promises = [pricing.promise(option) for option in options]
    is_asked = len(traffic.calls) <= MOST_CALLS if readings is None else readings
    if is_asked:
        promises = _with_readings(pricing, options, promises)
    known = {promise.name: promise for promise in promises}
    return Whatif(
        traffic.name,
        len(traffic.calls),
        pricing.now,
        simulated,
        billed,
        sorted(promises, key=_rank),
        _break_even(study, pricing, options),
        best_together(pricing, options, promises),
        jointly(pricing, wanted, known) if wanted else None,
        made,
        traffic.setup.token_source,
        traffic.setup.band,
        is_asked,
        [f"{name}={value}" for name, value in other_readings(traffic)] if is_asked else [],
    )


def near(simulated: Decimal, billed: Decimal) -> bool:
    """Whether the bill is reproduced well enough for differences to be added to it."""
    return abs(simulated - billed) <= MOST_OFF * billed


def billed_usd(traffic: Workload) -> Decimal | None:
    """What the API charged for all calls, USD; None where a call has no bill or no price."""
    bill = Bill(traffic.setup.prices, traffic.setup.host)
    for call in traffic.setup.bills:
        if call.billed is None and not call.failed:
            return None
        bill.add(call)
    return bill.dollars if traffic.setup.bills and not bill.unpriced else None


def _rank(promise: Promise) -> tuple[bool, Decimal, str]:
    """What saves most first, what has no dollars last."""
    return promise.saving is None, -(promise.saving or Decimal(0)), promise.name


def _with_readings(pricing: Pricing, options: Sequence[Option], promises: Sequence[Promise]) -> list[Promise]:
    """The promises, each with the readings under which it turns."""
    told = turned(pricing, options, promises)
    return [replace(promise, depends_on=tuple(told.get(promise.name, ()))) for promise in promises]


def _break_even(study: Study, pricing: Pricing, options: Sequence[Option]) -> BreakEven | None:
    if study.main is None or study.prices is None:
        return None
    lifetimes: Iterator[Option] = (option for option in options if option.name in ("ttl=5m", "ttl=1h"))
    short, hour = (pricing.replayed([option]).rows for option in lifetimes)
    return break_even(study.main.rules, study.prices, study.pauses, short, hour)
