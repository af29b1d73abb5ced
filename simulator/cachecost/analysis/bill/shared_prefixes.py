"""Static prefixes (tools and system prompt) that a new session or sub-agent wrote although they had been cached.

A session's first call continues no other, so what it lost shows only beside others: first calls of the same client,
version, model and kind of agent share their static prefix, and what such a call reads is its length. A first call that
reads less wrote the prefix again where an earlier call had written it: because it had expired (`cold_start`), or
because the writer had not begun to answer (`concurrent_write`). Whatever else may differ is not counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cachecost.analysis.bill.cache_states import UNKNOWN_TTLS
from cachecost.analysis.bill.evidence import SHORTEST_CALL_S, CauseEvidence
from cachecost.base.formatting import duration
from cachecost.conversations.billed_calls import BilledCall, SessionFile

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
                yield from self._rewrites_of(kind, firsts)

    def _rewrites_of(self, kind: Kind, firsts: Sequence[FirstCall]) -> Iterator[PrefixRewrite]:
        touches = sorted(self._touches[kind])
        for number, first in enumerate(firsts[1:], 1):
            earlier = firsts[:number]
            writer = _writer_in_flight(first, earlier)
            size = _prefix_size(first, firsts) or (_estimate(first, writer) if writer else 0)
            tokens = min(size - first.call.read, first.call.written + first.call.tokens[0])
            evidence = _evidence(first.call, writer, touches) if tokens > 0 else None
            if evidence:
                yield PrefixRewrite(first, tokens, evidence)


def _start(first: FirstCall) -> float:
    return first.call.start or 0.0


def _prefix_size(first: FirstCall, firsts: Sequence[FirstCall]) -> int:
    """The length of the prefix that this call shares with others: what one of the same project read, else of any."""
    sizes = [
        (one.file.project != first.file.project, one.call.read)
        for one in firsts
        if one.call is not first.call and first.call.read < one.call.read <= first.call.total_input
    ]
    return min(sizes)[1] if sizes else 0


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
