"""What each call paid for although it had been cached, and the cause, from what is visible around it.

Within a thread: what changed since the call before, and how long that was. Between threads: static prefixes (tools and
system prompt) that a new session or sub-agent wrote again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from cachecost.account.causes import Cause, cause_events, coded_causes
from cachecost.analysis.bill.call_prices import CachedPrefix, state_after
from cachecost.base.formatting import duration
from cachecost.base.structs import replace
from cachecost.caches.expiry import has_expired
from cachecost.conversations.input_files import BilledCall, PrefixKind, SessionFile
from cachecost.conversations.start_times import REQUESTS, is_whole
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import USUAL_TTL_S, ttl_seconds

LOOKBACK_WITHOUT_RULES = 20
SHORTEST_CALL_S = 0.05
"""Seconds from one call to the next that needs its answer: no model is faster."""
NO_CHANGES = frozenset(
    {"human", "error", "skill", "continued", "woken", "task", "hook", "command", "media", "plan", "folder"}
)
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
    shown: Mapping[str, str] = field(default_factory=dict)
    """Events between the two calls that their bills and answers show, and the words for what does."""

    @property
    def idle_s(self) -> float | None:
        return self.state.age(self.call.start)

    def has(self, event: str) -> bool:
        """Whether an event lies between the two calls; of an upgrade also where they are in different files."""
        return (
            event in self.call.events
            or event in self.shown
            or (
                event == "client"
                and (bool(self.call.version and self.before.version) and self.call.version != self.before.version)
            )
        )


@dataclass(frozen=True, slots=True)
class CauseEvidence:
    """A cause, and the words for what shows it."""

    cause: Cause
    words: str


UNSPECIFIC = ("unavailable", "previous_message_not_found")
"""Values of the API's `diagnostics.cache_miss_reason` that do not say what changed."""


UNEXPLAINED: Cause = "billed_not_explained"


def find_evidence(rewrite: Rewrite) -> CauseEvidence:
    """The cause of a rewrite, by the first condition that holds; `UNEXPLAINED`, without words, where none does.

    What the content shows (a compaction, another model) comes before time, and time before what may only have happened
    at the same moment (an upgrade, a resume).
    """
    return next(_find_causes(rewrite), CauseEvidence(UNEXPLAINED, ""))


def _find_causes(rewrite: Rewrite) -> Iterator[CauseEvidence]:
    """In the order in which they decide; what may only have happened at the same moment comes last."""
    call, before, state, idle, rules = rewrite.call, rewrite.before, rewrite.state, rewrite.idle_s, rewrite.rules
    yield from _find_events(rewrite, "first")
    if call.upstream != before.upstream:
        names = (one.upstream or "one not named" for one in (before, call))
        yield CauseEvidence("upstream_changed", "the gateway's upstream changed from {} to {}".format(*names))
    if call.model != before.model:
        yield CauseEvidence("model_changed", f"model changed from {before.model} to {call.model}")
    if ("fast" in call.modes) != ("fast" in before.modes):
        is_on = "on" if "fast" in call.modes else "off"
        yield CauseEvidence("speed_changed", f"fast mode was switched {is_on}")
    if idle is not None and rewrite.expected < state.tokens:
        resumed = ", then resumed" if rewrite.has("resume") else ""
        yield CauseEvidence("ttl_expired", f"idle for {duration(idle)}{resumed}, longer than the {state.ttl} TTL")
    drops_thinking = rules is not None and not rules.keeps_thinking
    if drops_thinking and rewrite.has("human") and state.has_thinking:
        words = "this model drops the thinking of earlier turns when a person writes"
        yield CauseEvidence("thinking_stripped", words)
    is_in_flight = call.start is not None and before.answered is not None and call.start < before.answered
    if is_in_flight and not has_time_of_copy(call, before):
        yield CauseEvidence("concurrent_write", "sent before the call that wrote the prefix had begun to answer")
    reason = call.miss_reason
    cause = next((row.cause for row in coded_causes().values() if row.word == reason), None)
    if cause is not None and reason not in UNSPECIFIC:
        around = next(_find_events(rewrite), None)
        detail = f"; {around.words}" if around and around.cause == cause else ""
        yield CauseEvidence(cause, f"the API reported {reason}{detail}")
    yield from _find_events(rewrite)
    yield from _find_events(rewrite, "last")
    limit = rewrite.rules.lookback_positions if rewrite.rules else LOOKBACK_WITHOUT_RULES
    if not rewrite.is_static and call.blocks > limit and set(call.events) <= NO_CHANGES:
        words = f"{call.blocks} blocks were added, more than a breakpoint looks back"
        yield CauseEvidence("lookback_exceeded", words)
    # The request began after the record before it, at some time until its answer: perhaps when all had expired.
    age = state.age(call.answered)
    if age is not None and age >= ttl_seconds(state.ttl, state.ttl_s):
        words = f"answered {duration(age)} after the call before, longer than the {state.ttl} TTL"
        yield CauseEvidence("ttl_expired", words)


