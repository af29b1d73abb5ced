"""What another TTL or keep-alives would have saved on billed calls, with everything else as it was.

A longer TTL saves the rewrites of pauses that it outlasts and charges more for every write; a shorter one the other
way round. Keep-alives read the whole prefix before it expires, up to a number of times after each call, also after
the last one, so nothing is known in hindsight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount, BilledRewrite
from cachecost.analysis.bill.cache_states import CacheState, state_after
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.conversations.billed_calls import BilledCall
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
    for _, call in account.calls():
        if in_scope(call) and call.tokens[2]:
            saved -= call.tokens[2] * _hour_premium(call, prices)
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
    saved, prices = ZERO, account.prices
    states = _states(account)
    for file, call in account.calls():
        if not in_scope(call):
            continue
        saved += call.tokens[3] * _hour_premium(call, prices)
        before, found = states.get((file.path, call.before)), prices.prices(call)
        if before is None or found is None:
            continue
        age = before.age(call.start)
        if age is not None and TTL_SECONDS["5m"] <= age < TTL_SECONDS["1h"]:
            saved -= min(call.read, before.hour_tokens) * (found.write_5m - found.read)
    return saved.scaleb(PER_TOKEN)


def _states(account: BillAccount) -> Mapping[tuple[str, int], CacheState]:
    """The cache after each call whose usage says it, by file and number."""
    found: dict[tuple[str, int], CacheState] = {}
    for file in account.files:
        for call in file.calls:
            if not call.is_summed:
                before = None if "clear" in call.events else found.get((file.path, call.before))
                found[file.path, call.number] = state_after(call, before, account.prices.rules_of(call))
    return found


def _hour_premium(call: BilledCall, prices: CallPrices) -> Decimal:
    """USD per 10**6 tokens that a 1h write costs more than a 5m write."""
    found = prices.prices(call)
    return found.write_1h - found.write_5m if found else ZERO


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """Keep-alives of at most `pings` after each call, and the USD that they would have saved, their own cost off."""

    pings: int
    saved: Decimal


def best_keep_alive(account: BillAccount, in_scope: InScope = is_main) -> KeepAlive:
    """The number of keep-alives that would have saved most; 0 where none saves anything."""
    pauses = [pause for pause in find_pauses(account) if in_scope(pause.call)]
    options = [KeepAlive(pings, _saved_by(pauses, pings, account.prices)) for pings in range(1, MOST_PINGS + 1)]
    best = max(options, key=lambda option: option.saved)
    return best if best.saved > 0 else KeepAlive(0, ZERO)


def _saved_by(pauses: Iterable[Pause], pings: int, prices: CallPrices) -> Decimal:
    saved = ZERO
    for pause in pauses:
        found = prices.prices(pause.call)
        if found is None:
            continue
        interval = TTL_SECONDS[pause.ttl] - LEAD_S
        needed = pings if pause.seconds is None else min(pings, int(pause.seconds // interval))
        saved -= (needed * pause.call.cached * found.read).scaleb(PER_TOKEN)
        if pause.seconds is not None and pause.seconds < pings * interval + TTL_SECONDS[pause.ttl]:
            saved += pause.rewrite
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
            state = states.get((file.path, call.number))
            if state is None or not state.tokens or account.is_copy(call) or not account.is_counted(call):
                continue
            following = followers.get(call.number)
            pause = _pause(call, state, following, ended) if following else _last_pause(call, state, elsewhere)
            pauses += [pause] if pause else []
    return pauses


def _last_pause(call: BilledCall, state: CacheState, elsewhere: Mapping[str, BilledRewrite]) -> Pause:
    """The pause after the last call of a file; a call in another file may end it."""
    rewrite = elsewhere.get(call.id)
    if rewrite is None:
        return Pause(call, None, state.ttl, ZERO)
    return Pause(call, rewrite.idle_s, state.ttl, rewrite.cost or ZERO)


def _pause(
    call: BilledCall, state: CacheState, following: BilledCall, ended: Mapping[int, BilledRewrite]
) -> Pause | None:
    """The pause between two calls, if a keep-alive would be sent in it."""
    age = state.age(following.start)
    if age is None or age < TTL_SECONDS[state.ttl] - LEAD_S:
        return None
    rewrite = ended.get(id(following))
    return Pause(call, age, state.ttl, (rewrite.cost or ZERO) if rewrite else ZERO)
