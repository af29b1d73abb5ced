"""What the checks of request logs and of transcripts share: the loop over a recording, what it skips, dollars."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Protocol, TypeVar

from cachecost.base.errors import CannotEvaluate
from cachecost.ledger.results import Judgement
from cachecost.providers.prices import PriceBook, Prices
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
        """WithLine `check` with each call and its number from 1. A call that raises CannotEvaluate is skipped."""
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
