"""Entries written before they are needed: ahead of the first call, while a person types, ahead of parallel calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal

from cachecost.conversations.calls import PlannedCall
from cachecost.prompts.blocks import Thread
from cachecost.prompts.request import Breakpoint, Request
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.keepalive import Delays, MainThread, Timed, cache_only_call, filler_thread, sort_calls
from cachecost.strategies.placements import MAXIMUM_BREAKPOINTS, SegmentEnd, Spot, View, markable_blocks

Shared = tuple[str, bytes, bytes, str | None, str]


@dataclass(frozen=True, slots=True)
class PreWarm(AgentChange):
    """A call without output (`max_tokens: 0`) `before_s` seconds before the first call, so that this one reads.

    It sends the head: tools, system, and a message of one token, because the API wants one; its breakpoints are
    those of the first call there, or one at the head's end. With `first_message` it sends all that the first call
    will. With `after_pause_s`, also when a person begins to type, `typing_s` before the call that answers, and the
    last main call started longer ago than that: then it sends that last request again. Where the API refuses 0 it
    asks for 1. Assumed: it is answered before the call that it is for. Source: Anthropic's documentation of
    pre-warming.
    """

    before_s: float = 5.0
    first_message: bool = False
    after_pause_s: float | None = None
    typing_s: float = 15.0

    def __post_init__(self) -> None:
        AgentChange.__post_init__(self)
        for name in ("before_s", "typing_s"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}={getattr(self, name)}: expected more than 0 seconds")

    @property
    def lead_s(self) -> float:
        """How many seconds before its first event a conversation may have a call."""
        return self.before_s

    def plan_calls(self, calls: Iterator[PlannedCall]) -> Iterator[PlannedCall]:
        return sort_calls(self._with_warm_ups(calls), max(self.before_s, self.typing_s))

    def _with_warm_ups(self, calls: Iterator[PlannedCall]) -> Iterator[Timed]:
        main, last = MainThread(), None
        for call in calls:
            if main.includes(call) and not call.is_batch:
                request = self._first(call.request) if last is None else self._again(last, call)
                if request is not None:
                    before = self.before_s if last is None else self.typing_s
                    yield call.start, cache_only_call(last or call, request, call.start - before, "warm")
                last = call
            yield call.start, call

    def _first(self, request: Request) -> Request | None:
        if not request.breakpoints and not request.automatic:
            return None
        return request if self.first_message else _upto(request, None)

    def _again(self, last: PlannedCall, call: PlannedCall) -> Request | None:
        """The last request, if this is the time; within a turn nobody types."""
        pause, request = call.start - self.typing_s - last.start, last.request
        is_due = self.after_pause_s is not None and call.turn > last.turn and pause > max(self.after_pause_s, 0)
        return request if is_due and (request.breakpoints or request.automatic) else None


@dataclass(frozen=True, slots=True)
class WarmBeforeFanOut(AgentChange):
    """Calls that start within `together_s` seconds and share a model and a head: one is sent, the others wait for
    it.

    They wait until its first token, when its entry can be read: `first_token_s` seconds where that is not known.
    With `by: warm_up` all wait for a call without output (`max_tokens: 0`, or 1 where that is refused) that sends
    what they share and breakpoints its end. Calls that go on from one that waited start 2 s after it where they
    would start before. Source: accrue#116, fak#3610 (workers that all write the same prefix).
    """

    together_s: float = 0.5
    by: Literal["first_call", "warm_up"] = "first_call"
    first_token_s: float = 2.0

    def __post_init__(self) -> None:
        AgentChange.__post_init__(self)
        if self.first_token_s <= 0:
            raise ValueError(f"first_token_s={self.first_token_s}: expected more than 0 seconds")

    def plan_calls(self, calls: Iterator[PlannedCall]) -> Iterator[PlannedCall]:
        return sort_calls(self._stagger(calls))

    def _stagger(self, calls: Iterator[PlannedCall]) -> Iterator[Timed]:
        delays = Delays()
        for group in self._together(calls):
            now, families = group[0].start, _families(group)
            for family in families:
                yield from ((now, call) for call in self._one_first(family, delays))

    def _together(self, calls: Iterator[PlannedCall]) -> Iterator[list[PlannedCall]]:
        group: list[PlannedCall] = []
        for call in calls:
            if group and call.start - group[0].start > self.together_s:
                yield group
                group = []
            group.append(call)
        if group:
            yield group

    def _one_first(self, family: list[PlannedCall], delays: Delays) -> Iterator[PlannedCall]:
        shared = _shared_by(family) if len(family) > 1 else None
        if shared is None:
            yield from (delays.delay(call, call.start) for call in family)
        elif self.by == "warm_up":
            start = delays.start(family[0])
            yield cache_only_call(family[0], shared, start, "warm")
            yield from (delays.delay(call, start + self.first_token_s) for call in family)
        else:
            first = delays.delay(family[0], family[0].start)
            yield first
            ready = first.start + (first.first_token_s or self.first_token_s)
            yield from (delays.delay(call, ready) for call in family[1:])


def _families(group: list[PlannedCall]) -> list[list[PlannedCall]]:
    """The calls of each head and model. What goes on from another's answer waits for it anyway: a family of its own."""
    families: list[tuple[Shared | None, list[PlannedCall]]] = []
    for call in group:
        kin = _kin(call)
        alike = (family for key, family in families if kin and key == kin)
        found = next(
            (
                family
                for family in alike
                if not any(_answers(other.request.thread, call.request.thread) for other in family)
            ),
            None,
        )
        if found is None:
            families.append((kin, [call]))
        else:
            found.append(call)
    return [family for _, family in families]


