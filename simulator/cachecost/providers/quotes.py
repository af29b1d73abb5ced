"""What the rows of a model come to: a price of each token class, by length of the prompt."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from decimal import ROUND_UP, Decimal

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import value
from cachecost.providers.pricefile import CLASSES
from cachecost.providers.pricerows import Instead, PriceRow, Storage
from cachecost.providers.usage import ZERO, Usage

PER_TOKEN = -6
"""Prices are per 10**6 tokens."""
SMALLEST = Decimal("0.000001")
HOUR = Decimal(3600)
WRITES = {"write_5m": "5m", "write_1h": "1h"}
CLASS_IN_WORDS = {"read": "cache reads", "write_5m": "5m cache writes", "write_1h": "1h cache writes"}


@value
class Prices:
    """What each token class costs, in USD per 10**6 tokens, modifiers included. `source` says who says so."""

    read: Decimal
    write_5m: Decimal
    write_1h: Decimal
    input: Decimal
    output: Decimal
    source: str = ""

    @property
    def are_known(self) -> bool:
        """False: nobody says what tokens cost here, so dollars are not to be told."""
        return self.source != NOBODY

    def cost(self, usage: Usage) -> dict[str, Decimal]:
        """Dollars of `usage` by token class, exact: read, write_5m, write_1h, input, output."""
        return {
            "read": _dollars(usage.read, self.read),
            "write_5m": _dollars(usage.write_5m, self.write_5m),
            "write_1h": _dollars(usage.write_1h, self.write_1h),
            "input": _dollars(usage.input_tokens, self.input),
            "output": _dollars(usage.output_tokens, self.output),
        }

    def total_cost(self, usage: Usage) -> Decimal:
        """Dollars of `usage`, all token classes together, exact."""
        return sum(self.cost(usage).values(), ZERO)


NOBODY = "nobody says"
UNPRICED = Prices(ZERO, ZERO, ZERO, ZERO, ZERO, NOBODY)
"""Of a server of one's own, where nobody says what its time costs: tokens are all that can be told."""


def _dollars(tokens: int, price: Decimal) -> Decimal:
    return (tokens * price).scaleb(PER_TOKEN) if tokens else ZERO


@value
class Quote:
    """Prices of one way of calling a model on a day, by prompt length: `tiers[i]` from above `above[i - 1]` tokens."""

    above: tuple[int, ...]
    tiers: tuple[Prices, ...]

    def of(self, tokens: int) -> Prices:
        return self.tiers[bisect_left(self.above, tokens)]


@value
class Kept:
    """The storage of a named object, and its lifetimes in seconds by TTL."""

    storage: Storage
    ttl_s: Mapping[str, float]

    def of(self, write: str, found: Mapping[str, Decimal]) -> Decimal:
        """Making it, reading it in the call that made it, and keeping it for all of its lifetime."""
        hours = Decimal(self.ttl_s[WRITES[write]]) / HOUR
        kept = (self.storage.usd_per_hour * hours).quantize(SMALLEST, ROUND_UP)
        return found["input"] + found["read"] + kept


@value
class Pricing:
    """The rows of a model on a day, and what stands in for classes that no row prices."""

    host: str
    model: str
    rows: list[PriceRow]
    instead: Mapping[str, Instead]
    kept: Kept | None

    def tier(self, length: int, factor: Decimal, notes: list[str]) -> Prices:
        """Prices of prompts just above `length` tokens: of each class, the last row that names it."""
        chosen = {name: row for row in self.rows if row.above <= length for name in row.prices}
        found: dict[str, Decimal] = {}
        sources: list[str] = []
        for name in CLASSES:
            found[name], source = self._price(name, chosen.get(name), found)
            sources.append(source)
        prices = {name: price * factor for name, price in found.items()}
        return Prices(**prices, source=", ".join([*dict.fromkeys(sources), *notes]))

    def _price(self, name: str, row: PriceRow | None, found: Mapping[str, Decimal]) -> tuple[Decimal, str]:
        if row:
            return row.prices[name], row.source
        if self.kept and name in WRITES:
            return self.kept.of(name, found), f"storage: {self.kept.storage.source}"
        if other := self.instead.get(name):
            return found[other.like] * other.times, other.source
        words = CLASS_IN_WORDS.get(name, f"{name} tokens")
        raise CannotEvaluate(f"no price of {words} known for {self.model} on host {self.host}; give one with --prices")
