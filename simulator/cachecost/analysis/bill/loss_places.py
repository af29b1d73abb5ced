"""Losses that nothing explains: where the cache broke, what stood before it, how often, and which known fault of the
client has that form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cachecost.account.causes import stood_before
from cachecost.analysis.bill.rewrites import TOLERANCE, Rewrite
from cachecost.base.formatting import count_text, duration
from cachecost.conversations.input_files import BilledCall, PrefixKind, SessionFile
from cachecost.providers.clients.settings import ClientFault, find_fault

Place = Literal["start", "static_prefix", "messages_start", "messages", "unknown"]
FEW = 0.1
"""Share of the healthy calls after which something may stand that is said to stand before losses."""
NO_PERSON = frozenset({"skill", "woken", "hook", "task", "command"})
"""Events that come with a message which no person wrote, or that say more than that one did."""
NAMED = 2
"""How much of what stood before a loss is put into words; what says most comes first."""


@dataclass(frozen=True, slots=True)
class LossPlace:
    """Where the cache broke: at the start, within tools and system prompt (static prefix), at the first message, or
    within the messages. `call` is the earlier call, `calls_back` before, that had cached as much as was read."""

    place: Place
    tokens: int
    call: int | None = None
    calls_back: int = 0

    def words(self, rewrite: Rewrite) -> str:
        idle, read = rewrite.idle_s, self.tokens
        after = f"{duration(idle)} after caching" if idle is not None else "after caching"
        lost = {
            "start": "nothing was found: tools, system prompt and messages were written again",
            "static_prefix": f"only the first {read:,} were found, a part of tools and system prompt",
            "messages_start": f"only the first {read:,} (tools and system prompt) were found: "
            "all messages were written again",
            "messages": f"only the first {read:,} were found: later messages were written again",
            "unknown": f"only the first {read:,} were found",
        }[self.place]
        if self.call is not None:
            calls = count_text(self.calls_back, "call")
            lost = f"only the first {read:,} were found: what call {self.call} had cached, {calls} before"
        return f"{after} {rewrite.state.tokens:,} tokens {lost}"


@dataclass(frozen=True, slots=True)
class UnexplainedLoss:
    """What a session shows of a loss that nothing explains; `before` are the events that stood before it."""

    place: LossPlace
    before: tuple[str, ...]
    fault: ClientFault | None
    words: str


@dataclass(slots=True)
class LossPlaces:
    """The losses of an account that nothing explains, which are compared with each other and with its healthy calls."""

    _losses: list[tuple[str, SessionFile, Rewrite]] = field(default_factory=list)
    _lengths: dict[PrefixKind, set[int]] = field(default_factory=dict)
    _healthy: Counter[str] = field(default_factory=Counter)
    _healthy_calls: int = 0

    def add_file(self, file: SessionFile, healthy: Iterable[BilledCall]) -> None:
        """Note what first calls read, and what stands before the calls that lost nothing."""
        for call in file.calls:
            if not call.before and call.read and not call.is_summed:
                self._lengths.setdefault(file.prefix_kind(call), set()).add(call.read)
        for call in healthy:
            if call.before:
                self._healthy_calls += 1
                self._healthy.update(events_before(call) if call.events else ())

    def add(self, session: str, file: SessionFile, rewrite: Rewrite) -> None:
        self._losses.append((session, file, rewrite))

    def describe(self) -> Iterator[UnexplainedLoss]:
        """The losses in the order in which they were added."""
        reads = Counter((session, one.call.read) for session, _, one in self._losses)
        everywhere = Counter(one.call.read for *_, one in self._losses)
        places = [self.find_place(file, one, reads[session, one.call.read]) for session, file, one in self._losses]
        usual = self.find_usual(places)
        for (session, file, one), place in zip(self._losses, places, strict=True):
            before = tuple(events_before(one.call))
            fault = find_known_fault(file, one.call, place.place)
            times, total = reads[session, one.call.read], everywhere[one.call.read]
            counts = usual.get(place.place, {})
            named = [f"{stood_before()[event]}{counts.get(event, '')}" for event in before[:NAMED]]
            parts = [", ".join((place.words(one), *named))]
            if place.tokens and total > 1:
                often = [f"{times} calls of this session"] if times > 1 else []
                often += [f"{total} calls of all sessions"] if total > times else []
                parts.append(f"{', '.join(often)} fell to this length")
            yield UnexplainedLoss(place, before, fault, "; ".join(parts))

    def find_place(self, file: SessionFile, rewrite: Rewrite, times: int) -> LossPlace:
        """Where the cache broke; so many losses of the session fell to the same length."""
        read = rewrite.call.read
        if not read:
            return LossPlace("start", 0)
        for back, call in enumerate(file.earlier_calls(rewrite.call), 1):
            if abs(call.cached - read) <= TOLERANCE and not call.is_summed:
                return LossPlace("messages", read, call.number, back)
        if rewrite.is_at_static:
            return LossPlace("messages_start", read)
        if rewrite.is_static:
            return LossPlace("static_prefix", read)
        is_known = times > 1 or read in self._lengths.get(file.prefix_kind(rewrite.call), ())
        if not rewrite.keeps_static and is_known:
            return LossPlace("messages_start", read)
        return LossPlace("messages" if rewrite.keeps_static else "unknown", read)

    def find_usual(self, places: Sequence[LossPlace]) -> dict[Place, dict[str, str]]:
        """What stands before most losses of a place and before few healthy calls, with both counts in words."""
        found: dict[Place, dict[str, str]] = {}
        for place in {one.place for one in places}:
            losses = [one for (*_, one), at in zip(self._losses, places, strict=True) if at.place == place]
            for event, times in Counter(name for one in losses for name in events_before(one.call)).items():
                healthy, total = self._healthy[event], self._healthy_calls
                if times > 1 and 2 * times > len(losses) and total and healthy <= FEW * total:
                    counts = f"{times} of {len(losses)} such losses, {healthy} of {count_text(total, 'healthy call')}"
                    found.setdefault(place, {})[event] = f" ({counts})"
        return found


def find_known_fault(file: SessionFile, call: BilledCall, place: str) -> ClientFault | None:
    """The client's known fault with the form of a loss, by its place or its cause; None for what a person switched."""
    if "thinking" in call.events:
        return None
    return find_fault(file.client, call.version, call.model, place, events_before(call))


def events_before(call: BilledCall) -> list[str]:
    """The events before a call that are said of a loss, in the order of the table."""
    is_written = not NO_PERSON.isdisjoint(call.events)
    return [event for event in stood_before() if event in call.events and not (event == "human" and is_written)]
