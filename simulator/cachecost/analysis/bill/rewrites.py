"""What each call paid for although it had been cached, and the cause, from what is visible around it.

Within a thread: what changed since the call before, and how long that was. The first condition that holds decides: what
the content shows (a compaction, another model) comes before time, and time before what may only have happened at the
same moment (an upgrade, a resume). Between threads: static prefixes (tools and system prompt) that a new session or
sub-agent wrote again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec

from cachecost.account.causes import Cause, cause_events, coded_causes
from cachecost.analysis.bill.call_prices import CachedPrefix, state_after
from cachecost.base.formatting import duration
from cachecost.caches.expiry import has_expired
from cachecost.conversations.input_files import BilledCall, SessionFile
from cachecost.conversations.start_times import is_whole
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import USUAL_TTL_S, ttl_seconds

LOOKBACK_WITHOUT_RULES = 20
SHORTEST_CALL_S = 0.05
"""Seconds from one call to the next that needs its answer: no model is faster."""
NO_CHANGES = frozenset({"human", "error", "skill", "continued"})
"""Events that change nothing that was sent before."""


def has_time_of_copy(call: BilledCall, before: BilledCall) -> bool:
    """Whether the stamps of two calls, one of which continues the other, are those of a copy, and when they were made
    is unknown. Stamps of whole seconds may only be rounded."""
    if call.start is None or before.start is None or (is_whole(call.start) and is_whole(before.start)):
        return False
    return abs(call.start - before.start) < SHORTEST_CALL_S


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A call that paid again for `tokens` of what the call before it had cached.

    `state` is the cache after that call, `expected` how much of it had not expired when this one began, `is_static`
    whether even the static prefix (tools and system prompt) was lost.
    """

    call: BilledCall
    before: BilledCall
    state: CachedPrefix
    tokens: int
    expected: int
    is_static: bool
    rules: ModelRules | None
    keeps_static: bool = False
    """Whether the static prefix is known to have been read; where its length is unknown, neither may hold."""
    is_at_static: bool = False
    """Whether the static prefix was read, and not the first message to its end."""

    @property
    def idle_s(self) -> float | None:
        return self.state.age(self.call.start)

    def has(self, event: str) -> bool:
        """Whether an event lies between the two calls; of an upgrade also where they are in different files."""
        return event in self.call.events or (
            event == "client"
            and (bool(self.call.version and self.before.version) and self.call.version != self.before.version)
        )


@dataclass(frozen=True, slots=True)
class CauseEvidence:
    """A cause, and the words for what shows it."""

    cause: Cause
    words: str


def find_evidence(rewrite: Rewrite) -> CauseEvidence:
    """The cause of a rewrite; `billed_not_explained` where nothing around it tells."""
    return next(
        (found for check in CHECKS if (found := check(rewrite))),
        CauseEvidence("billed_not_explained", _not_explained(rewrite)),
    )


def _model(rewrite: Rewrite) -> CauseEvidence | None:
    if rewrite.call.model == rewrite.before.model:
        return None
    return CauseEvidence("model_changed", f"model changed from {rewrite.before.model} to {rewrite.call.model}")


def _speed(rewrite: Rewrite) -> CauseEvidence | None:
    is_fast, was_fast = "fast" in rewrite.call.modes, "fast" in rewrite.before.modes
    if is_fast == was_fast:
        return None
    return CauseEvidence("speed_changed", f"fast mode was switched {'on' if is_fast else 'off'}")


def _expired(rewrite: Rewrite) -> CauseEvidence | None:
    idle = rewrite.idle_s
    if idle is None or rewrite.expected >= rewrite.state.tokens:
        return None
    resumed = ", then resumed" if rewrite.has("resume") else ""
    return CauseEvidence("ttl_expired", f"idle for {duration(idle)}{resumed}, longer than the {rewrite.state.ttl} TTL")


def _stripped(rewrite: Rewrite) -> CauseEvidence | None:
    keeps = rewrite.rules is None or rewrite.rules.keeps_thinking
    if keeps or not rewrite.has("human") or not rewrite.state.has_thinking:
        return None
    return CauseEvidence("thinking_stripped", "this model drops the thinking of earlier turns when a person writes")


def _concurrent(rewrite: Rewrite) -> CauseEvidence | None:
    start, readable = rewrite.call.start, rewrite.before.answered
    if start is None or readable is None or start >= readable or has_time_of_copy(rewrite.call, rewrite.before):
        return None
    return CauseEvidence("concurrent_write", "sent before the call that wrote the prefix had begun to answer")


UNSPECIFIC = ("unavailable", "previous_message_not_found")
"""Values of the API's `diagnostics.cache_miss_reason` that do not say what changed."""


