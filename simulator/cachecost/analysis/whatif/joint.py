"""Combinations of alternatives. They are replayed, because savings do not add up."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from cachecost.analysis.whatif.alternatives import NOT_EVALUATED, NOT_SUPPORTED, YES, Alternative, Combination
from cachecost.analysis.whatif.option import Option
from cachecost.analysis.whatif.pricing import AlternativePricing
from cachecost.ledger.results import ZERO


def best_together(
    pricing: AlternativePricing, options: Sequence[Option], alternatives: Sequence[Alternative]
) -> Combination | None:
    """The combination that saves most, of alternatives that keep the answers; None if none saves.

    From the best one on each is taken that saves more with those taken before, or in the place of one that it excludes,
    until none does: so together they never save less than the best of them.
    """
    gains = {one.name: one for one in alternatives if one.is_gain and one.keeps_answers and one.kind not in ELSEWHERE}
    open_ones = sorted(
        (option for option in options if option.name in gains), key=lambda one: -_saving(gains[one.name])
    )
    taken: list[Option] = []
    best = ZERO
    while found := _better(pricing, taken, open_ones, best):
        taken, best = found
    return jointly(pricing, taken, gains) if taken else None


ELSEWHERE = frozenset({"host", "batch", "us"})
"""Kinds that send calls elsewhere: combined only on request."""


def _saving(alternative: Alternative) -> Decimal:
    return alternative.saving or ZERO


def _better(
    pricing: AlternativePricing, taken: Sequence[Option], others: Sequence[Option], best: Decimal
) -> tuple[list[Option], Decimal] | None:
    """The first way to take one more, or another in the place of one, that saves more."""
    for option in others:
        if option in taken:
            continue
        more = [one for one in taken if one.kind != option.kind] + [option]
        saving = pricing.saving(more)
        if saving > best:
            return more, saving
    return None


def jointly(pricing: AlternativePricing, options: Sequence[Option], known: dict[str, Alternative]) -> Combination:
    """What these options save together, and the sum of the parts."""
    parts = [known.get(option.name) or pricing.price_option(option) for option in options]
    savings = [_saving(part) for part in parts]
    best = max(savings, default=ZERO)
    names = tuple(option.name for option in options)
    if failed := next((part.supported for part in parts if part.cost is None), ""):
        return Combination(names, None, None, sum(savings, ZERO), best, supported=failed)
    why = pricing.refusal(options)
    if why and not _had_errors(pricing):
        return Combination(names, None, None, sum(savings, ZERO), best, supported=NOT_EVALUATED + why)
    saving = pricing.saving(options)
    doubtful = [part.name for part in parts if part.supported.startswith(NOT_SUPPORTED)]
    supported = f"{NOT_SUPPORTED}neither are {', '.join(doubtful)}" if doubtful else YES
    return Combination(
        names, pricing.now - saving, saving, sum(savings, ZERO), best, _why(parts, saving, best), supported
    )


def _had_errors(pricing: AlternativePricing) -> bool:
    return any(row.error is not None for row in pricing.base)


def _why(parts: Sequence[Alternative], saving: Decimal, best: Decimal) -> str:
    """Why together they save less than one of them alone; "": they do not."""
    if len(parts) < 2 or saving >= best:
        return ""
    losers = [part.name for part in parts if part.saving is not None and part.saving < 0]
    if losers:
        return f"{', '.join(losers)} costs more than it saves, also on its own"
    return "they avoid the same cost, so one pays for what the other makes unnecessary"
