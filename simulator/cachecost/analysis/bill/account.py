"""The account of a bill: every call priced, and every dollar necessary, rewritten or not explained.

Static prefixes (tools and system prompt) that a new session or sub-agent wrote although they had been cached.

What each call of a file paid for although the call that it continues had cached it.

What another TTL would have saved on billed calls, with everything else as it was.

What compacting earlier would have saved: shorter prompts from then on, for the price of a summary.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from datetime import UTC, tzinfo
from decimal import Decimal
from math import inf
from statistics import median_low
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from cachecost.account.causes import Cause
from cachecost.analysis.bill.call_prices import UNKNOWN_TTLS, CachedPrefix, CallPrices, state_after
from cachecost.analysis.bill.evidence import (
    SHORTEST_CALL_S,
    CauseEvidence,
    Rewrite,
    find_evidence,
    has_time_of_copy,
    place_before,
)
from cachecost.base.formatting import duration
from cachecost.conversations.input_files import BilledCall, SessionFile
from cachecost.conversations.start_times import REQUESTS
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import PER_TOKEN, ZERO, Prices

if TYPE_CHECKING:
    from cachecost.analysis.bill.explanation import LoggedCalls


CHARACTERS_PER_TOKEN = 4
"""Rough: only for the first message of sub-agents that start together, a small part of their prompt."""
SAME_SIZE = 0.05
"""Prefixes of agents of unknown type are taken as one if their sizes differ by less."""
Kind = tuple[str, str, str, str, str]
"""Host, model, client version, and the type of the sub-agent ("main": none), the client."""


@dataclass(frozen=True, slots=True)
class FirstCall:
    """The first call of a session or sub-agent, and its file."""

    file: SessionFile
    call: BilledCall


@dataclass(frozen=True, slots=True)
class PrefixRewrite:
    """A first call that wrote `tokens` of a static prefix again, and what shows it."""

    first: FirstCall
    tokens: int
    evidence: CauseEvidence


@dataclass(slots=True)
class SharedPrefixes:
    """The first calls of all files by kind, and when calls of each kind kept their prefix alive."""

    _firsts: dict[Kind, list[FirstCall]] = field(default_factory=lambda: defaultdict(list))
    _touches: dict[Kind, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, file: SessionFile, call: BilledCall, is_first: bool) -> None:
        """Note a call. Calls without a time say nothing here."""
        if call.start is None:
            return
        kind = (
            call.host,
            call.model,
            call.version,
            call.agent_type or ("agent" if call.agent else "main"),
            file.client,
        )
        self._touches[kind].append((call.start, "1h" if call.tokens[3] else "5m" if call.tokens[2] else ""))
        if is_first:
            self._firsts[kind].append(FirstCall(file, call))

    def rewrites(self) -> Iterator[PrefixRewrite]:
        """The first calls that wrote again what was cached, by kind and time."""
        for kind, firsts in self._firsts.items():
            firsts.sort(key=_start)
            if len(firsts) > 1:
                touches = sorted(self._touches[kind])
                for number, first in enumerate(firsts[1:], 1):
                    earlier = firsts[:number]
                    writer = _writer_in_flight(first, earlier)
                    sizes = [
                        (one.file.project != first.file.project, one.call.read)
                        for one in firsts
                        if one.call is not first.call and first.call.read < one.call.read <= first.call.total_input
                    ]
                    size = (min(sizes)[1] if sizes else 0) or (_estimate(first, writer) if writer else 0)
                    tokens = min(size - first.call.read, first.call.written + first.call.tokens[0])
                    evidence = _evidence(first.call, writer, touches) if tokens > 0 else None
                    if evidence:
                        yield PrefixRewrite(first, tokens, evidence)


def _start(first: FirstCall) -> float:
    return first.call.start or 0.0


def _writer_in_flight(first: FirstCall, earlier: Sequence[FirstCall]) -> FirstCall | None:
    """An earlier first call that had not begun to answer when this one was sent."""
    start = _start(first)
    for one in reversed(earlier):
        answered = one.call.answered
        if answered is None or not one.call.written or answered <= start:
            continue
        if answered - _start(one) >= SHORTEST_CALL_S:  # else its stamps are those of a copy
            return one
    return None


def _estimate(first: FirstCall, writer: FirstCall) -> int:
    """The length of the prefix of two sub-agents that started together, if their prompts are alike; 0: unknown."""
    if not first.call.agent or first.call.session != writer.call.session:
        return 0
    sizes = [one.call.cached - one.call.new_chars // CHARACTERS_PER_TOKEN for one in (first, writer)]
    is_same = first.call.agent_type or max(sizes) - min(sizes) <= SAME_SIZE * max(sizes)
    return max(0, min(sizes)) if is_same else 0


def _evidence(call: BilledCall, writer: FirstCall | None, touches: Sequence[tuple[float, str]]) -> CauseEvidence | None:
    if writer:
        return CauseEvidence(
            "concurrent_write", "sent before another agent's call with the same prefix had begun to answer"
        )
    if not call.version:  # the prefixes of different versions differ
        return None
    start = call.start or 0.0
    at = bisect_left(touches, (start, ""))
    if not at:
        return None
    touched = touches[at - 1][0]
    ttl = next((ttl for _, ttl in reversed(touches[:at]) if ttl), "5m")
    if start - touched < UNKNOWN_TTLS[ttl]:
        return None
    what = "sub-agent" if call.agent else "session"
    idle = duration(start - touched)
    return CauseEvidence("cold_start", f"new {what} {idle} after the last one: tools and system prompt had expired")


TOLERANCE = 2
"""Tokens by which two bills of one prefix may differ (docs/reference/output-formats.md)."""
FindRules = Callable[[BilledCall], ModelRules | None]


class LastCall(msgspec.Struct, gc=False):
    """The last call of a session's main thread, the cache after it, and the length of its static prefix.

    `begin` is what the first call of the thread had cached: static prefix and first message.
    """

    call: BilledCall
    state: CachedPrefix
    static_tokens: int
    begin: int


def find_rewrites(file: SessionFile, rules_of: FindRules, last_of: dict[str, LastCall]) -> Iterator[Rewrite]:
    """The rewrites of a file, in its order.

    `last_of` has the last call of each session whose earlier part is in another file, and is updated: a session that
    is resumed in a new file continues it.
    """
    known: list[LastCall | None] = [None]
    static = [0]
    ended: dict[str, LastCall | None] = {}
    for call in file.calls:
        rules = rules_of(call)
        earlier = _continued(call, known, last_of)
        is_copied = earlier is not None and has_time_of_copy(call, earlier.call)
        at = None if is_copied else call.start
        if earlier is not None and is_copied:
            earlier.state.touched = None
        if earlier is not None and not call.is_summed:
            lost, tolerance = (
                earlier.state.tokens - call.read,
                (max(TOLERANCE, 2 * rules.step_tokens) if rules is not None and rules.is_automatic else TOLERANCE),
            )
            if lost <= tolerance:
                if rules is None or rules.refreshes_on_read:
                    earlier.state.touch(at)
            elif call.written + call.tokens[0] > tolerance:  # else the prompt is shorter and nothing was paid
                yield _rewrite(call, earlier, rules)
        static.append(_static_tokens(call, earlier, static[call.before]))
        known.append(_after(call, earlier, rules, static[-1]))
        if is_copied and (last := known[-1]):
            last.state.touched = None
        if not call.agent:
            ended[call.session] = known[-1]
    _note_ends(ended, last_of)


def _note_ends(ended: dict[str, LastCall | None], last_of: dict[str, LastCall]) -> None:
    """Note the last calls of sessions; one that implies no prefix makes the next file of the session a beginning."""
    for session, last in ended.items():
        last_of.pop(session, None)
        if session and last is not None:
            last_of[session] = last


def _static_tokens(call: BilledCall, earlier: LastCall | None, before: int) -> int:
    """The length of the static prefix: what the first call read, else what a later one read of it alone; 0: unknown."""
    if earlier is not None:
        return earlier.static_tokens or (0 if call.is_summed else _seen_static(call, earlier))
    if call.before and "clear" not in call.events:
        return before
    return 0 if call.is_summed else call.read


def _seen_static(call: BilledCall, earlier: LastCall) -> int:
    """What a call read, if it is less than the first call had cached: all that was cached before its message; else 0.
    Where tools or system prompt changed, it is only a part of them."""
    is_changed = "tools" in call.events or "system" in call.events
    return call.read if call.read < earlier.begin and not is_changed else 0


def _continued(call: BilledCall, known: list[LastCall | None], last_of: dict[str, LastCall]) -> LastCall | None:
    """The call that this one continues, in its file or in that of the earlier part of its session."""
    if "clear" in call.events:
        return None
    if call.before:
        return known[call.before]
    earlier = last_of.get(call.session) if not call.agent else None
    is_later = earlier is not None and (earlier.call.start or 0.0) < (call.start or 0.0)
    return earlier if is_later else None


def _after(call: BilledCall, earlier: LastCall | None, rules: ModelRules | None, static_tokens: int) -> LastCall | None:
    if call.is_summed:
        return None
    state = state_after(call, earlier.state if earlier else None, rules)
    return LastCall(call, state, static_tokens, earlier.begin if earlier else state.tokens)


def _rewrite(call: BilledCall, earlier: LastCall, rules: ModelRules | None) -> Rewrite:
    tokens = min(call.written + call.tokens[0], earlier.state.tokens - call.read)
    static = earlier.static_tokens or _seen_static(call, earlier)
    is_static = call.read < static if static else call.read == 0
    live, keeps_static = earlier.state.live_tokens(call.start), 0 < static <= call.read
    is_at_static = 0 < static <= call.read < earlier.begin
    return Rewrite(call, earlier.call, earlier.state, tokens, live, is_static, rules, keeps_static, is_at_static)


IsCounted = Callable[[BilledCall], bool]
Tokens = tuple[int, int, int, int, int]
replace: Any = msgspec.structs.replace


@dataclass(frozen=True, slots=True)
class BilledRewrite:
    """A call that paid again for what had been cached.

    `tokens` were charged at more than the read price, and `cost` is the difference in USD (None: no price is known).
    `before` is the call that had cached them, where one call had. `words` say what shows the cause.
    """

    file: SessionFile
    call: BilledCall
    before: BilledCall | None
    cause: Cause
    tokens: int
    cost: Decimal | None
    words: str
    idle_s: float | None = None
    is_static: bool = False
    """Whether tools and system prompt were written again, too."""


class PricedCall(NamedTuple):
    """A call that counts, its file, and its prices (None: unknown)."""

    file: SessionFile
    call: BilledCall
    prices: Prices | None


@dataclass(slots=True)
class BillAccount:
    """The files of a bill, without the copies of calls, and their rewrites in the order of time.

    `is_counted` says which calls are in the period asked for.
    """

    files: Sequence[SessionFile]
    prices: CallPrices
    is_counted: IsCounted
    rewrites: list[BilledRewrite] = field(default_factory=list)
    copies: int = 0
    warm_calls: int = 0
    """First calls that read what was cached before them; that is no loss."""
    warm_tokens: int = 0
    states: dict[int, dict[int, CachedPrefix]] = field(default_factory=dict)
    """The cache after each call, by the `id()` of its file and its number; filled where it is first asked for."""
    zone: tzinfo = UTC
    """In which days, weeks and months are counted."""
    logged: LoggedCalls | None = None
    """The calls of logs whose requests are known."""
    _copied: frozenset[int] = frozenset()
    _priced: list[PricedCall] = field(default_factory=list)

    def calls(self) -> Iterator[tuple[SessionFile, BilledCall]]:
        """The calls that count, each once, file by file."""
        copied, is_counted = self._copied, self.is_counted
        for file in self.files:
            for call in file.calls:
                if id(call) not in copied and is_counted(call):
                    yield file, call

    def priced_calls(self) -> Sequence[PricedCall]:
        """The calls that count, with their prices; looked up once."""
        if not self._priced:
            prices = self.prices.prices
            self._priced = [PricedCall(file, call, prices(call)) for file, call in self.calls()]
        return self._priced

    def is_copy(self, call: BilledCall) -> bool:
        """Whether another file holds the call, too, and it counts there."""
        return id(call) in self._copied


def account_for(
    files: Sequence[SessionFile],
    prices: CallPrices,
    is_counted: IsCounted = bool,
    known: Sequence[BilledRewrite] = (),
    zone: tzinfo = UTC,
) -> BillAccount:
    """The account of these files. What came before the period still counts as cached.

    `known` are the rewrites of files whose requests are known (logs.py).
    """
    ordered = sorted(files, key=_begins)
    copied = _find_copies(ordered)
    account = BillAccount(ordered, prices, is_counted, copies=len(copied), zone=zone, _copied=copied)
    requests = (one for one in known if id(one.call) not in copied and is_counted(one.call))
    found = _with_same_lengths(list(_rewrites(account, copied)))
    account.rewrites = sorted((*found, *requests), key=_rewrite_order)
    return account


def with_usage(account: BillAccount, changed: Mapping[int, Tokens]) -> BillAccount:
    """The account with the tokens of some calls changed, by the `id()` of the call."""
    original: dict[int, BilledCall] = {}
    files: list[SessionFile] = []
    for file in account.files:
        calls = [replace(call, tokens=changed[id(call)]) if id(call) in changed else call for call in file.calls]
        original.update((id(new), old) for new, old in zip(calls, file.calls, strict=True))
        files.append(replace(file, calls=calls))
    return account_for(
        files, account.prices, lambda call: account.is_counted(original.get(id(call), call)), (), account.zone
    )


def _begins(file: SessionFile) -> tuple[float, float, str]:
    """Files in the order they begin; of copies, the original ends first."""
    starts = [call.start for call in file.calls if call.start is not None]
    return (min(starts, default=0.0), max(starts, default=0.0), file.path)


def _copy_key(call: BilledCall) -> tuple[str, int, int, int]:
    """What the copies of a call share: the request's id, which telemetry has too, else the id of the message; and the
    input, as some gateways give all their messages one id."""
    last = call.id.rpartition(" ")[2]
    return (last if last.startswith("req_") else call.id, call.tokens[0], call.read, call.written)


def _find_copies(files: Sequence[SessionFile]) -> frozenset[int]:
    """The `id()` of calls that another file holds, too. The one with the largest bill counts, of equals the first.

    All copies get the times of the earliest: a session that is resumed may copy its calls under a new one.
    """
    found: dict[tuple[str, int, int, int], list[BilledCall]] = {}
    for file in files:
        for call in file.calls:
            if call.id:
                found.setdefault(_copy_key(call), []).append(call)
    copied: set[int] = set()
    for copies in found.values():
        if len(copies) > 1:
            copied.update(id(call) for call in copies)
            copied.remove(id(max(copies, key=lambda call: sum(call.tokens))))
            first = min(copies, key=lambda call: inf if call.start is None else call.start)
            for call in copies:
                call.start, call.answered, call.end = first.start, first.answered, first.end
    return frozenset(copied)


def _rewrites(account: BillAccount, copied: frozenset[int]) -> Iterator[BilledRewrite]:
    shared, last_of = SharedPrefixes(), dict[str, LastCall]()
    for file in account.files:
        if file.has_requests:
            continue
        _note_firsts(account, file, shared, last_of)
        for found in find_rewrites(file, account.prices.rules_of, last_of):
            if id(found.call) not in copied and account.is_counted(found.call):
                yield _billed_rewrite(file, found, account.prices)
    for prefix in shared.rewrites():
        file, call = prefix.first.file, prefix.first.call
        if account.is_counted(call):
            cost, evidence = account.prices.rewrite_cost(call, prefix.tokens), prefix.evidence
            yield BilledRewrite(file, call, None, evidence.cause, prefix.tokens, cost, evidence.words, is_static=True)


def _with_same_lengths(rewrites: Sequence[BilledRewrite]) -> Iterator[BilledRewrite]:
    """The rewrites; of those that nothing explains, how often a call fell to the same length, and after what."""
    places: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    everywhere = Counter[int]()
    for one in rewrites:
        if one.cause == "billed_not_explained" and one.call.read:
            places[one.call.session or one.file.path, one.call.read][place_before(one.call)] += 1
            everywhere[one.call.read] += 1
    for one in rewrites:
        key = (one.call.session or one.file.path, one.call.read)
        here = places.get(key) if one.cause == "billed_not_explained" else None
        times, of_all = (here.total(), everywhere[one.call.read]) if here else (0, 0)
        parts = [f"{times} calls of this session fell to this length"] if times > 1 else []
        if here and len(here) > 1:
            parts += [f"{count} {place or 'elsewhere'}" for place, count in here.most_common()]
        parts += [f"{of_all} calls of all sessions"] if of_all > times else []
        yield replace_fields(one, words="; ".join([one.words, ", ".join(parts)])) if parts else one


def _note_firsts(
    account: BillAccount, file: SessionFile, shared: SharedPrefixes, last_of: Mapping[str, LastCall]
) -> None:
    """Note the calls of a file that begin a session or an agent, and when others kept their prefix alive."""
    for call in file.calls:
        if account.is_copy(call):
            continue
        is_later_part = not call.agent and call.session in last_of
        is_first = (not call.before or "clear" in call.events) and not call.is_summed and not is_later_part
        if file.client != REQUESTS:
            shared.add(file, call, is_first)
        if is_first and call.read and account.is_counted(call):
            account.warm_calls += 1
            account.warm_tokens += call.read


def _billed_rewrite(file: SessionFile, found: Rewrite, prices: CallPrices) -> BilledRewrite:
    evidence, cost = find_evidence(found), prices.rewrite_cost(found.call, found.tokens)
    return BilledRewrite(
        file,
        found.call,
        found.before,
        evidence.cause,
        found.tokens,
        cost,
        evidence.words,
        found.idle_s,
        found.is_static,
    )


def _rewrite_order(rewrite: BilledRewrite) -> tuple[float, str, int]:
    return (rewrite.call.start or 0.0, rewrite.file.path, rewrite.call.number)


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
        goes_on = before is not None and not ("compaction" in call.events or "clear" in call.events)
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
            uncached, read, five, hour, output = call.tokens
            of_read = max(0, min(removed, read - size.static))
            written = max(0, call.written - (removed - of_read))
            new = max(0, min(summary, read - of_read - size.static))
            written += new
            of_hour = written if hour and not five else min(hour, written)
            tokens = changed[id(call)] = (uncached, read - of_read - new, written - of_hour, of_hour, output)
            saved += _price(call.tokens, prices) - _price(tokens, prices)
    return saved


def _price(tokens: Tokens, prices: Prices) -> Decimal:
    """USD per 10**6 of what is read and written."""
    return tokens[1] * prices.read + tokens[2] * prices.write_5m + tokens[3] * prices.write_1h


def _main_thread(calls: Sequence[BilledCall]) -> Iterator[tuple[BilledCall, BilledCall | None]]:
    for call in calls:
        if not call.agent:
            yield call, calls[call.before - 1] if call.before else None
