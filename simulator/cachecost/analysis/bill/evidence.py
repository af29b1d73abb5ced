"""The cause of a rewrite from what is visible around it: what changed since the call before, and how long that was.

The first condition that holds decides. What the content shows (a compaction, another model) comes before time, time
before what may only have happened at the same moment (an upgrade, a resume).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cachecost.account.causes import Cause, cause_events, coded_causes
from cachecost.analysis.bill.call_prices import CachedPrefix
from cachecost.base.formatting import duration
from cachecost.conversations.input_files import BilledCall
from cachecost.conversations.start_times import is_whole
from cachecost.providers.rules import ModelRules

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


def _compaction(rewrite: Rewrite) -> CauseEvidence | None:
    return CauseEvidence("compaction", "the history was compacted") if rewrite.has("compaction") else None


def _edit(rewrite: Rewrite) -> CauseEvidence | None:
    if rewrite.has("edit"):
        return CauseEvidence("content_changed", "the client removed old tool results (micro-compaction)")
    return None


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


def _fork(rewrite: Rewrite) -> CauseEvidence | None:
    if rewrite.has("fork"):
        return CauseEvidence("fork", "the conversation continued from an earlier message")
    return None


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
    around = _visible(rewrite)
    detail = f"; {around.words}" if around and around.cause == cause else ""
    return CauseEvidence(cause, f"the API reported {reason}{detail}")


def _lookback(rewrite: Rewrite) -> CauseEvidence | None:
    limit = rewrite.rules.lookback_positions if rewrite.rules else LOOKBACK_WITHOUT_RULES
    if rewrite.is_static or rewrite.call.blocks <= limit or not set(rewrite.call.events) <= NO_CHANGES:
        return None
    return CauseEvidence(
        "lookback_exceeded", f"{rewrite.call.blocks} blocks were added, more than a breakpoint looks back"
    )


def _visible(rewrite: Rewrite) -> CauseEvidence | None:
    """What happened between the two calls, as far as it can change this part of the prompt."""
    for one in cause_events():
        if rewrite.has(one.event) and _reaches(rewrite, one.lost):
            return CauseEvidence(one.cause, one.words.format(before=rewrite.before, call=rewrite.call))
    return None


def _reaches(rewrite: Rewrite, part: str) -> bool:
    """Whether the rewrite is of the part of the prompt that an event changes."""
    if part == "static":
        return rewrite.is_static
    return part == "any" or not rewrite.keeps_static


def _late(rewrite: Rewrite) -> CauseEvidence | None:
    """The request began after the record before it, at some time until its answer: perhaps when all had expired."""
    idle = rewrite.state.age(rewrite.call.answered)
    if idle is None or idle < rewrite.state.seconds(rewrite.state.ttl):
        return None
    return CauseEvidence(
        "ttl_expired", f"answered {duration(idle)} after the call before, longer than the {rewrite.state.ttl} TTL"
    )


CHECKS: tuple[Callable[[Rewrite], CauseEvidence | None], ...] = (
    _compaction,
    _edit,
    _model,
    _speed,
    _expired,
    _stripped,
    _concurrent,
    _diagnosed,
    _visible,
    _fork,
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
