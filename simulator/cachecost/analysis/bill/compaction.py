"""What compacting earlier would have saved: shorter prompts from then on, for the price of a summary.

A compaction is taken to be as those in the sessions: it keeps the static prefix, writes as much behind it, and its
call reads the whole prompt and answers with the summary. The answers of all other calls are taken to stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median_low

from cachecost.analysis.bill.account import BillAccount
from cachecost.conversations.billed_calls import BilledCall, SessionFile
from cachecost.providers.quotes import PER_TOKEN, Prices
from cachecost.providers.usage import ZERO


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


def saved_by_limits(account: BillAccount, limits: Sequence[int], size: CompactionSize) -> dict[int, Decimal]:
    """USD that compacting main threads at so many tokens would have saved; negative where it costs more."""
    saved = dict.fromkeys(limits, ZERO)
    for file in account.files:
        longest = max((call.total_input for call in file.calls if not call.agent), default=0)
        for limit in limits if not file.has_requests else ():
            if longest > limit:
                saved[limit] += _saved_in(file, account, limit, size)
    return saved


def _saved_in(file: SessionFile, account: BillAccount, limit: int, size: CompactionSize) -> Decimal:
    saved, cut = ZERO, {0: 0}
    for call, before in _main_thread(file.calls):
        goes_on = before is not None and not _restarts(call)
        removed = cut.get(call.before, 0) if goes_on else 0
        is_over = goes_on and call.total_input - removed > limit
        prices = account.prices.prices(call) if is_over or removed else None
        if before is not None and prices and is_over:
            more = _removable(before, removed, size)
            if more > 0:
                saved -= _price_of_compaction(before, removed, size, prices)
                removed += more
        cut[call.number] = removed
        if prices and removed and account.is_counted(call):
            saved += _shorter(call, removed, size, prices)
    return saved.scaleb(PER_TOKEN)


def _main_thread(calls: Sequence[BilledCall]) -> Iterator[tuple[BilledCall, BilledCall | None]]:
    for call in calls:
        if not call.agent:
            yield call, calls[call.before - 1] if call.before else None


def _restarts(call: BilledCall) -> bool:
    return "compaction" in call.events or "clear" in call.events


def _removable(before: BilledCall, removed: int, size: CompactionSize) -> int:
    """Tokens that a compaction after this call takes out of the next prompt."""
    return before.total_input - removed - size.static - size.summary


def _price_of_compaction(before: BilledCall, removed: int, size: CompactionSize, prices: Prices) -> Decimal:
    """USD per 10**6: the call that reads the prompt and writes the summary, and the next one, which caches it."""
    reads = max(0, before.cached - removed) * prices.read
    write = prices.write_1h if before.tokens[3] and not before.tokens[2] else prices.write_5m
    return reads + size.summary * (prices.output + write - prices.read)


def _shorter(call: BilledCall, removed: int, size: CompactionSize, prices: Prices) -> Decimal:
    """USD per 10**6 that a call costs less without `removed` tokens behind the static prefix."""
    read = max(0, min(removed, call.read - size.static))
    written = min(removed - read, call.written)
    write = prices.write_1h if call.tokens[3] and not call.tokens[2] else prices.write_5m
    return read * prices.read + written * write
