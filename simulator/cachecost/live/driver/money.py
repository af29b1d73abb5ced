"""Dollars of live calls: the cost of a call, its upper bound, and a budget that is never exceeded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from cachecost.base.formatting import exact_dollars
from cachecost.ledger.results import ZERO
from cachecost.live.driver.model import OverBudget
from cachecost.prompts.wire import BREAKPOINT
from cachecost.providers.prices import PriceBook, Prices, terms_of
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class CallPricing:
    """What calls cost on a host."""

    book: PriceBook
    host: str = "anthropic"

    def cost(self, body: Mapping[str, Any], usage: Usage, day: date) -> Decimal:
        """Dollars of an answered call. Raises CannotEvaluate."""
        return self._prices(body, usage.total_input, day).total_cost(usage)

    def worst(self, body: Mapping[str, Any], tokens: int, day: date) -> Decimal:
        """The upper bound of a call of at most `tokens` of input, in USD. Raises CannotEvaluate.

        All input is priced at the most expensive class that the body allows, with all the output it may have.
        """
        tiers = [self._prices(body, length, day) for length in (0, tokens)]
        ttls = ttls_of(body)
        names = ["input", *(["write_5m"] if ttls else []), *(["write_1h"] if "1h" in ttls else [])]
        highest: Decimal = max(getattr(prices, name) for prices in tiers for name in names)
        output = max(prices.output for prices in tiers)
        most: Decimal = (tokens * highest + int(body["max_tokens"]) * output).scaleb(-6)
        return most

    def _prices(self, body: Mapping[str, Any], tokens: int, day: date) -> Prices:
        return self.book.quote(self.host, body["model"], day, terms_of(body, False)).of(tokens)


def ttls_of(value: Any) -> set[str]:
    """The TTLs of all breakpoints in a body."""
    if isinstance(value, list):
        return set().union(*map(ttls_of, value))
    if not isinstance(value, Mapping):
        return set()
    breakpoint = value.get(BREAKPOINT)
    own = {str(breakpoint.get("ttl") or "5m")} if isinstance(breakpoint, Mapping) else set()
    return own.union(*(ttls_of(inner) for name, inner in value.items() if name != BREAKPOINT))


@dataclass(frozen=True, slots=True)
class Reservation:
    """Dollars reserved for an attempt."""

    number: int
    dollars: Decimal


class OverBilled(Exception):
    """A bill above the call's upper bound: the run stops at once."""


class DollarBudget:
    """`limit` dollars for a whole run. What is spent and what is reserved never exceed it.

    `reserve` has no `await` between its check and its update, so parallel calls cannot both take the last dollars.
    """

    def __init__(self, limit: Decimal, spent: Decimal = ZERO, unknown: Decimal = ZERO) -> None:
        self.limit = limit
        self.billed = spent
        self.unknown = unknown
        """Upper bound of attempts whose bill is unknown."""
        self._reserved: dict[int, Decimal] = {}
        self._number = 0
        self._freed = asyncio.Event()

    @property
    def spent_usd(self) -> Decimal:
        """Dollars that were billed or may have been."""
        return self.billed + self.unknown

    @property
    def remaining_usd(self) -> Decimal:
        return self.limit - self.spent_usd - sum(self._reserved.values(), ZERO)

    async def reserve(self, dollars: Decimal) -> Reservation:
        """Reserve `dollars`; waits for running calls if they may free enough. Raises OverBudget."""
        while dollars > self.remaining_usd:
            if not self._reserved or dollars > self.limit - self.spent_usd:
                limit, remaining = exact_dollars(self.limit), exact_dollars(max(self.remaining_usd, ZERO))
                raise OverBudget(f"the next call may cost {exact_dollars(dollars)}; {remaining} of {limit} is left")
            self._freed.clear()
            await self._freed.wait()
        self._number += 1
        self._reserved[self._number] = dollars
        return Reservation(self._number, dollars)

    def settle(self, reservation: Reservation, billed: Decimal, unknown: Decimal = ZERO) -> None:
        """The call was billed, and perhaps `unknown` dollars more. Raises OverBilled if the bill exceeds the
        reservation.
        """
        self._free(reservation)
        self.billed += billed
        self.unknown += unknown
        if billed > reservation.dollars:
            raise OverBilled(
                f"a call was billed {exact_dollars(billed)}, above its upper bound of "
                f"{exact_dollars(reservation.dollars)}; stopped because other calls could exceed their bounds too"
            )

    def release(self, reservation: Reservation) -> None:
        """The attempt was not billed."""
        self._free(reservation)

    def keep(self, reservation: Reservation) -> None:
        """The attempt's bill is unknown: its upper bound counts as spent."""
        self._free(reservation)
        self.unknown += reservation.dollars

    def _free(self, reservation: Reservation) -> None:
        del self._reserved[reservation.number]
        self._freed.set()
