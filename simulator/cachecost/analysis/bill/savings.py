"""What another TTL, earlier compaction or a setting would have saved of what is billed, USD."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from statistics import median_low

from cachecost.account.causes import Cause
from cachecost.analysis.bill.account import BillAccount, BilledRewrite, Tokens, with_usage
from cachecost.analysis.bill.call_prices import state_after
from cachecost.conversations.input_files import BilledCall
from cachecost.providers.usage import PER_TOKEN, USUAL_TTL_S, ZERO, Prices

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
        call = rewrite.call
        if is_within_hour(rewrite) and in_scope(call):
            rules, found = prices.rules_of(call), prices.prices(call)
            if rules is None or "1h" in rules.ttl_s:
                five = min(max(0, rewrite.tokens - call.tokens[3]), call.tokens[2])
                premium = found.write_1h - found.write_5m if found else ZERO
                saved += (rewrite.cost or ZERO).scaleb(-PER_TOKEN) + five * premium
    return saved.scaleb(PER_TOKEN)


def is_within_hour(rewrite: BilledRewrite) -> bool:
    """Whether a rewrite followed a pause that a 1h TTL outlasts."""
    return rewrite.cause == "ttl_expired" and rewrite.idle_s is not None and rewrite.idle_s < USUAL_TTL_S["1h"]


def saved_by_five_minutes(account: BillAccount, in_scope: InScope) -> Decimal:
    """USD that a 5m TTL for the calls in scope would have saved; negative where it costs more."""
    if not account.states:
        for file in account.files:
            known = account.states[id(file)] = {}
            for call in file.calls:
                if not call.is_summed:
                    before = None if "clear" in call.events else known.get(call.before)
                    known[call.number] = state_after(call, before, account.prices.rules_of(call))
    saved = ZERO
    for file, call, found in account.priced_calls():
        if not found or not in_scope(call):
            continue
        if call.tokens[3]:
            saved += call.tokens[3] * (found.write_1h - found.write_5m)
        before = account.states[id(file)].get(call.before)
        age = before.age(call.start) if before is not None and before.hour_tokens else None
        if before is not None and age is not None and USUAL_TTL_S["5m"] <= age < USUAL_TTL_S["1h"]:
            saved -= min(call.read, before.hour_tokens) * (found.write_5m - found.read)
    return saved.scaleb(PER_TOKEN)


@dataclass(frozen=True, slots=True)
class CompactionSize:
    """What compactions leave: tokens of the static prefix, and of the summary and what is sent with it."""

    static: int
    summary: int


def measure_compactions(account: BillAccount) -> CompactionSize | None:
    """The median of the compactions among the calls; None where there is none."""
    calls = [call for _, call in account.calls() if "compaction" in call.events and call.before and call.written]
    if not calls:
        return None
    return CompactionSize(median_low([call.read for call in calls]), median_low([call.written for call in calls]))


@dataclass(frozen=True, slots=True)
class CompactedCalls:
    """The usage of calls after earlier compactions, by the `id()` of the call, and the USD saved, summaries off."""

    tokens: Mapping[int, Tokens]
    saved: Decimal


def compact_calls(account: BillAccount, limit: int, size: CompactionSize, in_scope: InScope) -> CompactedCalls:
    """The main threads in scope, compacted at so many tokens; negative where it costs more."""
    changed: dict[int, Tokens] = {}
    saved = ZERO
    for file in account.files:
        longest = max((call.total_input for call in file.calls if not call.agent), default=0)
        main = (call for call in file.calls if not call.agent)
        cut = {0: 0}
        for call in main if not file.has_requests and longest > limit else ():
            before = file.calls[call.before - 1] if call.before else None
            continues = before is not None and not ("compaction" in call.events or "clear" in call.events)
            removed = cut.get(call.before, 0) if continues else 0
            counts = in_scope(call) and account.is_counted(call) and not account.is_copy(call)
            is_over = counts and continues and call.total_input - removed > limit
            prices = account.prices.prices(call) if counts and (is_over or removed) else None
            summary = 0
            if before is not None and prices and is_over:
                more = before.total_input - removed - size.static - size.summary
                if more > 0:
                    saved -= max(0, before.cached - removed) * prices.read + size.summary * prices.output
                    removed, summary = removed + more, size.summary
            cut[call.number] = removed
            if prices and removed:
                uncached, read, five, hour, output = call.tokens  # without what was compacted, and with a new summary
                of_read = max(0, min(removed, read - size.static))
                new = max(0, min(summary, read - of_read - size.static))
                written = max(0, call.written - (removed - of_read)) + new
                of_hour = written if hour and not five else min(hour, written)
                tokens = changed[id(call)] = uncached, read - of_read - new, written - of_hour, of_hour, output
                saved += _price(call.tokens, prices) - _price(tokens, prices)
    return CompactedCalls(changed, saved.scaleb(PER_TOKEN))


def _price(tokens: Tokens, prices: Prices) -> Decimal:
    """USD per 10**6 of what is read and written."""
    return tokens[1] * prices.read + tokens[2] * prices.write_5m + tokens[3] * prices.write_1h


def saved_by_reading(account: BillAccount, cause: Cause, in_scope: InScope) -> Decimal:
    """USD that the rewrites of this cause in scope cost."""
    return sum((one.cost or ZERO for one in account.rewrites if one.cause == cause and in_scope(one.call)), ZERO)


def with_reads(account: BillAccount, cause: Cause, in_scope: InScope) -> BillAccount:
    """The account with these rewrites read: they come first in what was not (rule 15)."""
    changed: dict[int, Tokens] = {}
    for one in account.rewrites:
        if one.cause == cause and in_scope(one.call):
            uncached, read, five, hour, output = one.call.tokens
            of_hour = min(hour, one.tokens)
            of_five = min(five, one.tokens - of_hour)
            rest = one.tokens - of_hour - of_five
            changed[id(one.call)] = (uncached - rest, read + one.tokens, five - of_five, hour - of_hour, output)
    return with_usage(account, changed)
