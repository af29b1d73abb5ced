"""Shares what a fix saves out among the findings that it fixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Decimal

from cachecost.ledger.results import ZERO

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
    """Add the rest to the shares by weight, each as far as it fits."""
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
