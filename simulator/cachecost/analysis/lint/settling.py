"""What the bill of a call decides about the step to it from the call before: what was lost can be read off it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from cachecost.analysis.lint.bills import CONFIRMED, SAME, CallBill
from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.loaded_request import LoadedRequest
from cachecost.prompts.blocks import Prefix

NEAR_THE_END, STUCK = "CC523", "CC521"
UNDECIDED = frozenset({NEAR_THE_END, STUCK})
"""Not about what was read: a margin, and what comes after the last breakpoint."""


def settle(
    a: LoadedRequest, b: LoadedRequest, found: Iterable[LintFinding], written: Collection[Prefix]
) -> Iterator[LintFinding]:
    """The findings about the step from `a` to `b` that the bill of `b` does not refute, with what it confirms.

    `written` are the prefixes that earlier requests left in the cache.
    """
    for one in found:
        settled = one if one.code in UNDECIDED or b.bill is None else _settled(a, b, b.bill, one, written)
        if settled is not None:
            yield settled


def _settled(
    a: LoadedRequest, b: LoadedRequest, bill: CallBill, one: LintFinding, written: Collection[Prefix]
) -> LintFinding | None:
    """What the bill of `b` leaves of a finding. Models that count in other tokens compare only where nothing was read.

    The first of several passes read no more than their sum: a sum can confirm a loss, and seldom refute one.
    """
    left, error = _left(a)
    if a.rules.generation != b.rules.generation and bill.usage.read:
        return one
    if left is None:
        return _bounded(a, bill, one)
    lost = left - bill.usage.read
    if lost <= SAME + error or _is_read_past(a, b, bill, one, left, written):
        return _bounded(a, bill, one) if bill.is_summed else None
    tokens = lost if one.tokens is None else min(one.tokens, lost)
    words = f"{one.message}; billed: {bill.usage.read:,} of {left:,} cached tokens read"
    return replace(one, tokens=tokens, message=words, bill=CONFIRMED)


def _left(a: LoadedRequest) -> tuple[int | None, float]:
    """(tokens that `a` left in the cache, how far they may be off); None: not known."""
    billed = a.bill.cached_prefix if a.bill else None
    if billed is not None:
        return billed, 0
    return (a.live[-1].tokens, a.error(a.live[-1].tokens)) if a.sized else (None, 0)


def _is_read_past(
    a: LoadedRequest, b: LoadedRequest, bill: CallBill, one: LintFinding, left: int, written: Collection[Prefix]
) -> bool:
    """Whether more was read than stands before the place of the finding, and than `b` had left there itself."""
    if one.tokens is None or not bill.usage.read:
        return False
    before = left - one.tokens
    own = _written_in(b, written) if bill.usage.read > before else 0
    return bill.usage.read > max(before + a.error(before), own + b.error(own)) + SAME


def _written_in(b: LoadedRequest, written: Collection[Prefix]) -> int:
    """Tokens of the longest prefix of `b` that an earlier request left in the cache, say with the same changes."""
    return next((b.length(node) for node in b.nodes() if node in written), 0)


def _bounded(a: LoadedRequest, bill: CallBill, one: LintFinding) -> LintFinding | None:
    """A bill that is no length of a prefix still bounds what was written again: by all that was not read."""
    most = bill.usage.write + bill.uncached
    is_refuted = one.tokens is not None and one.tokens - a.error(one.tokens) > most + SAME
    return None if is_refuted else one
