"""What a log of whole requests paid again, by its bills: the simulation says what could be read, the bill what was.

A simulated replay finds what each call should have read and, where it should have read less than was sent before, the
block and the cause. The bill decides how much of that happened: what it read is no loss, and what it did not read
although the replay did is billed, not explained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.analysis.explain.codes import codes
from cachecost.analysis.explain.observed_replay import ObservedReplay
from cachecost.analysis.explain.wording import excerpt, message, place
from cachecost.caches.causes import Cause
from cachecost.caches.losses import Loss
from cachecost.conversations.billed_calls import BilledCall
from cachecost.conversations.calls import Call
from cachecost.ledger.findings import Finding
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import ZERO

TOLERANCE = 2
ESTIMATE = 0.02
"""The length of a prefix that no bill reveals is an estimate: a smaller difference is no rewrite, nor is one within the
error margin of the counts."""
NOT_EXPLAINED: Cause = "billed_not_explained"
NEVER_WRITTEN: frozenset[Cause] = frozenset(
    {"breakpoint_misplaced", "no_breakpoint", "below_minimum", "written_never_read"}
)
"""What was never in the cache is not written again."""


@dataclass(frozen=True, slots=True)
class _PaidSpan:
    """Tokens of a prompt that were paid for again, and the loss that explains it (None: nothing does)."""

    start: int
    end: int
    loss: Loss | None


def find_request_rewrites(
    calls: Sequence[Call], billed: Sequence[BilledCall | None], observed: ObservedReplay, prices: CallPrices
) -> Iterator[Finding]:
    """A finding for each rewrite that the bills show, in the order of the calls; `billed` are the bills of `calls`."""
    losses: dict[int, list[Loss]] = {}
    for loss in observed.losses:
        if loss.cause not in NEVER_WRITTEN and _was_cached(loss, billed):
            losses.setdefault(loss.call, []).append(loss)
    for call, bill, row, margin in zip(calls, billed, observed.rows, observed.read_margins, strict=True):
        if bill is None or row.error is not None:
            continue
        for span in _spans(bill, row, margin, losses.get(row.call, []), billed):
            yield _finding(call, bill, row, span, prices)


def _was_cached(loss: Loss, billed: Sequence[BilledCall | None]) -> bool:
    """Whether the call that sent it before cached anything, as far as its bill tells."""
    before = billed[loss.since.number - 1] if loss.since else None
    return before is None or before.cached > 0


def _spans(
    bill: BilledCall, row: CallRow, margin: float, losses: Sequence[Loss], billed: Sequence[BilledCall | None]
) -> Iterator[_PaidSpan]:
    """What the bill did not read, in the order of the prompt: what should have been read, then each loss.

    `margin` is how far off the replay's read may be. No loss reaches beyond what the call before had cached.
    """
    read, end = bill.read, bill.total_input
    expected = row.usage.read
    ends: list[tuple[int, Loss | None]] = [] if bill.is_summed else [(expected, None)]
    ends += sorted(((_end_of(loss, expected, billed), loss) for loss in losses), key=lambda one: one[0])
    at = read
    for limit, loss in ends:
        stop = min(limit, end)
        if stop - at > max(TOLERANCE, ESTIMATE * limit, 0.0 if loss else margin):
            yield _PaidSpan(at, stop, loss)
            at = stop


def _end_of(loss: Loss, expected: int, billed: Sequence[BilledCall | None]) -> int:
    """Where what is lost ends: with what the call before had cached, if all of that was sent again."""
    before = billed[loss.since.number - 1] if loss.since else None
    end = expected + loss.tokens
    if before is None or before.is_summed:
        return end
    return before.cached if loss.is_whole else min(end, before.cached)


def is_less_than_expected(read: int, expected: int, margin: float) -> bool:
    """Whether a bill read less than a replay says, by more than an estimated length may be wrong."""
    return expected - read > max(TOLERANCE, ESTIMATE * expected, margin)


def find_unexplained(number: int, bill: BilledCall, expected: int, prices: CallPrices) -> Finding | None:
    """What a bill did not read of the `expected` tokens; None where that costs nothing, or no price is known."""
    cost = prices.rewrite_cost(bill, expected - bill.read)
    if not cost or cost <= 0:
        return None
    code, tokens = codes()[NOT_EXPLAINED], expected - bill.read
    words = _not_explained(bill.read, expected)
    return Finding(code.code, code.cause, number, Layer.MESSAGES, "", tokens, cost, words, code.fix, paid_again=cost)


def _finding(call: Call, bill: BilledCall, row: CallRow, span: _PaidSpan, prices: CallPrices) -> Finding:
    cost = prices.rewrite_cost(bill, span.end - bill.read)
    before = prices.rewrite_cost(bill, span.start - bill.read)
    tokens = span.end - span.start
    paid = ZERO if cost is None or before is None else cost - before
    loss = span.loss
    code = codes()[loss.cause if loss else NOT_EXPLAINED]
    return Finding(
        code.code,
        code.cause,
        row.call,
        loss.first.layer if loss else Layer.MESSAGES,
        place(loss, call.request) if loss else "",
        tokens,
        paid,
        message(loss, call.request, tokens) if loss else _not_explained(bill.read, row.usage.read),
        code.fix,
        loss.since.number if loss and loss.since else None,
        excerpt(loss) if loss else None,
        code.word,
    )


def _not_explained(read: int, expected: int) -> str:
    return f"read {read:,} of {expected:,} tokens that should have been cached; the requests do not say why"
