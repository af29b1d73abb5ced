"""What calls cost with a fix, and no more saved than was billed and than the cache makes.

Shares what a fix saves out among the findings that it fixes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal

from cachecost.analysis.explain.fixes.fix import Fix
from cachecost.analysis.explain.observed_replay import ObservedReplay
from cachecost.analysis.replays.steps import NO_CALL, ReplayStep
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.providers.prices import Prices
from cachecost.providers.usage import ZERO, Usage

PLACES = Decimal("1e-12")
"""Shares are rounded down to so many USD; the last one takes what is left."""


def share_out(
    saved: Decimal, numbers: Sequence[int], weights: Mapping[int, Decimal], left: dict[int, Decimal]
) -> dict[int, Decimal]:
    """USD by call: `saved` in proportion to what each call saves, and to no call more than is `left` of its cost.

    `left` is reduced by what is shared out. What fits nowhere is dropped: then all sums stay too small.
    """
    weighed = {number: max(ZERO, weights.get(number, ZERO)) for number in dict.fromkeys(numbers)}
    shares = dict.fromkeys(weighed, ZERO)
    for wanted in (weighed, left):
        _fill(shares, saved - sum(shares.values(), ZERO), {number: wanted[number] for number in shares}, left)
    return {number: share for number, share in shares.items() if share > 0}


def _fill(shares: dict[int, Decimal], rest: Decimal, weights: Mapping[int, Decimal], left: dict[int, Decimal]) -> None:
    total = sum(weights.values(), ZERO)
    if rest <= 0 or not total:
        return
    *most, last = sorted(weights, key=lambda number: weights[number])
    added = {number: (rest * weights[number] / total).quantize(PLACES, ROUND_DOWN) for number in most}
    added[last] = rest - sum(added.values(), ZERO)
    for number, share in added.items():
        fits = min(share, left[number])
        shares[number] += fits
        left[number] -= fits


@dataclass(frozen=True, slots=True)
class PricedReplay:
    """The USD of each recorded call in a replay, and of the `extras`, which were not recorded.

    `besides` is what a call is cheaper for the prices of another model or speed alone: that saves nothing here.
    """

    costs: Mapping[int, Decimal]
    extras: Sequence[tuple[Call, Decimal]] = ()
    besides: Mapping[int, Decimal] = field(default_factory=dict)

    @property
    def total(self) -> Decimal:
        return sum((usd for _, usd in self.extras), sum(self.costs.values(), ZERO))

    def by_scope(self, steps: Sequence[ReplayStep], scope_of: Callable[[Call], Hashable]) -> dict[Hashable, Decimal]:
        """USD by what the calls have in common; `steps` are the recorded calls."""
        sums: dict[Hashable, Decimal] = {}
        recorded = ((step.call, self.costs[step.number]) for step in steps if step.number != NO_CALL)
        for call, usd in (*recorded, *self.extras):
            scope = scope_of(call)
            sums[scope] = sums.get(scope, ZERO) + usd
        return sums


@dataclass(slots=True)
class FixPricing:
    """Prices fixes against the recording: `simulated` and `paid` are USD by call, paid at most what was billed."""

    simulated: Mapping[int, Decimal]
    paid: Mapping[int, Decimal]

    def price_recording(self) -> PricedReplay:
        """The calls as they were sent."""
        return PricedReplay(self.paid)

    def price(
        self, fix: Fix, rows: Sequence[CallRow], observed: ObservedReplay, now: PricedReplay
    ) -> PricedReplay | None:
        """The calls with a fix, whose `rows` are given; `now` is their price in the `observed` replay. None: one is
        refused."""
        if _is_refused(fix.steps, rows, observed):
            return None
        besides = _PriceOnlySavings(observed, now).of(fix, rows)
        made = {step.number: row.cost.total for step, row in zip(fix.steps, rows, strict=True) if step.number}
        costs = {number: self._at_most_billed(number, usd + besides.get(number, ZERO)) for number, usd in made.items()}
        pairs = zip(fix.steps, rows, strict=True)
        extras = [(step.call, row.cost.total) for step, row in pairs if step.number == NO_CALL]
        return PricedReplay(costs, extras, besides)

    def _at_most_billed(self, number: int, usd: Decimal) -> Decimal:
        """A call whose bill is below its simulation saves only what is below the bill, and costs more by as much."""
        simulated, paid = self.simulated[number], self.paid[number]
        return usd - (simulated - paid) if usd >= simulated else min(usd, paid)


def _is_refused(steps: Sequence[ReplayStep], rows: Sequence[CallRow], observed: ObservedReplay) -> bool:
    """Whether a call has an error that it does not have now."""
    had = {step.number for step, row in zip(observed.steps, observed.rows, strict=True) if row.error}
    return any(row.error and step.number not in had for step, row in zip(steps, rows, strict=True))


@dataclass(frozen=True, slots=True)
class _PriceOnlySavings:
    """What other prices alone save, with the fixes before."""

    observed: ObservedReplay
    now: PricedReplay

    def of(self, fix: Fix, rows: Sequence[CallRow]) -> dict[int, Decimal]:
        besides = dict(self.now.besides)
        if not fix.keeps_prices:
            return besides
        after = {step.number: row for step, row in zip(fix.steps, rows, strict=True)}
        for position, step in enumerate(self.observed.steps, 1):
            prices = self.observed.prices.get(position)
            if step.number and prices:
                usd = _other_prices(self.observed.rows[position - 1], after[step.number], prices)
                besides[step.number] = besides.get(step.number, ZERO) + usd
        return besides


def _other_prices(before: CallRow, after: CallRow, prices: Prices) -> Decimal:
    """USD by which the call is cheaper for its prices alone; what it costs more counts as it is."""
    at_own = prices.total_cost(_as_long(after.usage, before.usage))
    return max(ZERO, at_own - after.cost.total)


def _as_long(usage: Usage, other: Usage) -> Usage:
    """The usage in the tokens of another one: another model counts the same text otherwise."""
    total, wanted = usage.total_input, other.total_input
    if not total or total == wanted:
        return replace(usage, output_tokens=other.output_tokens)
    read, short, hour = (round(part * wanted / total) for part in (usage.read, usage.write_5m, usage.write_1h))
    return Usage(max(0, wanted - read - short - hour), read, short, hour, other.output_tokens)
