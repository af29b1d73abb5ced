"""The usage of one call, in Anthropic's convention, and the price of each token class of a model by prompt length."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import ROUND_UP, Decimal
from typing import TYPE_CHECKING, Literal

import msgspec

from cachecost.base.errors import CannotEvaluate

if TYPE_CHECKING:
    from cachecost.providers.pricerows import PriceRow, PriceSubstitute, Storage


ZERO = Decimal(0)
"""No dollars: the start of every sum of money."""
TOKEN_CLASSES = ("read", "write_5m", "write_1h", "input", "output")
"""The classes that tokens are priced by."""
PRICED_CLASSES = ("input", "read", "write_5m", "write_1h", "output")
"""The same, in the order of a price file."""
USUAL_TTL_S: Mapping[str, float] = {"5m": 300.0, "1h": 3600.0}
"""The two TTLs in seconds, on every host whose rules state no others."""
TTLS: tuple[Literal["5m", "1h"], ...] = ("5m", "1h")
"""The short TTL and the long one."""
INPUT_CLASSES = TOKEN_CLASSES[:-1]
"""Those of a prompt."""
COST_CLASSES = (*TOKEN_CLASSES, "fees")
"""The classes of dollars: those of tokens, and the fees of server tools."""
ToolUses = tuple[tuple[str, int], ...]
"""Uses of server tools that may have a fee: (tool, number)."""


def ttl_seconds(ttl: str, ttl_s: Mapping[str, float] = USUAL_TTL_S) -> float:
    """A TTL in seconds, of a host with these TTLs. One with one TTL has only the short one; one without, the usual."""
    return ttl_s.get(ttl) or ttl_s.get("5m") or USUAL_TTL_S[ttl]


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one call. `input_tokens` is *uncached input only*: total input is `total_input`.

    All fields are whole tokens. `write_5m` and `write_1h` are the two halves of
    `cache_creation_input_tokens`. `tool_uses` are those that the answer counts, `charged_usd` is what it says that the
    call was charged (None: nothing): gateways do, and xAI.
    """

    input_tokens: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output_tokens: int = 0
    tool_uses: ToolUses = ()
    charged_usd: Decimal | None = None

    @property
    def write(self) -> int:
        return self.write_5m + self.write_1h

    @property
    def total_input(self) -> int:
        """Prompt length: uncached + read + written."""
        return self.input_tokens + self.read + self.write_5m + self.write_1h

    @property
    def unread(self) -> int:
        """Input tokens that no cache supplied: uncached + written."""
        return self.input_tokens + self.write_5m + self.write_1h

    def __add__(self, other: Usage) -> Usage:
        """The sum of the counts. What was charged is that of one call, so a sum has none."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.read + other.read,
            self.write_5m + other.write_5m,
            self.write_1h + other.write_1h,
            self.output_tokens + other.output_tokens,
            add_uses(self.tool_uses, other.tool_uses),
        )

    def wire(self) -> dict[str, object]:
        """The `usage` object as the Messages API spells it."""
        return {
            "input_tokens": self.input_tokens,
            "cache_read_input_tokens": self.read,
            "cache_creation_input_tokens": self.write,
            "cache_creation": {"ephemeral_5m_input_tokens": self.write_5m, "ephemeral_1h_input_tokens": self.write_1h},
            "output_tokens": self.output_tokens,
            **({"server_tool_use": {f"{tool}_requests": n for tool, n in self.tool_uses}} if self.tool_uses else {}),
        }


def usage_of(tokens: Iterable[int], uses: ToolUses = (), charged_usd: Decimal | None = None) -> Usage:
    """The usage of five counts, in the order of its fields."""
    uncached, read, five, hour, output = tokens
    return Usage(uncached, read, five, hour, output, uses, charged_usd)


def plus(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    """The sum; None (unknown) where one of them is."""
    return None if one is None or other is None else one + other


def add_uses(one: ToolUses, other: ToolUses) -> ToolUses:
    """The uses of both, by tool."""
    if not one or not other:
        return one or other
    return tuple(sorted((Counter(dict(one)) + Counter(dict(other))).items()))


PER_TOKEN = -6
"""Prices are per 10**6 tokens."""
SMALLEST = Decimal("0.000001")
SMALLEST_PART = Decimal("1e-12")
"""Dollars that a charge is divided to."""
Amounts = tuple[Decimal, Decimal, Decimal, Decimal, Decimal, Decimal]
HOUR = Decimal(3600)
WRITES = {"write_5m": "5m", "write_1h": "1h"}
CLASS_IN_WORDS = {"read": "cache reads", "write_5m": "5m cache writes", "write_1h": "1h cache writes"}


class Prices(msgspec.Struct, frozen=True):
    """Prices by token class in USD per 10**6 tokens, modifiers included, and their `source`."""

    read: Decimal
    write_5m: Decimal
    write_1h: Decimal
    input: Decimal
    output: Decimal
    source: str = ""
    fees: tuple[tuple[str, Decimal], ...] = ()
    """USD a use of server tools, by tool; for a tool without a fee that is known, nothing is counted."""

    @property
    def are_known(self) -> bool:
        """False: the prices are unknown, so no dollars may be shown."""
        return self.source != NOBODY

    def cost(self, usage: Usage) -> dict[str, Decimal]:
        """Dollars of `usage` by class, exact: read, write_5m, write_1h, input, output, fees."""
        return dict(zip(COST_CLASSES, self.amounts(usage), strict=True))

    def amounts(self, usage: Usage) -> Amounts:
        """The dollars of `cost`, in the order of `COST_CLASSES`."""
        fees = ZERO
        if usage.tool_uses:
            known = dict(self.fees)
            fees = sum((number * known.get(tool, ZERO) for tool, number in usage.tool_uses), ZERO)
        return (
            _dollars(usage.read, self.read),
            _dollars(usage.write_5m, self.write_5m),
            _dollars(usage.write_1h, self.write_1h),
            _dollars(usage.input_tokens, self.input),
            _dollars(usage.output_tokens, self.output),
            fees,
        )

    def total_cost(self, usage: Usage) -> Decimal:
        """Dollars of `usage`, all classes together, exact."""
        return sum(self.amounts(usage), ZERO)

    def in_proportion(self, factor: Decimal) -> Prices:
        """These prices times `factor`."""
        classes = {name: getattr(self, name) * factor for name in TOKEN_CLASSES}
        fees = tuple((tool, usd * factor) for tool, usd in self.fees)
        return Prices(**classes, source=self.source, fees=fees)

    def as_charged(self, usage: Usage) -> Prices:
        """These prices as its answer says that a call was charged."""
        factor = self.charge_factor(usage)
        return self if factor == 1 else self.in_proportion(factor)

    def charge_factor(self, usage: Usage) -> Decimal:
        """What was charged ÷ the list price; 1 without a charge, or without list dollars to divide it by."""
        listed = self.total_cost(usage) if usage.charged_usd is not None else ZERO
        return Decimal(1) if usage.charged_usd is None or not listed else usage.charged_usd / listed


NO_AMOUNTS: Amounts = (ZERO, ZERO, ZERO, ZERO, ZERO, ZERO)


def call_amounts(usage: Usage, prices: Prices | None) -> Amounts | None:
    """The dollars of one call, in the order of `COST_CLASSES`; they add up to the last digit. None: they are unknown.

    What its answer says that it was charged is divided in the proportion of the list prices; where no list price is
    known, all of it counts as uncached input, or as output where there is no input.
    """
    charged = usage.charged_usd
    if charged is None:
        return prices.amounts(usage) if prices else None
    parts = list(prices.as_charged(usage).amounts(usage) if prices else NO_AMOUNTS)
    parts = [part.quantize(SMALLEST_PART) for part in parts]
    largest = parts.index(max(parts)) if any(parts) else COST_CLASSES.index("input" if usage.total_input else "output")
    parts[largest] += charged - sum(parts, ZERO)
    read, five, hour, uncached, output, fees = parts
    return read, five, hour, uncached, output, fees


NOBODY = "unknown"
UNPRICED = Prices(ZERO, ZERO, ZERO, ZERO, ZERO, NOBODY)
"""Prices of a self-hosted server without a stated cost: only tokens can be reported."""


def _dollars(tokens: int, price: Decimal) -> Decimal:
    return (tokens * price).scaleb(PER_TOKEN) if tokens else ZERO


class Quote(msgspec.Struct, frozen=True):
    """Prices of a model on a day with given options, by prompt length: `tiers[i]` applies above `above[i - 1]`
    tokens.
    """

    above: tuple[int, ...]
    tiers: tuple[Prices, ...]

    def of(self, tokens: int) -> Prices:
        return self.tiers[bisect_left(self.above, tokens)]


class ObjectStorage(msgspec.Struct, frozen=True):
    """The storage price of an explicit cache object, and its TTLs in seconds by name."""

    storage: Storage
    ttl_s: Mapping[str, float]

    def of(self, write: str, found: Mapping[str, Decimal]) -> Decimal:
        """The price of creating it, reading it in the same call, and storing it until it expires."""
        hours = Decimal(self.ttl_s[WRITES[write]]) / HOUR
        kept = (self.storage.usd_per_hour * hours).quantize(SMALLEST, ROUND_UP)
        return found["input"] + found["read"] + kept


class ModelPricing(msgspec.Struct, frozen=True):
    """The rows of a model on a day, and the substitutes for classes without a price."""

    host: str
    model: str
    rows: list[PriceRow]
    instead: Mapping[str, PriceSubstitute]
    kept: ObjectStorage | None
    fees: tuple[tuple[str, Decimal], ...]

    def tier(self, length: int, factor: Decimal, notes: list[str]) -> Prices:
        """Prices of prompts just above `length` tokens: the last row that names a class wins."""
        chosen = {name: row for row in self.rows if row.above <= length for name in row.prices}
        found: dict[str, Decimal] = {}
        sources: list[str] = []
        for name in PRICED_CLASSES:
            if row := chosen.get(name):
                found[name], source = row.prices[name], row.source
            elif self.kept and name in WRITES:
                found[name], source = self.kept.of(name, found), f"storage: {self.kept.storage.source}"
            elif other := self.instead.get(name):
                found[name], source = found[other.like] * other.times, other.source
            else:
                words = CLASS_IN_WORDS.get(name, f"{name} tokens")
                raise CannotEvaluate(
                    f"no price of {words} known for {self.model} on host {self.host}; give one with --prices"
                )
            sources.append(source)
        prices = {name: price * factor for name, price in found.items()}
        return Prices(**prices, source=", ".join([*dict.fromkeys(sources), *notes]), fees=self.fees)
