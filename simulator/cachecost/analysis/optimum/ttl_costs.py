"""The cheapest way to have one block cached, by itself, over all calls that contain it: a dynamic programme."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from cachecost.analysis.optimum.tree import ANY_CALL, CallPass, Tail
from cachecost.caches.expiry import BEFORE_TIME, has_expired, is_readable, ttl_s_of
from cachecost.prompts.request import TTL
from cachecost.providers.prices import Prices
from cachecost.providers.usage import ZERO

INFINITE = Decimal("inf")
MOST_KNOWN = 20_000
"""Costs that are kept, 6 MB of them: those of a few conversations, which are looked at together."""


class HeldBlock(NamedTuple):
    """The entry that holds a block: last used at `touched` (seconds), with a TTL. What was cached `BEFORE_TIME` can be
    read."""

    touched: float
    ttl: TTL
    readable_at: float = BEFORE_TIME
    started: float = BEFORE_TIME


BlockState = HeldBlock | None
Option = tuple[Decimal, BlockState]
SeenBlock = BlockState | TTL
"""What a call finds of a block. Of what it can read only the TTL matters, since the call uses it."""


@dataclass(frozen=True, slots=True)
class CheapestPrices:
    """The lowest prices at which additional calls could read or write a model's tokens (USD per 10**6 tokens)."""

    read: Decimal
    write_5m: Decimal
    write_1h: Decimal


