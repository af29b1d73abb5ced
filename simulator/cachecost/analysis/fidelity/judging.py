"""What the checks of request logs and transcripts share: the loop over a recording, dollars, and verdicts by bills."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeVar

from cachecost.base.errors import CannotEvaluate
from cachecost.base.formatting import duration
from cachecost.caches.reporting import ReadBounds
from cachecost.ledger.results import Judgement
from cachecost.prompts.blocks import Prefix
from cachecost.providers.prices import PriceBook, Prices
from cachecost.providers.rules import VisibilityLag
from cachecost.providers.usage import SMALLEST_PART, Usage

TOLERANCE = 2
"""Tokens that a read may be off and still be exact (docs/reference/output-formats.md, validate)."""
Skipped = list[tuple[str, str]]
"""(file:line, reason) of each call that was not judged."""


class _HasLine(Protocol):
    @property
    def line(self) -> int: ...


WithLine = TypeVar("WithLine", bound=_HasLine)


class RecordingCheck:
    """One recording while it is checked. `judgements` and `skipped` grow call by call."""

    def __init__(self, source: str, prices: PriceBook) -> None:
        self.source = source
        self.prices = prices
        self.judgements: list[Judgement] = []
        self.skipped: Skipped = []

    def run(self, calls: Iterable[WithLine], check: Callable[[int, WithLine], None]) -> None:
        """Call `check` with each call and its number from 1. A call that raises CannotEvaluate is skipped."""
        for number, call in enumerate(calls, 1):
            try:
                check(number, call)
            except CannotEvaluate as error:
                self.skip(call.line, str(error))

    def skip(self, line: int, reason: str) -> None:
        self.skipped.append((f"{self.source}:{line}", reason))


def input_cost(usage: Usage, quote: Callable[[int], Prices], billed: Usage | None = None) -> Decimal | None:
    """USD of the input side of `usage`. `quote` returns the prices for so many input tokens; None if it cannot.

    Where `billed` says what the call was charged, both its own and a predicted usage are priced in proportion to that.
    """
    is_charged = billed is not None and billed.charged_usd is not None
    try:
        prices = quote(usage.total_input)
        if billed is not None and is_charged:
            prices = prices.in_proportion(quote(billed.total_input).charge_factor(billed))
    except CannotEvaluate:
        return None
    paid = Usage(usage.input_tokens, usage.read, usage.write_5m, usage.write_1h)
    cost = prices.total_cost(paid)
    return cost.quantize(SMALLEST_PART) if is_charged else cost


ESTIMATE = 0.01
"""Share that an estimated length may be off and still count as one that the recording could have written."""


@dataclass(frozen=True, slots=True)
class BillVerdict:
    """`kind`, `exact` and `holds` of a judgement; why it is not right, in words, else "".

    `cause` is the probable one from the closed list of causes, where one is known. `found` is the prefix that the
    bill proves to be alive although the recording cannot tell. `bounds` are those of the read that was judged.
    """

    kind: str
    exact: bool
    reason: str = ""
    holds: bool = False
    cause: str = ""
    found: Prefix | None = None
    bounds: ReadBounds | None = None


@dataclass(frozen=True, slots=True)
class BillComparison:
    """A prediction and the bill. `is_measured`: other bills give the exact length of the predicted hit.

    `first_read` is the billed read of the first of several passes; None if only their sum is billed. `bounds` of the
    read are None where the host's hits are certain.
    """

    billed: Usage
    predicted: Usage
    hit: Prefix | None
    is_measured: bool
    passes: int = 1
    first_read: int | None = None
    bounds: ReadBounds | None = None

    @property
    def is_in_range(self) -> bool:
        """Whether the billed read lies within the bounds; False where there are none."""
        read = self.billed.read
        return self.bounds is not None and self.bounds.hold(read, _slack(read, False))


@dataclass(frozen=True, slots=True)
class PossibleEntry:
    """An entry that an earlier call of the recording wrote on the way of this prompt, as it stands before the call.

    `read` is what a hit there would read, all passes together; `is_measured`: other bills give it. `age_s` is the time
    since its writer started, `expired_s` since it expired (None: it has not).
    """

    prefix: Prefix
    read: int
    is_measured: bool
    age_s: float
    expired_s: float | None = None


def judge_breakpoint_hit(
    comparison: BillComparison, possible: Sequence[PossibleEntry], lag: VisibilityLag | None = None
) -> BillVerdict:
    """By docs/reference/output-formats.md. `possible`: all entries that could be there; `lag`: that of their model.

    If the first pass read nothing, later passes read no more than was written before each.
    """
    read, predicted = comparison.billed.read, comparison.predicted.read
    first = comparison.first_read
    is_cold = read <= (comparison.passes - 1) * comparison.billed.write if first is None else first == 0
    if is_cold:
        if comparison.hit is None:
            return BillVerdict("cold", True)
        late = _describe_lag(comparison, possible, lag)
        return BillVerdict("cold", False, _describe_miss(predicted, late), cause="visibility_lag" if late else "")
    matching = [one for one in possible if abs(one.read - read) <= _slack(read, one.is_measured)]
    if not matching:
        return BillVerdict("unknown", False, _describe_unknown(read, predicted))
    if abs(predicted - read) <= TOLERANCE:
        return BillVerdict("hit", True)
    if all(one.expired_s is not None for one in matching):
        since = f"{duration(matching[0].expired_s or 0)} after they expired"
        words = f"read {read:,} tokens {since}: an unrecorded call may have kept them alive"
        return BillVerdict("unknown", False, words, found=matching[0].prefix)
    late = _describe_lag(comparison, possible, lag) if predicted > read else ""
    words = f"another prefix was hit: {predicted:,} tokens were predicted, {read:,} were read"
    if comparison.hit is None:
        words = f"no hit was predicted, and {read:,} tokens were read that an earlier call could have written"
    elif min(possible, key=lambda one: abs(one.read - read)).prefix is comparison.hit:
        why = "its length is an estimate: no other bill gives it"
        why = "other bills give another length" if comparison.is_measured else why
        words = f"the same prefix, {predicted - read:+,} tokens off; {why}"
    return BillVerdict("hit", False, words + late, cause="visibility_lag" if late else "")


def judge_prefix_hit(comparison: BillComparison, reach: int) -> BillVerdict:
    """For hosts that keep every prefix. An earlier call sent `reach` tokens of this prompt."""
    read, predicted = comparison.billed.read, comparison.predicted.read
    holds, bounds = comparison.is_in_range, comparison.bounds
    if read == 0:
        words = "" if predicted == 0 else _describe_miss(predicted)
        return BillVerdict("cold", predicted == 0, words, holds, bounds=bounds)
    if read > max(reach, predicted) + _slack(read, False):
        return BillVerdict("unknown", False, _describe_unknown(read, predicted))
    exact = abs(predicted - read) <= TOLERANCE
    is_estimate = not comparison.is_measured and comparison.hit is not None
    why = f"{predicted:,} tokens were predicted, {read:,} were read"
    why += "; the predicted length is an estimate" if is_estimate else ""
    return BillVerdict("hit", exact, "" if exact else why, holds, bounds=bounds)


def judge_range(comparison: BillComparison, reach: int) -> BillVerdict:
    """For best-effort hosts: the read must lie within the bounds of their rules."""
    read, bounds = comparison.billed.read, comparison.bounds
    assert bounds is not None
    if read > reach + _slack(read, False):
        return BillVerdict("unknown", False, _describe_unknown(read, comparison.predicted.read))
    if comparison.is_in_range:
        return BillVerdict("range", False, holds=True, bounds=bounds)
    least = f"{bounds.least:,} to " if bounds.least else "at most "
    words = f"{least}{bounds.most:,} tokens were predicted, {read:,} were read"
    return BillVerdict("range", False, words, bounds=bounds)


def _slack(read: int, is_measured: bool) -> float:
    return TOLERANCE if is_measured else max(TOLERANCE, ESTIMATE * read)


def _describe_lag(comparison: BillComparison, possible: Sequence[PossibleEntry], lag: VisibilityLag | None) -> str:
    """The words where the entry that was predicted to be hit was probably not readable yet; "" where it was."""
    entry = next((one for one in possible if one.prefix is comparison.hit), None)
    if lag is None or entry is None or entry.age_s > lag.longest_s:
        return ""
    return f"; probable cause: visibility lag, as the longer entry was written {duration(entry.age_s)} before"


def _describe_unknown(read: int, predicted: int) -> str:
    words = f"; predicted {predicted:,}" if predicted else ""
    return f"read {read:,} tokens that no recorded call can have written{words}"


def _describe_miss(predicted: int, late: str = "") -> str:
    why = late or ": evicted, or not readable yet"
    return f"a hit of {predicted:,} tokens was predicted, and nothing was read{why}"
