"""What the API charged for recorded calls: the usage it sent back, at the prices of each call's day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.readers.request_log.reader import LoggedCall
from cachecost.providers.prices import PriceBook, ways_of
from cachecost.providers.usage import Usage

APART = ("compaction", "advisor_message")
"""Passes that the usage of a call leaves out of its sums, and that are charged (Claude docs, `usage.iterations`)."""


class Bill(msgspec.Struct):
    """Adds up calls. Without `prices` there are no dollars; `host` is that of calls that name none.

    `usage` is what the calls' usage says, `dollars` what it cost in USD, with the passes that it leaves out;
    `unpriced` says why calls are not in the dollars, and how many. A failed call costs nothing.
    """

    prices: PriceBook | None = None
    host: str = "anthropic"
    calls: int = 0
    usage: Usage = msgspec.field(default_factory=Usage)
    dollars: Decimal = Decimal(0)
    unpriced: Counter[str] = msgspec.field(default_factory=Counter)

    def add(self, call: LoggedCall) -> None:
        """Take a call into the sums."""
        self.calls += 1
        if call.billed is None or call.failed:
            return
        self.usage += call.billed
        if self.prices:
            self._price(call, call.billed, self.prices)

    def adding(self, calls: Iterable[LoggedCall]) -> Iterator[LoggedCall]:
        """The calls as they come, each taken into the sums."""
        for call in calls:
            self.add(call)
            yield call

    def _price(self, call: LoggedCall, billed: Usage, prices: PriceBook) -> None:
        parts = [(call.request.model, billed)]
        parts += [(one.model or call.request.model, one.usage) for one in call.iterations if one.kind in APART]
        try:
            self.dollars += sum((self._cost(call, model, usage, prices) for model, usage in parts), Decimal(0))
        except CannotEvaluate as error:
            self.unpriced[str(error)] += 1

    def _cost(self, call: LoggedCall, model: str, usage: Usage, prices: PriceBook) -> Decimal:
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
