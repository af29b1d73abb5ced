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

from cachecost.analysis.optimum.plan_evaluator import Sent
from cachecost.analysis.optimum.tree import Event, Tail
from cachecost.prompts.request import TTL
from cachecost.providers.prices import Prices
from cachecost.providers.quotes import ZERO

READABLE = float("-inf")


class Held(NamedTuple):
    """What holds a block: touched at a time (seconds), for a lifetime, readable from `ready` on.

    `is_strict`: not at that very moment (a call never reads what starts with it).
    """

    touched: float
    ttl: TTL
    ready: float
    is_strict: bool


State = Held | None
Option = tuple[Decimal, State]


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The least prices at which a model's tokens could be read or written beside its calls (USD per 10**6 tokens)."""

    read: Decimal
    write_5m: Decimal
    write_1h: Decimal


class Lifetimes:
    """Costs in USD per 10**6 tokens of a block, for each list of calls and state.

    `pings` allows calls beside; `is_generous` grants that they make any block live an hour
    (where not all calls are known).
    """

    def __init__(self, cheapest: Mapping[str, Cheapest], pings: bool, is_generous: bool = False) -> None:
        self._cheapest = cheapest
        self._pings = pings
        self._is_generous = is_generous
        self._known: dict[tuple[Tail, State], Decimal] = {}

    def cost(self, tail: Tail | None, state: State = None) -> Decimal:
        """The least that a block costs from `tail` on. Work is shared between blocks that share the rest of a list."""
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

    def options(self, tail: Tail, state: State) -> Iterator[Option]:
        """What can be done with a block at a call, each as (cost, state after it)."""
        event, prices = tail.event, tail.event.sent.prices
        ready = is_ready(state, event.start)
        if state is not None and ready and event.start - state.touched < lifetime(event.sent, state.ttl):
            yield from self._alive(tail, state, prices)
            return
        pending = state if not ready else None
        yield prices.input * tail.weight, pending
        for ttl, price in writes(event, prices):
            yield price * tail.weight, _merged(written(event, ttl), pending, event)
        if self._pings:
            yield from self._beside(tail, state, ready, prices)

    def _alive(self, tail: Tail, state: Held, prices: Prices) -> Iterator[Option]:
        event, weight = tail.event, tail.weight
        has_hour = "1h" in event.sent.rules.accepted_ttls
        is_hour = state.ttl == "1h" or (tail.may_extend and has_hour)
        yield prices.read * weight, _touched(state, event, "1h" if is_hour else "5m")
        if not is_hour and has_hour:
            yield prices.write_1h * weight, _touched(state, event, "1h")
        if weight < 0 or prices.read > min(prices.input, prices.write_5m):
            yield prices.input * weight, state
            yield prices.write_5m * weight, _touched(state, event, state.ttl)

    def _beside(self, tail: Tail, state: State, ready: bool, prices: Prices) -> Iterator[Option]:
        """Pings since the last touch, or a call that writes just before this one."""
        event, weight = tail.event, tail.weight
        has_hour = "1h" in event.sent.rules.accepted_ttls
        least = self._cheapest[event.sent.rules.model]
        read = prices.read * weight
        if state is not None and ready:
            for number, ttl in pings_for(event, state, tail.may_be_extended or self._is_generous):
                may_last = ttl == "1h" or (tail.may_extend and has_hour)
                yield read + number * least.read * weight, _touched(state, event, "1h" if may_last else "5m")
        ways: tuple[tuple[TTL, Decimal], ...] = (("5m", least.write_5m), ("1h", least.write_1h))
        for way, price in ways:
            if way in event.sent.rules.accepted_ttls:
                is_hour = way == "1h" or (tail.may_extend and has_hour)
                yield read + price * weight, Held(event.start, "1h" if is_hour else "5m", READABLE, False)


def pings_for(event: Event, state: Held, may_be_extended: bool) -> Iterator[tuple[int, TTL]]:
    """How many pings bridge the time from the last touch to a call, and the lifetime that is left by them."""
    gap, life = event.start - state.touched, lifetime(event.sent, state.ttl)
    yield int(gap // life), state.ttl
    if state.ttl == "5m" and may_be_extended and "1h" in event.sent.rules.accepted_ttls:
        yield 1 + int((gap - life) // lifetime(event.sent, "1h")), "1h"


def writes(event: Event, prices: Prices) -> Iterator[tuple[TTL, Decimal]]:
    """The lifetimes a block can be written for in a call, and their prices."""
    if "5m" in event.sent.rules.accepted_ttls:
        yield "5m", prices.write_5m
    if "1h" in event.sent.rules.accepted_ttls:
        yield "1h", prices.write_1h


def lifetime(sent: Sent, ttl: TTL) -> float:
    return sent.rules.ttl_s[ttl]


def is_ready(state: State, now: float) -> bool:
    """Whether what holds a block can be read (rule 11)."""
    return state is not None and (now > state.ready if state.is_strict else now >= state.ready)


def written(event: Event, ttl: TTL) -> Held:
    first_token_s = event.sent.call.first_token_s
    return Held(event.start, ttl, event.start + first_token_s, first_token_s <= 0)


def _touched(state: Held, event: Event, ttl: TTL) -> Held:
    """Held on, from this call; what could be read can still be read."""
    return Held(max(state.touched, event.start), ttl, READABLE, False)


def _merged(new: Held, pending: State, event: Event) -> Held:
    """What is written over an entry that cannot be read yet: at best both."""
    if pending is None:
        return new
    ready, is_strict = min((new.ready, new.is_strict), (pending.ready, pending.is_strict))
    ttl: TTL = "1h" if "1h" in (new.ttl, pending.ttl) else "5m"
    return Held(max(new.touched, pending.touched), ttl, ready, is_strict)
