"""Cache writes that no later call read.

An entry is what one call wrote at one of its breakpoints. The call read the prefix up to its hit and paid for the rest.
A later read of the entry uses what *this* call paid for, up to that breakpoint; what is before its hit was used by this
call itself. That is why recording a read takes one step, however long the conversation is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from cachecost.caches.breakpoints import Outcome
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import AS_COUNTED, PrefixSizes
from cachecost.providers.prices import Prices
from cachecost.providers.usage import ZERO, Usage


@dataclass(frozen=True, slots=True)
class UnreadWrites:
    """Tokens that were written and not read by any later call so far.

    `paid` is the cost of writing them, in dollars. `extra` is the part above sending them without a breakpoint (write
    price minus input price). Only that part was wasted: the tokens had to be sent anyway.
    """

    tokens: int = 0
    paid: Decimal = ZERO
    extra: Decimal = ZERO

    def __add__(self, other: UnreadWrites) -> UnreadWrites:
        return UnreadWrites(self.tokens + other.tokens, self.paid + other.paid, self.extra + other.extra)

    def __sub__(self, other: UnreadWrites) -> UnreadWrites:
        return UnreadWrites(self.tokens - other.tokens, self.paid - other.paid, self.extra - other.extra)


@dataclass(slots=True)
class _PassWrites:
    """What one pass of a call wrote. Places are tokens from the start of its prompt.

    From `start` (its hit) to `end_1h` for an hour, from there to `end` for five minutes; later calls read up to `read`.
    """

    call: int
    start: int
    end_1h: int
    end: int
    prices: Prices
    read: int

    def unread(self) -> UnreadWrites:
        hour, five = max(0, self.end_1h - self.read), self.end - max(self.end_1h, self.read)
        paid = self.prices.total_cost(Usage(write_1h=hour, write_5m=five))
        uncached = self.prices.total_cost(Usage(hour + five))
        return UnreadWrites(hour + five, paid, paid - uncached)


class UnreadTracker:
    """Tracks calls in the order they start, and what they wrote that no call has read yet.

    A breakpoint at or before a hit is not charged (rule 13): its entry still belongs to the call that paid for it.
    Entries of one prefix with two TTLs count as one, also with the assumption `ttl_in_key`.
    """

    def __init__(self) -> None:
        self._entries: dict[Prefix, tuple[_PassWrites, int]] = {}
        """What a pass wrote at a breakpoint, and where that is."""
        self._by_call: dict[int, UnreadWrites] = {}
        self.total = UnreadWrites()

    def add(self, call: int, outcome: Outcome, prices: Prices, sizes: PrefixSizes = AS_COUNTED) -> None:
        """Record one pass of the call with this number: what it read is used, what it wrote is not used yet."""
        if outcome.hit is not None and outcome.hit in self._entries:
            earlier, place = self._entries[outcome.hit]
            if place > earlier.read:
                before = earlier.unread()
                earlier.read = place
                self._count(earlier.call, earlier.unread() - before)
        hour_end = outcome.read + outcome.write_1h
        written = _PassWrites(call, outcome.read, hour_end, hour_end + outcome.write_5m, prices, read=outcome.read)
        depth = outcome.hit.depth if outcome.hit else 0
        for breakpoint in outcome.breakpoints:
            if breakpoint.prefix.depth > depth:
                self._entries[breakpoint.prefix] = written, sizes.of(breakpoint.prefix)
        if written.end > written.start:
            self._count(call, written.unread())

    def _count(self, call: int, change: UnreadWrites) -> None:
        self._by_call[call] = self._by_call.get(call, UnreadWrites()) + change
        self.total += change

    def of(self, call: int) -> UnreadWrites:
        """What the call with this number wrote and no later call has read yet."""
        return self._by_call.get(call, UnreadWrites())

    def of_all(self, calls: Iterable[int]) -> UnreadWrites:
        return sum(map(self.of, calls), UnreadWrites())

    def __iter__(self) -> Iterator[tuple[int, UnreadWrites]]:
        """The calls that wrote something that no call has read yet."""
        return ((call, wasted) for call, wasted in self._by_call.items() if wasted.tokens)
