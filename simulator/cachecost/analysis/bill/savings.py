"""What another TTL would have saved on billed calls, with everything else as it was.

A longer TTL saves the rewrites of pauses that it outlasts and charges more for every write; a shorter one the other
way round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal

from cachecost.analysis.bill.account import BillAccount
from cachecost.analysis.bill.cache_states import CachedPrefix, state_after
from cachecost.analysis.bill.call_prices import CallPrices
from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.providers.quotes import PER_TOKEN
from cachecost.providers.usage import ZERO

TTL_SECONDS = {"5m": 300.0, "1h": 3600.0}
InScope = Callable[[BilledCall], bool]


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
