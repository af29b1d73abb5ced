"""What another TTL or keep-alives would have saved on billed calls, with everything else as it was.

A longer TTL saves the rewrites of pauses that it outlasts and charges more for every write; a shorter one the other
way round. Keep-alives read the whole prefix before it expires, up to a number of times after each call, also after
the last one, so nothing is known in hindsight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from cachecost.analysis.bill.account import BillAccount, BilledRewrite
from cachecost.analysis.bill.cache_states import CachedPrefix, state_after
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.providers.quotes import PER_TOKEN
from cachecost.providers.usage import ZERO

TTL_SECONDS = {"5m": 300.0, "1h": 3600.0}
LEAD_S = 60.0
"""A keep-alive is sent this long before the prefix expires."""
MOST_PINGS = 24
InScope = Callable[[BilledCall], bool]


@dataclass(frozen=True, slots=True)
class Pause:
    """The time after a call until the next one that continued it (None: none did), and what was cached."""

    call: BilledCall
    seconds: float | None
    ttl: str
    rewrite: Decimal
    """USD that the next call paid because the prefix had expired."""


def is_main(call: BilledCall) -> bool:
    return not call.agent


def is_sub_agent(call: BilledCall) -> bool:
    return bool(call.agent)


def saved_by_hour(account: BillAccount, in_scope: InScope) -> Decimal:
    """USD that a 1h TTL for the calls in scope would have saved; negative where it costs more."""
    saved, prices = ZERO, account.prices
    written: dict[Decimal, int] = {}
    for _, call, found in account.priced_calls():
        if found and call.tokens[2] and in_scope(call):
            premium = found.write_1h - found.write_5m
            written[premium] = written.get(premium, 0) + call.tokens[2]
    saved -= sum((tokens * premium for premium, tokens in written.items()), ZERO)
    for rewrite in account.rewrites:
        idle, call = rewrite.idle_s, rewrite.call
        avoidable = rewrite.cause == "ttl_expired" and idle is not None and idle < TTL_SECONDS["1h"]
        if avoidable and in_scope(call) and _has_hour(call, prices):
            five = min(max(0, rewrite.tokens - call.tokens[3]), call.tokens[2])
            saved += (rewrite.cost or ZERO).scaleb(-PER_TOKEN) + five * _hour_premium(call, prices)
    return saved.scaleb(PER_TOKEN)


def _has_hour(call: BilledCall, prices: CallPrices) -> bool:
    """Whether the host of a call has a 1h TTL."""
    rules = prices.rules_of(call)
    return rules is None or "1h" in rules.ttl_s


def saved_by_five_minutes(account: BillAccount, in_scope: InScope) -> Decimal:
    """USD that a 5m TTL for the calls in scope would have saved; negative where it costs more."""
    saved, states = ZERO, _states(account)
    for file, call, found in account.priced_calls():
        if not found or not in_scope(call):
            continue
        if call.tokens[3]:
            saved += call.tokens[3] * (found.write_1h - found.write_5m)
        before = states[id(file)].get(call.before)
        age = before.age(call.start) if before is not None and before.hour_tokens else None
        if before is not None and age is not None and TTL_SECONDS["5m"] <= age < TTL_SECONDS["1h"]:
            saved -= min(call.read, before.hour_tokens) * (found.write_5m - found.read)
    return saved.scaleb(PER_TOKEN)


def _states(account: BillAccount) -> Mapping[int, Mapping[int, CachedPrefix]]:
    """The cache after each call whose usage says it; computed once an account."""
    if not account.states:
        account.states = {id(file): _states_of(file, account.prices) for file in account.files}
    return account.states


def _states_of(file: SessionFile, prices: CallPrices) -> dict[int, CachedPrefix]:
    found: dict[int, CachedPrefix] = {}
    for call in file.calls:
        if not call.is_summed:
            before = None if "clear" in call.events else found.get(call.before)
            found[call.number] = state_after(call, before, prices.rules_of(call))
    return found


def _hour_premium(call: BilledCall, prices: CallPrices) -> Decimal:
    """USD per 10**6 tokens that a 1h write costs more than a 5m write."""
    found = prices.prices(call)
    return found.write_1h - found.write_5m if found else ZERO


@dataclass(frozen=True, slots=True)
class KeepAliveSaving:
    """Keep-alives of at most `pings` after each call, and the USD that they would have saved, their own cost off."""

    pings: int
    saved: Decimal


def best_keep_alive(account: BillAccount, in_scope: InScope = is_main) -> KeepAliveSaving:
    """The number of keep-alives that would have saved most; 0 where none saves anything."""
    pauses = [_PricedPause.of(pause, account.prices) for pause in find_pauses(account) if in_scope(pause.call)]
    options = [KeepAliveSaving(pings, _saved_by(pauses, pings)) for pings in range(1, MOST_PINGS + 1)]
    best = max(options, key=lambda option: option.saved)
    return best if best.saved > 0 else KeepAliveSaving(0, ZERO)


class _PricedPause(NamedTuple):
    """A pause: how many keep-alives it takes at most (None: all that are sent) and the USD of each.

    `enough` are sufficient to outlast it (None: none are), which saves `rewrite` USD.
    """

    most: int | None
    price: Decimal
    enough: int | None
    rewrite: Decimal

    @classmethod
    def of(cls, pause: Pause, prices: CallPrices) -> _PricedPause:
        found, interval = prices.prices(pause.call), TTL_SECONDS[pause.ttl] - LEAD_S
        price = (pause.call.cached * found.read).scaleb(PER_TOKEN) if found else ZERO
        if pause.seconds is None or found is None:
            return cls(None, price, None, ZERO)
        enough = int((pause.seconds - TTL_SECONDS[pause.ttl]) // interval) + 1
        return cls(int(pause.seconds // interval), price, max(0, enough), pause.rewrite)


def _saved_by(pauses: Iterable[_PricedPause], pings: int) -> Decimal:
    saved = ZERO
    for most, price, enough, rewrite in pauses:
        saved -= (pings if most is None else min(pings, most)) * price
        if enough is not None and pings >= enough:
            saved += rewrite
    return saved


def find_pauses(account: BillAccount) -> list[Pause]:
    """The pauses longer than the time until a keep-alive, and those after which nothing came.

    Copies of calls, and calls after which the length of the prefix is not known, have none.
    """
    states = _states(account)
    rewrites = [one for one in account.rewrites if one.cause == "ttl_expired"]
    ended = {id(one.call): one for one in rewrites}
    elsewhere = {one.before.id: one for one in rewrites if one.before is not None and one.before.id}
    pauses: list[Pause] = []
    for file in account.files:
        followers = {call.before: call for call in reversed(file.calls)}
        for call in file.calls:
            if _goes_on_soon(call, followers.get(call.number)):
                continue
            state = states[id(file)].get(call.number)
            if state is None or not state.tokens or account.is_copy(call) or not account.is_counted(call):
                continue
            following = followers.get(call.number)
            pause = _pause(call, state, following, ended) if following else _last_pause(call, state, elsewhere)
            pauses += [pause] if pause else []
    return pauses


def _goes_on_soon(call: BilledCall, following: BilledCall | None) -> bool:
    """Whether the next call came before any keep-alive would be sent, as it mostly does."""
    if following is None or following.start is None or call.start is None:
        return False
    return following.start - call.start < TTL_SECONDS["5m"] - LEAD_S


def _last_pause(call: BilledCall, state: CachedPrefix, elsewhere: Mapping[str, BilledRewrite]) -> Pause:
    """The pause after the last call of a file; a call in another file may end it."""
    rewrite = elsewhere.get(call.id)
    if rewrite is None:
        return Pause(call, None, state.ttl, ZERO)
    return Pause(call, rewrite.idle_s, state.ttl, rewrite.cost or ZERO)


def _pause(
    call: BilledCall, state: CachedPrefix, following: BilledCall, ended: Mapping[int, BilledRewrite]
) -> Pause | None:
    """The pause between two calls, if a keep-alive would be sent in it."""
    age = state.age(following.start)
    if age is None or age < TTL_SECONDS[state.ttl] - LEAD_S:
        return None
    rewrite = ended.get(id(following))
    return Pause(call, age, state.ttl, (rewrite.cost or ZERO) if rewrite else ZERO)
