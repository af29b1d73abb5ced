"""The state of a session from its billed calls."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from decimal import Decimal
from itertools import chain

from cachecost.analysis.bill.call_prices import CachedPrefix, seconds_between, state_after
from cachecost.analysis.next_message.state import (
    SUMMARY_TOKENS,
    BilledModel,
    FindModel,
    SessionState,
    cost_of_call,
    price_period,
)
from cachecost.base.structs import replace
from cachecost.conversations.input_files import BilledCall
from cachecost.providers.usage import USUAL_TTL_S, ZERO, usage_of

MOST_CALLS, MOST_PAUSES = 500, 50
"""The latest that say what is typical of a session, and the latest pauses that are kept: habits change."""
CONTINUED = "continued"
CHARACTERS_PER_TOKEN = 4
"""Rough: only for the first message of a session, a small part of its prompt."""
RESTARTS = frozenset({"compaction", "clear"})


def session_state(
    calls: Sequence[BilledCall],
    find: FindModel,
    project: str = "",
    static_warm_until: float | None = None,
    pending: Collection[str] = (),
    earlier_static: int = 0,
) -> SessionState | None:
    """The state after the calls of a session, in the order of time; None where its main thread has none.

    `pending` are the events since the last call: a history that was compacted or cleared is not sent again. Of calls
    that continue a session of another file, `earlier_static` is its static prefix (0: unknown).
    """
    main = [call for call in calls if not call.agent and not call.is_summed]
    if not main:
        return None
    last = main[-1]
    model, cache = find(last, ""), _cache_after(main, find)
    static = static_prefix(main, earlier_static)
    summaries = [call.written for call in main if "compaction" in call.events and call.written]
    uncached, read, five, hour, _ = map(sum, zip(*(call.tokens for call in main), strict=True))
    sent = uncached + read + five + hour
    hit_rate = Decimal(read) / sent if sent else None
    state = SessionState(
        last.model,
        model.host,
        last.session,
        project,
        last.version,
        last.modes,
        len(main),
        _total_cost(calls, find),
        hit_rate,
        last.total_input + last.tokens[4],
        cache.tokens,
        cache.hour_tokens,
        last.tokens[0],
        cache.ttl,
        dict(model.ttl_s or USUAL_TTL_S),
        cache.touched,
        min(static, cache.tokens),
        static_warm_until,
        *_typical_sizes(main[-MOST_CALLS:]),
        summary_tokens=_median(summaries) if summaries else 0,
        is_automatic=model.is_automatic,
        minimum_tokens=model.minimum_tokens,
        effort_layer=model.effort_layer,
        accepts_message_effort=model.accepts_message_effort,
        is_static_known=bool(static) or CONTINUED not in main[0].events,
        is_cost_low=any(call.is_output_partial for call in calls),
    )
    if RESTARTS.isdisjoint(pending):
        return state
    kept = (state.summary_tokens or SUMMARY_TOKENS) if "compaction" in pending else 0
    static = state.static_tokens
    return replace(state, prompt_tokens=static + kept, cached_tokens=static, hour_tokens=min(static, state.hour_tokens))


def _cache_after(main: Sequence[BilledCall], find: FindModel) -> CachedPrefix:
    """The cache after the last call, without what came before the last write for an hour, or else the last write."""
    hours = (at for at in range(len(main) - 1, -1, -1) if main[at].tokens[3])
    writes = (at for at in range(len(main) - 1, -1, -1) if main[at].tokens[2])
    state: CachedPrefix | None = None
    for call in main[next(chain(hours, writes), len(main) - 1) :]:
        state = state_after(call, None if "clear" in call.events else state, None)
    assert state is not None
    model, last = find(main[-1], ""), main[-1]
    tokens = last.total_input if model.is_automatic else state.tokens
    return CachedPrefix(tokens, state.ttl, state.hour_tokens, last.start, model.ttl_s or state.ttl_s)


def static_prefix(main: Sequence[BilledCall], earlier: int = 0) -> int:
    """What tools and system prompt measure: what the last compaction kept, else what the first call read, or cached
    before its message; 0: unknown. The first call of a later part of a session repeats its messages."""
    kept = [call.read for call in main if "compaction" in call.events and call.read]
    first = main[0]
    if kept:
        return kept[-1]
    if CONTINUED in first.events:
        return earlier
    return first.read or max(0, first.cached - first.new_chars // CHARACTERS_PER_TOKEN)


def _total_cost(calls: Sequence[BilledCall], find: FindModel) -> Decimal | None:
    """USD; None where a price is not known. Calls with the same prices are summed before they are priced."""
    sums: dict[tuple[str, str, int | None, tuple[str, ...]], list[int]] = {}
    models: dict[tuple[str, str, int | None, tuple[str, ...]], BilledModel] = {}
    total = ZERO
    for call in calls:
        key = call.model, call.host, price_period(call), call.modes
        if key not in models:
            models[key], sums[key] = find(call, ""), [0, 0, 0, 0, 0]
        quote = models[key].quote
        is_alone = bool(call.extra or call.tool_uses) or call.charged_usd is not None
        if quote is None and not is_alone:
            return None
        if is_alone or (quote and len(quote.tiers) > 1):
            cost = cost_of_call(call, find)
            if cost is None:
                return None
            total += cost
        else:
            row, tokens = sums[key], call.tokens
            for place in range(5):
                row[place] += tokens[place]
    costs = [models[key].cost(usage_of(row)) for key, row in sums.items() if any(row)]
    return None if None in costs else total + sum(filter(None, costs), ZERO)


def _typical_sizes(main: Sequence[BilledCall]) -> tuple[int, int, int, tuple[float, ...]]:
    """Tokens that a message adds and an answer has, calls for each message; seconds before the latest messages."""
    added: list[int] = []
    lengths: list[int] = []
    pauses: list[float] = []
    for position, call in enumerate(main):
        before = main[position - 1] if position else None
        if "human" in call.events or before is None:
            lengths.append(0)
            if before is not None and RESTARTS.isdisjoint(call.events):
                added.append(max(0, call.total_input - before.total_input - before.tokens[4]))
            pause = seconds_between(before, call)
            pauses += [pause] if pause is not None and pause > 0 else []
        lengths[-1] += 1
    answers = [call.tokens[4] for call in main]
    sizes = _median(added) if added else 0, _median(answers), _median(lengths)
    return *sizes, tuple(pauses[-MOST_PAUSES:])


def _median(numbers: Sequence[int]) -> int:
    """The lower median. `statistics` takes milliseconds to load, which a status line has not."""
    return sorted(numbers)[(len(numbers) - 1) // 2]
