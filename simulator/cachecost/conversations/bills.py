"""What the API charged for recorded calls: the usage it returned, at the prices of each call's day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.calls import RecordedCall
from cachecost.providers.prices import PriceBook, ways_of
from cachecost.providers.usage import Usage

APART = ("compaction", "advisor_message")
"""Passes that the usage of a call leaves out of its sums, and that are charged (Claude docs, `usage.iterations`)."""


class BillTotal(msgspec.Struct):
    """The sum of the bills of calls. Without `prices` there are no dollars; `host` is for calls that name none.

    `usage` is the usage that the API returned and `dollars` its cost in USD, both with the passes that the usage leaves
    out; `unpriced` counts, by reason, the calls that are not in the dollars. A failed call costs nothing.
    """

    prices: PriceBook | None = None
    host: str = "anthropic"
    calls: int = 0
    usage: Usage = msgspec.field(default_factory=Usage)
    dollars: Decimal = Decimal(0)
    unpriced: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, call: RecordedCall) -> None:
        """Add a call to the sums."""
        self.calls += 1
        if call.billed is None or call.has_failed:
            return
        self.usage = sum((one.usage for one in call.iterations if one.kind in APART), self.usage + call.billed)
        if self.prices:
            self._price(call, call.billed, self.prices)

    def add_all(self, calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
        """Yield the calls unchanged, and add each to the sums."""
        for call in calls:
            self.add(call)
            yield call

    def _price(self, call: RecordedCall, billed: Usage, prices: PriceBook) -> None:
        parts = [(call.request.model, billed)]
        parts += [(one.model or call.request.model, one.usage) for one in call.iterations if one.kind in APART]
        try:
            self.dollars += sum((self._cost(call, model, usage, prices) for model, usage in parts), Decimal(0))
        except CannotEvaluate as error:
            self.unpriced[str(error)] += 1

    def _cost(self, call: RecordedCall, model: str, usage: Usage, prices: PriceBook) -> Decimal:
        day = call.day
        found = prices.prices(
            call.host or self.host,
            model,
            day,
            usage.total_input,
            batch=call.is_batch,
            **ways_of(call.request.params),
        )
        return found.total_cost(usage)