class TTLCosts:
    """Costs in USD per 10**6 tokens of a block, for each list of calls and state.

    `pings` allows keep-alives; `is_generous` grants that they make any block live an hour
    (where not all calls are known).
    """

    def __init__(self, cheapest: Mapping[str, CheapestPrices], pings: bool, is_generous: bool = False) -> None:
        self._cheapest = cheapest
        self.pings = pings
        self._is_generous = is_generous
        self._known: dict[tuple[Tail, SeenBlock], Decimal] = {}
        self._most_known = MOST_KNOWN

    def cost(self, tail: Tail | None, state: BlockState = None) -> Decimal:
        """The minimum cost of a block from `tail` on, computed once for all blocks with the same rest of a list."""
        if tail is None:
            return ZERO
        asked = tail, self._seen(tail, state)
        found = self._known.get(asked)
        if found is None:
            if is_full := len(self._known) > self._most_known:
                self._known.clear()
            found = self._find_cost(asked)
            if is_full:
                self._most_known = MOST_KNOWN + len(self._known)
        return found

    def _find_cost(self, asked: tuple[Tail, SeenBlock]) -> Decimal:
        known, waiting = self._known, [asked]
        seen: dict[tuple[Tail, SeenBlock], list[tuple[Decimal, tuple[Tail, SeenBlock] | None]]] = {}
        while waiting:
            now = waiting[-1]
            options = seen.pop(now, None)
            if options is None:
                if now in known:
                    waiting.pop()
                    continue
                options = seen[now] = self._options_at(*now)
                missing = [after for _, after in options if after is not None and after not in known]
                if missing:
                    waiting += missing
                    continue
                del seen[now]
            times = now[0].times
            known[waiting.pop()] = min(
                paid if after is None else paid + known[after] * times for paid, after in options
            )
        return known[asked]

    def _options_at(self, tail: Tail, seen: SeenBlock) -> list[tuple[Decimal, tuple[Tail, SeenBlock] | None]]:
        following = tail.next
        if seen is None and following is not None and self._is_written_at_once(tail, following):
            return [(tail.event.sent.prices.write_5m, (following, "1h"))]
        options = self._read(tail, seen) if isinstance(seen, str) else self.options(tail, seen)
        if following is None:
            return [(paid, None) for paid, _ in options]
        return [(paid, (following, self._seen(following, after))) for paid, after in options]

    def _is_written_at_once(self, tail: Tail, following: Tail) -> bool:
        """Whether nothing is cheaper than to write for five minutes what nothing holds, since the next call can read it
        and make it live an hour, as well as any block can: without it that call pays more than was saved."""
        if tail.block is not ANY_CALL or following.block is not ANY_CALL or not _may_last(following):
            return False
        event, prices, later = tail.event, tail.event.sent.prices, following.event.sent.prices
        rules = event.sent.rules
        if "5m" not in rules.accepted_ttls or _reads_cost_more(later):
            return False
        if not is_alive(write_block(event, "5m"), following.event):
            return False
        now, least = min(prices.write_1h, self._written_beside(tail)), min(later.input, later.write_5m, later.write_1h)
        least = min(least, self._written_beside(following))
        return prices.write_5m <= now and prices.write_5m + later.read <= prices.input + least

    def _written_beside(self, tail: Tail) -> Decimal:
        """The price at which another call can write a block that this one reads, both together."""
        event = tail.event
        if not self.pings:
            return INFINITE
        cheapest = self._cheapest[event.sent.rules.model]
        return event.sent.prices.read + min(cheapest.write_5m, cheapest.write_1h)

    def _seen(self, tail: Tail, state: BlockState) -> SeenBlock:
        """What a call finds of a block in this state: states with equal futures are one."""
        block, event = tail.block, tail.event
        if state is None or block.warm is not None or block.held is not None or not is_ready(state, event.start):
            return state
        if not is_alive(state, event):
            return HeldBlock(state.touched, state.ttl) if self.pings else None
        if state.touched > event.start or _reads_cost_more(event.sent.prices):
            return state
        return "1h" if state.ttl == "1h" or _may_last(tail) else "5m"

    @staticmethod
    def _read(tail: Tail, ttl: str) -> Iterator[Option]:
        event, tokens = tail.event, tail.block.tokens
        prices = event.sent.prices
        hour = HeldBlock(event.start, "1h")
        if ttl == "1h":
            yield prices.read * tokens, hour
            return
        yield prices.read * tokens, HeldBlock(event.start, "5m")
        if "1h" in event.sent.rules.accepted_ttls:
            yield prices.write_1h * tokens, hour

    def options(self, tail: Tail, state: BlockState) -> Iterator[Option]:
        """What can be done with a block at a call, each as (cost, state after it)."""
        if tail.block.warm is not None:
            state = merge_entries(HeldBlock(tail.event.start, tail.block.warm), state)
        if tail.block.held == "lost":
            event, prices, tokens = tail.event, tail.event.sent.prices, tail.block.tokens
            yield prices.input * tokens, state
            for ttl, price in writes(event, prices):
                yield price * tokens, merge_entries(write_block(event, ttl), state)
            return
        yield from self._own(tail, state)
        if self.pings and not is_alive(state, tail.event):
            yield from self._beside(tail, state)
        if tail.block.held == "read":
            read = tail.event.sent.prices.read * tail.block.tokens
            yield from ((read, after) for _, after in self._own(tail, state))

    def _own(self, tail: Tail, state: BlockState) -> Iterator[Option]:
        event, prices, tokens = tail.event, tail.event.sent.prices, tail.block.tokens
        if state is None or not is_alive(state, event):
            pending = None if is_ready(state, event.start) else state
            yield prices.input * tokens, pending
            for ttl, price in writes(event, prices):
                yield price * tokens, merge_entries(write_block(event, ttl), pending)
            return
        is_hour = state.ttl == "1h" or _may_last(tail)
        yield prices.read * tokens, _touch_block(state, event, "1h" if is_hour else "5m")
        if not is_hour and "1h" in event.sent.rules.accepted_ttls:
            yield prices.write_1h * tokens, _touch_block(state, event, "1h")
        if _reads_cost_more(prices):
            yield prices.input * tokens, state
            yield prices.write_5m * tokens, _touch_block(state, event, state.ttl)

    def _beside(self, tail: Tail, state: BlockState) -> Iterator[Option]:
        event, rules = tail.event, tail.event.sent.rules
        prices = self._cheapest[rules.model]
        read = event.sent.prices.read * tail.block.tokens
        if state is not None and is_ready(state, event.start):
            # How many keep-alives bridge the time from the last use to this call, and the TTL after them.
            gap, ttl_s = event.start - state.touched, ttl_s_of(rules, state.ttl)
            pings = [(int(gap // ttl_s), state.ttl)]
            if state.ttl == "5m" and (tail.may_be_extended or self._is_generous) and "1h" in rules.accepted_ttls:
                pings.append((1 + int((gap - ttl_s) // ttl_s_of(rules, "1h")), "1h"))
            for number, ttl in pings:
                may_last = ttl == "1h" or _may_last(tail)
                after = _touch_block(state, event, "1h" if may_last else "5m")
                yield read + number * prices.read * tail.block.least, after
        writable: tuple[tuple[TTL, Decimal], ...] = (("5m", prices.write_5m), ("1h", prices.write_1h))
        for ttl, price in writable:
            if ttl in rules.accepted_ttls:
                is_hour = ttl == "1h" or _may_last(tail)
                after = HeldBlock(event.start, "1h" if is_hour else "5m")
                yield read + price * tail.block.least, after


def _may_last(tail: Tail) -> bool:
    return tail.may_extend and "1h" in tail.event.sent.rules.accepted_ttls


def _reads_cost_more(prices: Prices) -> bool:
    return prices.read > prices.input or prices.read > prices.write_5m


def writes(event: CallPass, prices: Prices) -> Iterator[tuple[TTL, Decimal]]:
    """The TTLs with which a call can write a block, and their prices."""
    if "5m" in event.sent.rules.accepted_ttls:
        yield "5m", prices.write_5m
    if "1h" in event.sent.rules.accepted_ttls:
        yield "1h", prices.write_1h


def is_ready(state: BlockState, now: float) -> bool:
    """Whether what holds a block can be read (rule 11)."""
    return state is not None and is_readable(now, state.started, state.readable_at)


def is_alive(state: BlockState, event: CallPass) -> bool:
    """Whether a call can read what holds a block (rules 11, 12)."""
    if state is None or not is_ready(state, event.start):
        return False
    return not has_expired(event.start, state.touched, ttl_s_of(event.sent.rules, state.ttl))


def write_block(event: CallPass, ttl: TTL) -> HeldBlock:
    return HeldBlock(event.start, ttl, event.start + event.first_token_s, event.start)


def _touch_block(state: HeldBlock, event: CallPass, ttl: TTL) -> HeldBlock:
    """The block, kept alive by this call; what could be read can still be read."""
    return HeldBlock(max(state.touched, event.start), ttl)


def merge_entries(new: HeldBlock, other: BlockState) -> HeldBlock:
    """The state of a block that two entries hold, or one that is written again before it can be read: the best of
    both."""
    if other is None:
        return new
    ready = min((new.readable_at, new.started), (other.readable_at, other.started))
    ttl: TTL = "1h" if "1h" in (new.ttl, other.ttl) else "5m"
    return HeldBlock(max(new.touched, other.touched), ttl, *ready)
