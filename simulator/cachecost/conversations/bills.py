"""What the API charged for recorded calls: the usage it returned, at the prices of each call's day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.calls import RecordedCall
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.prices import PriceBook, moment_of, terms_of
from cachecost.providers.quotes import Prices
from cachecost.providers.usage import ZERO, Usage, plus

APART = ("compaction", "advisor_message")
"""Passes that the usage of a call leaves out of its sums, and that are charged (Claude docs, `usage.iterations`)."""
NO_INPUT = "the usage has no input tokens, so what was sent is unknown; `cachecost replay` estimates it"


class BillTotal(msgspec.Struct):
    """The sum of the bills of calls. Without `prices` there are no dollars; `host` is for calls that name none.

    `usage` is the usage that the API returned and `dollars` its cost in USD, both with the passes that the usage leaves
    out; `unpriced` counts, by reason, the calls that are not in the dollars. A failed call costs nothing.
    """

    prices: PriceBook | None = None
    host: str = AUTO_HOST
    calls: int = 0
    usage: Usage = msgspec.field(default_factory=Usage)
    unpriced: Counter[str] = msgspec.field(default_factory=Counter)
    charged: Decimal = ZERO
    """USD that the answers themselves say were charged (gateways), part of `dollars`."""
    charged_calls: int = 0
    listed: Decimal | None = ZERO
    """What these calls cost at list prices; None where one has none."""
    _priced: dict[int, tuple[Prices, Usage]] = msgspec.field(default_factory=dict)
    """The usage at each of the prices, by their identity: dollars are exact, so they can be summed at the end."""

    @property
    def dollars(self) -> Decimal:
        return sum((prices.total_cost(usage) for prices, usage in self._priced.values()), self.charged)

    def add(self, call: RecordedCall) -> None:
        """Add a call to the sums."""
        self.calls += 1
        if call.has_failed:
            return
        if call.billed is None:
            self.unpriced.update([NO_INPUT] if self.prices and call.output_billed is not None else [])
            return
        parts = [("", call.billed)]
        if call.iterations:
            parts += [(one.model, one.usage) for one in call.iterations if one.kind in APART]
        for _, usage in parts:
            self.usage += usage
        if self.prices:
            self._price(call, parts, self.prices)

    def add_all(self, calls: Iterable[RecordedCall]) -> Iterator[RecordedCall]:
        """Yield the calls unchanged, and add each to the sums."""
        for call in calls:
            self.add(call)
            yield call

    def _price(self, call: RecordedCall, parts: list[tuple[str, Usage]], book: PriceBook) -> None:
        """Add the parts to what has their prices: all of them, or none. A charge that the answer states is the bill."""
        charged = call.billed.charged_usd if call.billed else None
        if charged is not None:
            self.charged += charged
            self.charged_calls += 1
        try:
            priced = [(self._prices(call, model or call.request.model, usage, book), usage) for model, usage in parts]
        except CannotEvaluate as error:
            if charged is None:
                self.unpriced[str(error)] += 1
            else:
                self.listed = None
            return
        if charged is not None:
            self.listed = plus(self.listed, sum((prices.total_cost(usage) for prices, usage in priced), ZERO))
            return
        for prices, usage in priced:
            known = self._priced.get(id(prices))
            self._priced[id(prices)] = prices, usage if known is None else known[1] + usage

    def _prices(self, call: RecordedCall, model: str, usage: Usage, book: PriceBook) -> Prices:
        moment = moment_of(None if call.timestamp is None else call.start, call.day)
        terms = terms_of(call.request.params, call.is_batch)
        return book.quote(host_of(call.host, self.host, model), model, moment, terms).of(usage.total_input)