def _kin(call: PlannedCall) -> Shared | None:
    """What calls must have in common; None for those that nobody can hold back or that nothing is written for."""
    request = call.request
    if call.is_batch or not (request.breakpoints or request.automatic):
        return None
    return request.model, request.tools.digest, request.system.digest, call.host, call.workspace


def _answers(before: Thread, after: Thread) -> bool:
    """Whether `after` holds the answer to `before`."""
    node = after
    while node.length > before.length + 1 and node.parent is not None:
        node = node.parent
    return node.parent is before and node.message is not None and node.message.role == "assistant"


def _shared_by(family: list[PlannedCall]) -> Request | None:
    """What all send, with a breakpoint at its end; None where that is nothing."""
    first = family[0].request
    shared: Thread | None = first.thread
    for call in family[1:]:
        shared = _common(shared, call.request.thread)
    return _upto(first, shared)


def _common(one: Thread | None, other: Thread | None) -> Thread | None:
    """The last message that two threads share; None where they share none."""
    while one is not other and one is not None and other is not None:
        one, other = (one.parent, other) if one.length >= other.length else (one, other.parent)
    return one if one is not None and one is other and one.message is not None else None


def _upto(request: Request, end: Thread | None) -> Request | None:
    """The request up to `end`, or its head, with a breakpoint at the end; None where there is nothing to breakpoint."""
    spot = next(islice(_ends(request, end), 1), None)
    if spot is None:
        return None
    length = end.length if end else 0
    breakpoints = [
        breakpoint for breakpoint in request.breakpoints if (breakpoint.node.length if breakpoint.node else 0) <= length
    ]
    layer, node, index = spot
    ttl = request.automatic or request.breakpoints[-1].ttl
    last = Breakpoint(layer, index, breakpoints[-1].ttl if breakpoints else ttl, node)
    if last.block_key not in [breakpoint.block_key for breakpoint in breakpoints]:
        breakpoints = [*breakpoints[: MAXIMUM_BREAKPOINTS - 1], last]
    return replace(request, thread=end or filler_thread(), breakpoints=tuple(breakpoints), automatic=None)


def _ends(request: Request, end: Thread | None) -> Iterator[Spot]:
    if end is not None:
        yield from markable_blocks(end)
    yield from SegmentEnd("head").spots(View(request.thread, request.tools, request.system))


CHANGES: dict[str, type[AgentChange]] = {"pre_warm": PreWarm, "warm_before_fan_out": WarmBeforeFanOut}
