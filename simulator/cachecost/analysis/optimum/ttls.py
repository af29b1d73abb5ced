"""The cheapest way to have one block cached, by itself, over all calls that contain it: a dynamic programme.

A block is in one of few states: nothing holds it, or something does that was touched at a time and lives 5 minutes or
an hour. At each call that contains it, it is read if that lives, or written, or paid as it is. With pings, what would
have expired is kept alive for the price of reads, and what is not there can be written just before it is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from cachecost.analysis.optimum.plan_evaluator import BareCall
from cachecost.analysis.optimum.tree import Event, Tail
from cachecost.prompts.request import TTL
from cachecost.providers.prices import Prices
from cachecost.providers.usage import ZERO

READABLE = float("-inf")


class HeldBlock(NamedTuple):
    """The entry that holds a block: last used at `touched` (seconds), with a TTL, readable from `ready` on.

    `is_strict`: not at that very moment (a call never reads what starts with it).
    """

    touched: float
    ttl: TTL
    ready: float
    is_strict: bool


BlockState = HeldBlock | None
Option = tuple[Decimal, BlockState]


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The lowest prices at which additional calls could read or write a model's tokens (USD per 10**6 tokens)."""

    read: Decimal
    write_5m: Decimal
    write_1h: Decimal


class Lifetimes:
    """Costs in USD per 10**6 tokens of a block, for each list of calls and state.

    `pings` allows keep-alives; `is_generous` grants that they make any block live an hour
    (where not all calls are known).
    """

    def __init__(self, cheapest: Mapping[str, Cheapest], pings: bool, is_generous: bool = False) -> None:
        self._cheapest = cheapest
        self._pings = pings
        self._is_generous = is_generous
        self._known: dict[tuple[Tail, BlockState], Decimal] = {}

    def cost(self, tail: Tail | None, state: BlockState = None) -> Decimal:
        """The minimum cost of a block from `tail` on, computed once for all blocks with the same rest of a list."""
        if tail is None:
            return ZERO
        waiting = [(tail, state)]
        while waiting:
            tail_now, state_now = waiting[-1]
            if waiting[-1] in self._known:
                waiting.pop()
                continue
            options = list(self.options(tail_now, state_now))
            following = tail_now.next
            missing = [
                (following, after)
                for _, after in options
                if following is not None and (following, after) not in self._known
            ]
            if missing:
                waiting += missing
                continue
            self._known[waiting.pop()] = min(
                paid + (self._known[following, after] if following is not None else ZERO) for paid, after in options
            )
        return self._known[tail, state]

    def options(self, tail: Tail, state: BlockState) -> Iterator[Option]:
        """What can be done with a block at a call, each as (cost, state after it)."""
        event, prices = tail.event, tail.event.sent.prices
        ready = is_ready(state, event.start)
        if state is not None and ready and event.start - state.touched < ttl_seconds(event.sent, state.ttl):
            yield from self._alive(tail, state, prices)
            return
        pending = state if not ready else None
        yield prices.input * tail.weight, pending
        for ttl, price in writes(event, prices):
            yield price * tail.weight, _merge_pending(write_block(event, ttl), pending, event)
        if self._pings:
            yield from self._beside(tail, state, ready, prices)

    def _alive(self, tail: Tail, state: HeldBlock, prices: Prices) -> Iterator[Option]:
        event, weight = tail.event, tail.weight
        has_hour = "1h" in event.sent.rules.accepted_ttls
        is_hour = state.ttl == "1h" or (tail.may_extend and has_hour)
        yield prices.read * weight, _touch_block(state, event, "1h" if is_hour else "5m")
        if not is_hour and has_hour:
            yield prices.write_1h * weight, _touch_block(state, event, "1h")
        if weight < 0 or prices.read > min(prices.input, prices.write_5m):
            yield prices.input * weight, state
            yield prices.write_5m * weight, _touch_block(state, event, state.ttl)

    def _beside(self, tail: Tail, state: BlockState, ready: bool, prices: Prices) -> Iterator[Option]:
        """Keep-alives since the last use, or a call that writes just before this one."""
        event, weight = tail.event, tail.weight
        has_hour = "1h" in event.sent.rules.accepted_ttls
        least = self._cheapest[event.sent.rules.model]
        read = prices.read * weight
        if state is not None and ready:
            for number, ttl in pings_for(event, state, tail.may_be_extended or self._is_generous):
                may_last = ttl == "1h" or (tail.may_extend and has_hour)
                yield read + number * least.read * weight, _touch_block(state, event, "1h" if may_last else "5m")
        ways: tuple[tuple[TTL, Decimal], ...] = (("5m", least.write_5m), ("1h", least.write_1h))
        for way, price in ways:
            if way in event.sent.rules.accepted_ttls:
                is_hour = way == "1h" or (tail.may_extend and has_hour)
                yield read + price * weight, HeldBlock(event.start, "1h" if is_hour else "5m", READABLE, False)


def pings_for(event: Event, state: HeldBlock, may_be_extended: bool) -> Iterator[tuple[int, TTL]]:
    """How many keep-alives bridge the time from the last use to a call, and the TTL after them."""
    gap, life = event.start - state.touched, ttl_seconds(event.sent, state.ttl)
    yield int(gap // life), state.ttl
    if state.ttl == "5m" and may_be_extended and "1h" in event.sent.rules.accepted_ttls:
        yield 1 + int((gap - life) // ttl_seconds(event.sent, "1h")), "1h"


def writes(event: Event, prices: Prices) -> Iterator[tuple[TTL, Decimal]]:
    """The TTLs with which a call can write a block, and their prices."""
    if "5m" in event.sent.rules.accepted_ttls:
        yield "5m", prices.write_5m
    if "1h" in event.sent.rules.accepted_ttls:
        yield "1h", prices.write_1h


def ttl_seconds(sent: BareCall, ttl: TTL) -> float:
    return sent.rules.ttl_s[ttl]


def is_ready(state: BlockState, now: float) -> bool:
    """Whether what holds a block can be read (rule 11)."""
    return state is not None and (now > state.ready if state.is_strict else now >= state.ready)


def write_block(event: Event, ttl: TTL) -> HeldBlock:
    first_token_s = event.sent.call.first_token_s
    return HeldBlock(event.start, ttl, event.start + first_token_s, first_token_s <= 0)


def _touch_block(state: HeldBlock, event: Event, ttl: TTL) -> HeldBlock:
    """The block, kept alive by this call; what could be read can still be read."""
    return HeldBlock(max(state.touched, event.start), ttl, READABLE, False)


def _merge_pending(new: HeldBlock, pending: BlockState, event: Event) -> HeldBlock:
    """The state after writing over an entry that cannot be read yet: the best of both."""
    if pending is None:
        return new
    ready, is_strict = min((new.ready, new.is_strict), (pending.ready, pending.is_strict))
    ttl: TTL = "1h" if "1h" in (new.ttl, pending.ttl) else "5m"
    return HeldBlock(max(new.touched, pending.touched), ttl, ready, is_strict)
