"""What compacting earlier would have saved: shorter prompts from then on, for the price of a summary.

A compaction is taken to be as those in the sessions: it keeps the static prefix, writes as much behind it, and its
call reads the whole prompt and answers with the summary. The answers of all other calls are taken to stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median_low

from cachecost.analysis.bill.account import BillAccount, Tokens
from cachecost.analysis.bill.savings import InScope
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
        if not file.has_requests and longest > limit:
            saved += _compact_file(file, account, limit, size, in_scope, changed)
    return CompactedCalls(changed, saved.scaleb(PER_TOKEN))


def _compact_file(
    file: SessionFile,
    account: BillAccount,
    limit: int,
    size: CompactionSize,
    in_scope: InScope,
    changed: dict[int, Tokens],
) -> Decimal:
    """USD per 10**6 that are saved in a file, whose shorter calls are added to `changed`."""
    saved, cut = ZERO, {0: 0}
    for call, before in _main_thread(file.calls):
        goes_on = before is not None and not _restarts(call)
        removed = cut.get(call.before, 0) if goes_on else 0
        counts = in_scope(call) and account.is_counted(call) and not account.is_copy(call)
        is_over = counts and goes_on and call.total_input - removed > limit
        prices = account.prices.prices(call) if counts and (is_over or removed) else None
        summary = 0
        if before is not None and prices and is_over:
            more = before.total_input - removed - size.static - size.summary
            if more > 0:
                saved -= max(0, before.cached - removed) * prices.read + size.summary * prices.output
                removed, summary = removed + more, size.summary
        cut[call.number] = removed
        if prices and removed:
            tokens = changed[id(call)] = _shortened(call, removed, size, summary)
            saved += _price(call.tokens, prices) - _price(tokens, prices)
    return saved


def _shortened(call: BilledCall, removed: int, size: CompactionSize, summary: int) -> Tokens:
    """The usage without `removed` tokens behind the static prefix; `summary` tokens are written for the first time."""
    uncached, read, five, hour, output = call.tokens
    of_read = max(0, min(removed, read - size.static))
    written = max(0, call.written - (removed - of_read))
    new = max(0, min(summary, read - of_read - size.static))
    written += new
    of_hour = written if hour and not five else min(hour, written)
    return (uncached, read - of_read - new, written - of_hour, of_hour, output)


def _price(tokens: Tokens, prices: Prices) -> Decimal:
    """USD per 10**6 of what is read and written."""
    return tokens[1] * prices.read + tokens[2] * prices.write_5m + tokens[3] * prices.write_1h


def _main_thread(calls: Sequence[BilledCall]) -> Iterator[tuple[BilledCall, BilledCall | None]]:
    for call in calls:
        if not call.agent:
            yield call, calls[call.before - 1] if call.before else None


def _restarts(call: BilledCall) -> bool:
    return "compaction" in call.events or "clear" in call.events
