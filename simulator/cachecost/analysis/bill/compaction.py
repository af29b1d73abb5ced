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


def saved_by_window(account: BillAccount, limit: int, size: CompactionSize) -> Decimal:
    """USD that compacting main threads at `limit` tokens would have saved; negative where it costs more."""
    return sum((_saved_in(file, account, limit, size) for file in account.files if not file.has_requests), ZERO)


def _saved_in(file: SessionFile, account: BillAccount, limit: int, size: CompactionSize) -> Decimal:
    saved, cut = ZERO, {0: 0}
    for call, before in _main_thread(file.calls):
        removed = 0 if _restarts(call) or before is None else cut.get(call.before, 0)
        prices = account.prices.prices(call)
        if before is not None and prices and not _restarts(call) and call.total_input - removed > limit:
            more = _removable(call, before, removed, size)
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


def _removable(call: BilledCall, before: BilledCall, removed: int, size: CompactionSize) -> int:
    """Tokens that a compaction before this call takes out of its prompt."""
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