def _find_events(rewrite: Rewrite, decides: str = "") -> Iterator[CauseEvidence]:
    is_reached = {"static": rewrite.is_static, "not kept": not rewrite.keeps_static, "any": True}
    for one in cause_events():
        if one.decides == decides and rewrite.has(one.event) and is_reached[one.lost]:
            words = rewrite.shown.get(one.event) or one.words.format(before=rewrite.before, call=rewrite.call)
            yield CauseEvidence(one.cause, words)


CHARACTERS_PER_TOKEN = 4
"""Rough: only for the first message of sub-agents that start together, a small part of their prompt."""
SAME_SIZE = 0.05
"""Prefixes of agents of unknown type are taken as one if their sizes differ by less."""


@dataclass(slots=True)
class SharedPrefixes:
    """The first calls of all files by kind, and when calls of each kind kept their prefix alive."""

    _firsts: dict[PrefixKind, list[tuple[SessionFile, BilledCall]]] = field(default_factory=lambda: defaultdict(list))
    _touches: dict[PrefixKind, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, file: SessionFile, call: BilledCall, is_first: bool) -> None:
        """Note a call. Calls without a time say nothing here; those of logs with requests are compared by content."""
        if call.start is None or file.client == REQUESTS:
            return
        kind = file.prefix_kind(call)
        self._touches[kind].append((call.start, "1h" if call.tokens[3] else "5m" if call.tokens[2] else ""))
        if is_first:
            self._firsts[kind].append((file, call))

    def rewrites(self) -> Iterator[tuple[SessionFile, BilledCall, int, CauseEvidence]]:
        """The first calls that wrote so many tokens of a static prefix again, and what shows it; by kind and time."""
        for kind, firsts in self._firsts.items():
            firsts.sort(key=lambda one: one[1].start or 0.0)
            touches = sorted(self._touches[kind]) if len(firsts) > 1 else []
            for number, (file, call) in enumerate(firsts[1:], 1):
                # An earlier first call that had not begun to answer when this one was sent; a copy has other stamps.
                start = call.start or 0.0
                in_flight = (
                    one
                    for _, one in reversed(firsts[:number])
                    if one.answered is not None and one.written and one.answered > start
                    if one.answered - (one.start or 0.0) >= SHORTEST_CALL_S
                )
                writer = next(in_flight, None)
                sizes = [
                    (other.project != file.project, one.read)
                    for other, one in firsts
                    if one is not call and call.read < one.read <= call.total_input
                ]
                size = min(sizes)[1] if sizes else 0
                # Of sub-agents that started together, if their prompts are alike, the length of the shared prefix.
                if not size and writer and call.agent and call.session == writer.session:
                    cached = [one.cached - one.new_chars // CHARACTERS_PER_TOKEN for one in (call, writer)]
                    is_same = call.agent_type or max(cached) - min(cached) <= SAME_SIZE * max(cached)
                    size = max(0, min(cached)) if is_same else 0
                tokens = min(size - call.read, call.written + call.tokens[0])
                evidence = _find_prefix_evidence(call, writer, touches) if tokens > 0 else None
                if evidence:
                    yield file, call, tokens, evidence


def _find_prefix_evidence(
    call: BilledCall, writer: BilledCall | None, touches: Sequence[tuple[float, str]]
) -> CauseEvidence | None:
    if writer:
        words = "sent before another agent's call with the same prefix had begun to answer"
        return CauseEvidence("concurrent_write", words)
    start = call.start or 0.0
    at = bisect_left(touches, (start, ""))
    if not at or not call.version:  # the prefixes of different versions differ
        return None
    touched = touches[at - 1][0]
    ttl = next((ttl for _, ttl in reversed(touches[:at]) if ttl), "5m")
    if not has_expired(start, touched, USUAL_TTL_S[ttl]):
        return None
    what, idle = "sub-agent" if call.agent else "session", duration(start - touched)
    return CauseEvidence("cold_start", f"new {what} {idle} after the last one: tools and system prompt had expired")


TOLERANCE = 2
"""Tokens by which two bills of one prefix may differ (docs/reference/output-formats.md)."""
FindRules = Callable[[BilledCall], ModelRules | None]


class TurnThinking(msgspec.Struct, gc=False):
    """The calls from a person's message, a command or a skill to the next, and what shows whether they think."""

    asks: bool | None
    """As `BilledCall.thinking`."""
    is_whole: bool
    """Whether its beginning is recorded."""
    thinks: bool = False
    calls: int = 0

    @property
    def is_on(self) -> bool | None:
        """Whether thinking is on; None where its message does not ask for it and no answer has any."""
        return True if self.asks or self.thinks else self.asks

    def shows_switch(self, before: TurnThinking, tail: int) -> bool:
        """Whether thinking was switched since the turn `before`. `tail` is by how much more stands after the last
        breakpoint of a model that always thinks: thinking lengthens it (0: the model decides by itself)."""
        if not (self.is_whole and before.is_whole) or bool(self.is_on) == bool(before.is_on):
            return False
        if None not in (self.is_on, before.is_on) or self.asks or before.asks:
            return True
        return tail > 0 if self.is_on else tail < 0


def find_turns(calls: Sequence[BilledCall]) -> list[TurnThinking]:
    """The turn of each call."""
    turns: list[TurnThinking] = []
    for call in calls:
        is_same = 0 < call.before <= len(turns) and "human" not in call.events
        turns.append(turns[call.before - 1] if is_same else TurnThinking(call.thinking, "human" in call.events))
        turns[-1].thinks |= call.has_thinking
        turns[-1].calls += 1
    return turns


class LastCall(msgspec.Struct, gc=False):
    """The last call of a session's main thread, the cache after it, the length of its static prefix, and its turn.

    `begin` is what the first call of the thread had cached: static prefix and first message.
    """

    call: BilledCall
    state: CachedPrefix
    static_tokens: int
    begin: int
    turn: TurnThinking

    def static_length(self, call: BilledCall, rules: ModelRules | None) -> int:
        """The length of the static prefix of a call that continues it, as far as it is known (0: not)."""
        known = self.static_tokens
        if known and rules is not None and abs(call.read - known) == rules.hidden.adaptive_prefix:
            return call.read
        # Less than the first call had cached is all before its message, or where that changed a part of it.
        is_changed = call.is_summed or "tools" in call.events or "system" in call.events
        return known or (call.read if call.read < self.begin and not is_changed else 0)

    def shown_events(self, rewrite: Rewrite, turn: TurnThinking) -> Iterator[tuple[str, str]]:
        """What bills and answers show between this call and a rewrite in `turn`: events and their words."""
        call, before, rules, was, now = rewrite.call, rewrite.before, rewrite.rules, self.turn, turn
        if rules is not None and now is not was and "disabled" in (rules.accepted_thinking or ()):
            longer, step = call.read - self.static_tokens, rules.hidden.adaptive_prefix
            is_fixed = "adaptive" not in (rules.accepted_thinking or ())
            tail = call.tokens[0] - before.tokens[0] if is_fixed else 0
            if step and self.static_tokens and abs(longer) == step:
                relation = "longer" if longer > 0 else "shorter"
                yield "thinking", f"{SWITCHED[longer > 0]}: tools and system prompt are {step} tokens {relation}"
            elif now.shows_switch(was, tail):
                place, calls = ("the turn before", was.calls) if now.is_on else ("this turn", now.calls)
                answers = (
                    f"none of the {calls} answers of {place} has"
                    if calls > 1
                    else f"the answer of {place} does not have"
                )
                yield "thinking", f"{SWITCHED[bool(now.is_on)]}: {answers} any"
        shorter = before.total_input - call.total_input
        is_known = rewrite.keeps_static and not before.is_summed and not (rules is not None and rules.is_automatic)
        if is_known and shorter > TOLERANCE:
            yield "shorter", f"the prompt is {shorter:,} tokens shorter than before: earlier messages were taken out"


SWITCHED = {True: "thinking was switched on", False: "thinking was switched off"}


def find_rewrites(file: SessionFile, rules_of: FindRules, last_of: dict[str, LastCall]) -> Iterator[Rewrite]:
    """The rewrites of a file, in its order.

    `last_of` has the last call of each session whose earlier part is in another file, and is updated: a session that
    is resumed in a new file continues it.
    """
    known: list[LastCall | None] = [None]
    lengths = [0]  # of the static prefix: what the first call read, else what a later one read of it alone; 0: unknown
    ended: dict[str, LastCall | None] = {}
    for call, turn in zip(file.calls, find_turns(file.calls), strict=True):
        rules = rules_of(call)
        earlier = _find_continued(call, known, last_of)
        is_copied = earlier is not None and has_time_of_copy(call, earlier.call)
        if earlier is not None:
            if is_copied:
                earlier.state.touched = None
            length = earlier.static_length(call, rules)
            if not call.is_summed and (found := _find_rewrite(call, earlier, length, rules, is_copied)):
                yield replace(found, shown=dict(earlier.shown_events(found, turn)))
        elif call.before and "clear" not in call.events:
            length = lengths[call.before]
        else:
            length = 0 if call.is_summed else call.read
        lengths.append(length)
        known.append(None)
        if not call.is_summed:
            state = state_after(call, earlier.state if earlier else None, rules)
            state.touched = None if is_copied else state.touched
            known[-1] = LastCall(call, state, length, earlier.begin if earlier else state.tokens, turn)
        if not call.agent:
            ended[call.session] = known[-1]
    for session, last in ended.items():  # one that implies no prefix makes the next file of its session a beginning
        last_of.pop(session, None)
        if session and last is not None:
            last_of[session] = last


def _find_continued(call: BilledCall, known: list[LastCall | None], last_of: dict[str, LastCall]) -> LastCall | None:
    """The call that this one continues, in its file or in that of the earlier part of its session."""
    if "clear" in call.events:
        return None
    if call.before:
        return known[call.before]
    earlier = last_of.get(call.session) if not call.agent else None
    return earlier if earlier is not None and (earlier.call.start or 0.0) < (call.start or 0.0) else None


def _find_rewrite(
    call: BilledCall, earlier: LastCall, static: int, rules: ModelRules | None, is_copied: bool
) -> Rewrite | None:
    """What a call paid again of what `earlier` had cached, whose static prefix is so long; else the cache is kept."""
    lost, paid = earlier.state.tokens - call.read, call.written + call.tokens[0]
    tolerance = max(TOLERANCE, 2 * rules.step_tokens) if rules and rules.is_automatic else TOLERANCE
    if lost <= tolerance:
        refreshes = not is_copied and (rules is None or rules.refreshes_on_read)
        earlier.state.touch(call.start if refreshes else None)
        return None
    if paid <= tolerance:  # the prompt is shorter and nothing was paid
        return None
    return Rewrite(
        call,
        earlier.call,
        earlier.state,
        min(paid, lost),
        earlier.state.live_tokens(call.start),
        call.read < static if static else call.read == 0,
        rules,
        keeps_static=0 < static <= call.read,
        is_at_static=0 < static <= call.read < earlier.begin,
    )