def _diagnosed(rewrite: Rewrite) -> CauseEvidence | None:
    reason = rewrite.call.miss_reason
    cause = next((row.cause for row in coded_causes().values() if row.word == reason), None)
    if cause is None or reason in UNSPECIFIC:
        return None
    around = _shown(rewrite)
    detail = f"; {around.words}" if around and around.cause == cause else ""
    return CauseEvidence(cause, f"the API reported {reason}{detail}")


def _lookback(rewrite: Rewrite) -> CauseEvidence | None:
    limit = rewrite.rules.lookback_positions if rewrite.rules else LOOKBACK_WITHOUT_RULES
    if rewrite.is_static or rewrite.call.blocks <= limit or not set(rewrite.call.events) <= NO_CHANGES:
        return None
    return CauseEvidence(
        "lookback_exceeded", f"{rewrite.call.blocks} blocks were added, more than a breakpoint looks back"
    )


def _shown(rewrite: Rewrite, decides: str = "") -> CauseEvidence | None:
    """What happened between the two calls, as far as it can change this part of the prompt."""
    is_reached = {"static": rewrite.is_static, "not kept": not rewrite.keeps_static, "any": True}
    for one in cause_events():
        if one.decides == decides and rewrite.has(one.event) and is_reached[one.lost]:
            return CauseEvidence(one.cause, one.words.format(before=rewrite.before, call=rewrite.call))
    return None


def _late(rewrite: Rewrite) -> CauseEvidence | None:
    """The request began after the record before it, at some time until its answer: perhaps when all had expired."""
    idle = rewrite.state.age(rewrite.call.answered)
    if idle is None or idle < ttl_seconds(rewrite.state.ttl, rewrite.state.ttl_s):
        return None
    return CauseEvidence(
        "ttl_expired", f"answered {duration(idle)} after the call before, longer than the {rewrite.state.ttl} TTL"
    )


CHECKS: tuple[Callable[[Rewrite], CauseEvidence | None], ...] = (
    partial(_shown, decides="first"),
    _model,
    _speed,
    _expired,
    _stripped,
    _concurrent,
    _diagnosed,
    _shown,
    partial(_shown, decides="last"),
    _lookback,
    _late,
)
"""In the order in which they decide."""
BEFORE = {
    "tool_search": "after a ToolSearch result",
    "skill": "after a skill was loaded",
    "resume": "after the session was resumed",
    "human": "at a user message",
}
"""What stood before a call whose loss nothing explains; of what a tool brought in, nothing else is said."""


def _not_explained(rewrite: Rewrite) -> str:
    """Where the read fell to, and what stood before it: no more than the file shows."""
    read, idle = rewrite.call.read, rewrite.idle_s
    after = f"{duration(idle)} after caching" if idle is not None else "after caching"
    found = "nothing was found: tools, system prompt and messages were written again"
    if read:
        found = f"only the first {read:,} were found"
    if rewrite.is_at_static:
        found = f"only the first {read:,} (tools and system prompt) were found: all messages were written again"
    return ", ".join(filter(None, [f"{after} {rewrite.state.tokens:,} tokens {found}", place_before(rewrite.call)]))


def place_before(call: BilledCall) -> str:
    """What stood before a call; what a tool brought in comes before all else. "": nothing of note."""
    found = [words for event, words in BEFORE.items() if event in call.events]
    return ", ".join(found[:1] if {"tool_search", "skill"}.intersection(call.events) else found)


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
    if not has_expired(start, touched, USUAL_TTL_S[ttl]):
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
            lost = earlier.state.tokens - call.read
            tolerance = max(TOLERANCE, 2 * rules.step_tokens) if rules and rules.is_automatic else TOLERANCE
            if lost <= tolerance:
                earlier.state.touch(at if rules is None or rules.refreshes_on_read else None)
            elif call.written + call.tokens[0] > tolerance:  # else the prompt is shorter and nothing was paid
                yield _rewrite(call, earlier, rules)
        static.append(_static_tokens(call, earlier, static[call.before]))
        known.append(None)
        if not call.is_summed:
            state = state_after(call, earlier.state if earlier else None, rules)
            state.touched = None if is_copied else state.touched
            known[-1] = LastCall(call, state, static[-1], earlier.begin if earlier else state.tokens)
        if not call.agent:
            ended[call.session] = known[-1]
    for session, last in ended.items():  # one that implies no prefix makes the next file of its session a beginning
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


def _rewrite(call: BilledCall, earlier: LastCall, rules: ModelRules | None) -> Rewrite:
    tokens = min(call.written + call.tokens[0], earlier.state.tokens - call.read)
    static = earlier.static_tokens or _seen_static(call, earlier)
    is_static = call.read < static if static else call.read == 0
    live, keeps_static = earlier.state.live_tokens(call.start), 0 < static <= call.read
    is_at_static = 0 < static <= call.read < earlier.begin
    return Rewrite(call, earlier.call, earlier.state, tokens, live, is_static, rules, keeps_static, is_at_static)
