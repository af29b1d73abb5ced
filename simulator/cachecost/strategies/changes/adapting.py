"""Breakpoints and TTLs chosen from the past: pauses, growth, and how much of what was written was read again.

What the optimum teaches. An hour's breakpoint on a short new end keeps the whole prompt alive for an hour, because
what was read is not charged again: it pays as soon as a pause between 5 minutes and an hour is only a little
likely. And a block that nothing goes on from is better not written at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import fsum

from cachecost.conversations.calls import PlannedCall
from cachecost.prompts.blocks import Thread, estimate_tokens
from cachecost.prompts.request import TTL, Breakpoint, Request, last_breakpoint_place
from cachecost.providers.usage import USUAL_TTL_S
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.keepalive import cache_only_call
from cachecost.strategies.placements import LastTool, Placement, SystemBlock, ThreadIndex, View

PRIOR, PRIOR_CALLS = 0.1, 2
"""Before anything was seen: as if of two calls 10 % had been followed by a pause that an hour bridges."""
Kind = tuple[str, str]
"""What kind of call it is: its purpose, and whether a person or a tool spoke last."""


@dataclass(frozen=True, slots=True)
class Adapt(AgentChange):
    """Breakpoints the head and the end of each request, for as long as the pauses seen so far say; looks at the
    past only.

    The end is marked for an hour where the expected loss of a pause of 5 to 60 minutes is more than what an hour
    costs above 5 minutes; not at all where of `seen` calls of its kind fewer than `reread` were gone on from. After
    a call whose breakpoint lives an hour, a ping is sent `ping_s` after it, and again, up to `times`, while pauses
    over an hour were so far mostly shorter than that. Prices are those an agent assumes: a write at 1.25 and 2.0
    times, a read at 0.1.
    """

    write_5m: float = 1.25
    write_1h: float = 2.0
    read: float = 0.1
    reread: float = 0.25
    seen: int = 4
    ping_s: float = 3540.0
    times: int = 8

    def plan_calls(self, calls: Iterator[PlannedCall]) -> Iterator[PlannedCall]:
        agent = _PauseLearner(self)
        for call in calls:
            yield from agent.pings_before(call.start)
            agent.learn(call)
            yield agent.with_breakpoints(call)
        yield from agent.pings_before(float("inf"))


@dataclass(slots=True)
class _PauseHistory:
    """Pauses after calls of a kind, in seconds, and how many of them anything went on from."""

    calls: int = 0
    followed: list[float] = field(default_factory=list)

    def savings(self, options: Adapt) -> float:
        """What an hour's life saves on average after such a call, in prices of a token of the prompt.

        A pause over 5 minutes would have the prompt written again; one over an hour takes a ping for each hour.
        """
        lost = options.write_5m - options.read
        saved = [
            lost - options.read * (pause // options.ping_s) for pause in self.followed if pause >= USUAL_TTL_S["5m"]
        ]
        known = fsum(max(0.0, each) for each in saved)
        return (known + PRIOR * PRIOR_CALLS * lost) / (len(self.followed) + PRIOR_CALLS)


@dataclass(slots=True)
class _LastCall:
    """The last call of a thread: how many tokens it had, and what breakpoints."""

    call: PlannedCall
    kind: Kind
    tokens: int
    lives_hour: bool
    pings: int = 0
    is_over: bool = False


class _PauseLearner:
    """What one plan has seen."""

    def __init__(self, options: Adapt) -> None:
        self._options = options
        self._trail = ThreadIndex()
        self._pauses: dict[Kind, _PauseHistory] = {}
        self._ends: dict[Thread, _LastCall] = {}
        self._latest: _LastCall | None = None
        self._head = Placement((LastTool(), SystemBlock("last")))

    def learn(self, call: PlannedCall) -> None:
        """Take down how long the call that this one goes on from was left alone."""
        before = self._before(call)
        if before is not None and not before.is_over:
            before.is_over = True
            self._of(before.kind).followed.append(call.start - before.call.start)

    def _before(self, call: PlannedCall) -> _LastCall | None:
        return next((self._ends[node] for node in call.request.thread.back() if node in self._ends), None)

    def _of(self, kind: Kind) -> _PauseHistory:
        return self._pauses.setdefault(kind, _PauseHistory())

    def with_breakpoints(self, call: PlannedCall) -> PlannedCall:
        """The call with the breakpoints that the past speaks for."""
        kind = _kind(call)
        before, tokens = self._before(call), self._tokens(call.request)
        new = max(1, tokens - before.tokens) if before is not None else tokens
        ttl = self._ttl(kind, tokens, new)
        known = self._of(kind)
        is_kept = known.calls < self._options.seen or len(known.followed) >= self._options.reread * (known.calls - 1)
        self._of(kind).calls += 1
        last = _LastCall(call, kind, tokens, ttl == "1h" and is_kept)
        self._ends[call.request.thread] = last
        made = replace(call, request=self._place_breakpoints(call.request, ttl, is_kept))
        self._latest = replace(last, call=made) if call.purpose == "main" else self._latest
        return made

    def _ttl(self, kind: Kind, tokens: int, new: int) -> TTL:
        """An hour where the loss that it prevents is worth more than what it costs."""
        options = self._options
        saved = self._of(kind).savings(options) * tokens
        return "1h" if saved > (options.write_1h - options.write_5m) * new else "5m"

    def _place_breakpoints(self, request: Request, ttl: TTL, is_kept: bool) -> Request:
        """The head, the end of what the last call sent, and the end; an hour wherever the end has it."""
        head = (
            replace(self._head, ttl=ttl)
            .place(View(request.thread, request.tools, request.system, self._trail))
            .breakpoints
        )
        found = {breakpoint.block_key: breakpoint for breakpoint in head}
        before = next(
            (node for node in request.thread.back() if node in self._ends and node is not request.thread), None
        )
        ends = [replace(request, thread=before)] if before is not None else []
        for each in [*ends, *([request] if is_kept else [])]:
            breakpoint = last_breakpoint_place(each, ttl)
            if breakpoint is not None:
                found[breakpoint.block_key] = breakpoint
        return replace(request, breakpoints=tuple(sorted(found.values(), key=_order)), automatic=None)

    def _tokens(self, request: Request) -> int:
        head = sum(estimate_tokens(block) for part in (request.tools, request.system) for block in part.blocks)
        return head + self._trail.fold("adapt", request.thread, 0, _add_tokens)

    def pings_before(self, at: float) -> Iterator[PlannedCall]:
        """The pings due before `at`."""
        last, options = self._latest, self._options
        while last is not None and last.lives_hour and last.pings < options.times and self._pays(last):
            due = last.call.start + (last.pings + 1) * options.ping_s
            if due >= at:
                return
            last.pings += 1
            yield cache_only_call(last.call, last.call.request, due, "ping")

    def _pays(self, last: _LastCall) -> bool:
        """Whether the next hour is likely enough to end the pause: a ping costs a read, a lapse a write."""
        known = self._of(last.kind).followed
        begun = (last.pings + 1) * USUAL_TTL_S["1h"]
        still = [pause for pause in known if pause >= begun]
        soon = sum(pause < begun + USUAL_TTL_S["1h"] for pause in still)
        return bool(still) and soon / len(still) * (self._options.write_5m - self._options.read) > self._options.read


def _kind(call: PlannedCall) -> Kind:
    message = call.request.thread.message
    return call.purpose, "human" if message is not None and message.is_human else "tool"


def _order(breakpoint: Breakpoint) -> tuple[int, int, int]:
    layers = ("tools", "system", "messages")
    return layers.index(breakpoint.layer), breakpoint.node.length if breakpoint.node else 0, breakpoint.index


def _add_tokens(tokens: int, node: Thread) -> int:
    assert node.message is not None
    return tokens + sum(map(estimate_tokens, node.message.blocks))


CHANGES: dict[str, type[AgentChange]] = {"adapt": Adapt}
