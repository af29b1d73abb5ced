"""Calls at other times: pings and warm-ups for the cache alone, calls that wait, fail or go to another model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from heapq import heappop, heappush
from itertools import chain, islice
from math import fsum
from typing import Any, ClassVar, Literal

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import NOTHING, Layer, Message, Thread, estimate_tokens, given_block
from cachecost.prompts.request import TTL, Breakpoint, Request, last_breakpoint_place
from cachecost.providers.usage import USUAL_TTL_S
from cachecost.strategies.changes.base import STEP_S, AgentChange, EvenSampler, params_for_model, tokens_of
from cachecost.strategies.placements import (
    MAXIMUM_BREAKPOINTS,
    LastTool,
    Placement,
    SegmentEnd,
    SystemBlock,
    ThreadIndex,
    View,
    add_tokens,
    markable_blocks,
    prompt_order,
)

NEVER = float("-inf")
Timed = tuple[float, Call]
"""A call, and the start that the plan had reached when it was found."""


def needs_output(params: Mapping[str, Any]) -> bool:
    """Whether the API rejects `max_tokens: 0` with these parameters (documentation of pre-warming)."""
    config = params.get("output_config") or {}
    return (
        _type(params, "thinking") == "enabled"
        or _type(params, "tool_choice") in ("any", "tool")
        or bool(config.get("format") or params.get("output_format"))
    )


def _type(params: Mapping[str, Any], name: str) -> object:
    return (params.get(name) or {}).get("type")


def cache_only_call(call: Call, request: Request, start: float, purpose: str, max_tokens: int = 0) -> Call:
    """`request` sent for the cache alone, in addition to `call`, with an output of `max_tokens` tokens (0 or 1).

    Where 0 is refused it is 1. Manual thinking wants more than its budget: the request says so, and is assumed to be
    broken off at its first token. Neither changes the prompt. Streaming, which 0 cannot go with, is left out.
    """
    params = {name: value for name, value in request.params.items() if name != "stream"}
    output = max(max_tokens, int(needs_output(params)))
    budget = (params.get("thinking") or {}).get("budget_tokens", 0)
    sent = replace(request, params={**params, "max_tokens": output + budget})
    return Call(
        sent,
        start,
        host=call.host,
        workspace=call.workspace,
        output_tokens=output,
        purpose=purpose,
        turn=call.turn,
        is_simulated=True,
    )


def filler_thread(after: Thread | None = None) -> Thread:
    """The least message, of one token, for a call that is about what stands before it: the API wants a user's."""
    return (after or Thread()).then(Message.of("user", (given_block("text", "user", "filler", 1),)))


class MainThread:
    """Which calls of a plan are the main thread's: those that grow out of its first one, forks included.

    A thread that shares no message with any other is the main one, begun anew, if it has its head; else a sub-agent's.
    """

    def __init__(self) -> None:
        self._is_main: dict[Thread, bool] = {}
        self._head: tuple[bytes, bytes] | None = None

    def includes(self, call: Call) -> bool:
        """Whether `call` is one, asked of each call in turn."""
        if call.purpose != "main":
            return False
        request = call.request
        head = (request.tools.digest, request.system.digest)
        known = next((self._is_main[node] for node in request.thread.back() if node in self._is_main), None)
        is_main = self._head in (None, head) if known is None else known
        self._is_main[request.thread] = is_main
        if is_main:
            self._head = head
        return is_main


class Delays:
    """When calls start whose thread had to wait: `STEP_S` after the late call that they go on from, at the earliest."""

    def __init__(self) -> None:
        self._free: dict[Thread, float] = {}

    def start(self, call: Call) -> float:
        """The earliest start of `call`, in seconds."""
        before = call.request.thread.parent
        nodes = before.back() if before else ()
        return max(call.start, next((self._free[node] for node in nodes if node in self._free), NEVER))

    def delay(self, call: Call, start: float) -> Call:
        """The call as it starts at `start`, or later where its thread waits. Each call is put, late or not."""
        late = replace(call, start=max(start, self.start(call)))
        free = late.start + STEP_S if late.start > call.start else NEVER
        thread = call.request.thread
        self._free[thread] = max(free, self._free.get(thread, NEVER))
        return late


def sort_calls(calls: Iterable[Timed], early_s: float = 0.0) -> Iterator[Call]:
    """Calls by their start, of which some come late, and some up to `early_s` before what the plan had reached."""
    waiting: list[tuple[float, int, Call]] = []
    for number, (now, call) in enumerate(calls):
        while waiting and waiting[0][0] < now - early_s:
            yield heappop(waiting)[2]
        heappush(waiting, (call.start, number, call))
    while waiting:
        yield heappop(waiting)[2]


@dataclass(frozen=True, slots=True)
class KeepAlive(AgentChange):
    """A ping every `every_s` seconds after the start of the last main call, until the next one, at most `times`.

    `until_s` ends the pings of a pause earlier. A ping is the last main request again, as far as the message of its
    last breakpoint (of an assistant's message, one further), or the `whole` one; unmarked requests get none. It
    asks for `max_tokens` 0, which is pre-warming, or 1, as aider does; where the API refuses 0 (manual thinking,
    structured output, a forced tool choice) it asks for 1. No agent knows which call is the last: the pings go on
    after it, unless it `stops_at_end`. Source: aider's --cache-keepalive-pings (295 s after each request, up to the
    last breakpoint, 1 token). 11 pings is what an agent may assume to be worth it: 12 reads at 0.1 cost more than a
    write at 1.25 does above a read. Sub-agents with a head of their own are not kept alive, nor are batches.
    """

    every_s: float = 295.0
    times: int = 11
    until_s: float | None = None
    whole: bool = False
    max_tokens: Literal[0, 1] = 0
    stops_at_end: bool = False
    above_zero: ClassVar[tuple[str, ...]] = ("every_s",)

    def plan_calls(self, calls: Iterator[Call]) -> Iterator[Call]:
        main, pings = MainThread(), _PingPlanner(self)
        for call in calls:
            yield from pings.before(call.start)
            yield call
            if main.includes(call):
                pings.follow(call)
        if not self.stops_at_end:
            yield from pings.before(float("inf"))


class _PingPlanner:
    """The pings after the last main call: those that were sent, and those still to come."""

    def __init__(self, options: KeepAlive) -> None:
        self._options = options
        self._filler: Thread | None = None
        self._last: Call | None = None
        self._request: Request | None = None
        self._sent = 0

    def follow(self, call: Call) -> None:
        is_cached = (call.request.breakpoints or call.request.automatic) and not call.is_batch
        self._last, self._request, self._sent = call if is_cached else None, None, 0

    def before(self, at: float) -> Iterator[Call]:
        """The pings due before `at`, seconds since the epoch."""
        options = self._options
        while self._last is not None and self._sent < options.times:
            wait = (self._sent + 1) * options.every_s
            if self._last.start + wait >= at or (options.until_s is not None and wait > options.until_s):
                return
            self._sent += 1
            if self._request is None:
                self._request = request = self._last.request
                if not (request.automatic or options.whole):
                    # up to the last breakpoint, ended as the API accepts it: by a message of the user's
                    marked, self._filler = request.breakpoints[-1].node, self._filler or filler_thread()
                    thread = self._filler
                    if marked is not None and marked.message is not None:
                        thread = request.thread.up_to(marked.length + (marked.message.role == "assistant"))
                    self._request = replace(request, thread=thread)
            yield cache_only_call(self._last, self._request, self._last.start + wait, "ping", options.max_tokens)


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
    above_zero: ClassVar[tuple[str, ...]] = ("before_s", "typing_s")

    @property
    def lead_s(self) -> float:
        return self.before_s

    def plan_calls(self, calls: Iterator[Call]) -> Iterator[Call]:
        def with_warm_ups() -> Iterator[Timed]:
            main, last = MainThread(), None
            for call in calls:
                if main.includes(call) and not call.is_batch:
                    if request := self._warm_up(call, last):
                        before = self.before_s if last is None else self.typing_s
                        yield call.start, cache_only_call(last or call, request, call.start - before, "warm")
                    last = call
                yield call.start, call

        return sort_calls(with_warm_ups(), max(self.before_s, self.typing_s))

    def _warm_up(self, call: Call, last: Call | None) -> Request | None:
        """What is sent before `call`, if it is time to; `last` is the main call before it. In a turn nobody types."""
        request = (last or call).request
        if not request.breakpoints and not request.automatic:
            return None
        if last is None:
            return request if self.first_message else _upto(request, None)
        pause = call.start - self.typing_s - last.start
        is_due = self.after_pause_s is not None and call.turn > last.turn and pause > max(self.after_pause_s, 0)
        return request if is_due else None


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
    above_zero: ClassVar[tuple[str, ...]] = ("first_token_s",)

    def plan_calls(self, calls: Iterator[Call]) -> Iterator[Call]:
        def staggered() -> Iterator[Timed]:
            delays = Delays()
            group: list[Call] = []
            for call in chain(calls, [None]):
                if group and (call is None or call.start - group[0].start > self.together_s):
                    for family in _families(group):
                        yield from ((group[0].start, one) for one in self._one_first(family, delays))
                    group = []
                group += [call] if call else []

        return sort_calls(staggered())

    def _one_first(self, family: list[Call], delays: Delays) -> Iterator[Call]:
        shared = None
        if len(family) > 1:  # what all send, with a breakpoint at its end
            common = reduce(Thread.common, (call.request.thread for call in family))
            shared = _upto(family[0].request, common if common.message is not None else None)
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


def _families(group: list[Call]) -> list[list[Call]]:
    """The calls of each head and model. What goes on from another's answer waits for it anyway: a family of its own,
    as is what nobody can hold back (a batch), and that for which nothing is written.
    """
    families: list[tuple[object, list[Call]]] = []
    for call in group:
        request = call.request
        is_alone = call.is_batch or not (request.breakpoints or request.automatic)
        head = (request.model, request.tools.digest, request.system.digest, call.host, call.workspace)
        for known, family in families:
            if not is_alone and known == head and not any(_answers(one.request, request) for one in family):
                family.append(call)
                break
        else:
            families.append((None if is_alone else head, [call]))
    return [family for _, family in families]


def _answers(before: Request, after: Request) -> bool:
    """Whether `after` holds the answer to `before`."""
    node = after.thread.up_to(before.thread.length + 1)
    return node.parent is before.thread and node.message is not None and node.message.role == "assistant"


def _upto(request: Request, end: Thread | None) -> Request | None:
    """The request up to `end`, or its head, with a breakpoint at the end; None where there is nothing to breakpoint."""
    head = SegmentEnd("head").positions(View(request.thread, request.tools, request.system))
    position = next(chain(markable_blocks(end) if end else (), head), None)
    if position is None:
        return None
    length = end.length if end else 0
    breakpoints = [one for one in request.breakpoints if (one.node.length if one.node else 0) <= length]
    layer, node, index = position
    ttl = request.automatic or request.breakpoints[-1].ttl
    last = Breakpoint(layer, index, breakpoints[-1].ttl if breakpoints else ttl, node)
    if last.block_key not in [breakpoint.block_key for breakpoint in breakpoints]:
        breakpoints = [*breakpoints[: MAXIMUM_BREAKPOINTS - 1], last]
    is_ended = end is not None and end.message is not None and end.message.role == "user"
    thread = end if end is not None and is_ended else filler_thread(end)
    return replace(request, thread=thread, breakpoints=tuple(breakpoints), automatic=None)


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

    def plan_calls(self, calls: Iterator[Call]) -> Iterator[Call]:
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

    call: Call
    kind: Kind
    tokens: int
    lives_hour: bool
    pings: int = 0
    is_over: bool = False


class _PauseLearner:
    def __init__(self, options: Adapt) -> None:
        self._options = options
        self._trail = ThreadIndex()
        self._pauses: dict[Kind, _PauseHistory] = {}
        self._ends: dict[Thread, _LastCall] = {}
        self._latest: _LastCall | None = None
        self._head = Placement((LastTool(), SystemBlock("last")))

    def learn(self, call: Call) -> None:
        """Note how long the call that this one goes on from was left alone."""
        before = self._before(call)
        if before is not None and not before.is_over:
            before.is_over = True
            self._history(before.kind).followed.append(call.start - before.call.start)

    def _before(self, call: Call) -> _LastCall | None:
        return next((self._ends[node] for node in call.request.thread.back() if node in self._ends), None)

    def _history(self, kind: Kind) -> _PauseHistory:
        return self._pauses.setdefault(kind, _PauseHistory())

    def with_breakpoints(self, call: Call) -> Call:
        """The call with the breakpoints that the past speaks for.

        They are at the head, the end of what the last call sent, and the end; an hour wherever the loss that it
        prevents at the end is worth more than what it costs.
        """
        options, request, thread = self._options, call.request, call.request.thread
        kind = call.purpose, "human" if thread.message is not None and thread.message.is_human else "tool"
        before, known = self._before(call), self._history(kind)
        tokens = tokens_of((request.tools, request.system)) + self._trail.fold("adapt", thread, 0, add_tokens)
        new = max(1, tokens - before.tokens) if before is not None else tokens
        is_long = known.savings(options) * tokens > (options.write_1h - options.write_5m) * new
        ttl: TTL = "1h" if is_long else "5m"
        is_kept = known.calls < options.seen or len(known.followed) >= options.reread * (known.calls - 1)
        known.calls += 1
        last = self._ends[thread] = _LastCall(call, kind, tokens, is_long and is_kept)
        view = View(thread, request.tools, request.system, self._trail)
        found = {one.block_key: one for one in replace(self._head, ttl=ttl).place(view).breakpoints}
        sent = (node for node in thread.back() if node in self._ends and node is not thread)
        ends = [replace(request, thread=node) for node in islice(sent, 1)]
        for each in [*ends, *([request] if is_kept else [])]:
            if breakpoint := last_breakpoint_place(each, ttl):
                found[breakpoint.block_key] = breakpoint
        placed = replace(request, breakpoints=tuple(sorted(found.values(), key=prompt_order)), automatic=None)
        made = replace(call, request=placed)
        self._latest = replace(last, call=made) if call.purpose == "main" else self._latest
        return made

    def pings_before(self, at: float) -> Iterator[Call]:
        last, options = self._latest, self._options
        while last is not None and last.lives_hour and last.pings < options.times:
            # the next hour must be likely enough to end the pause: a ping costs a read, a lapse a write
            begun = (last.pings + 1) * USUAL_TTL_S["1h"]
            still = [pause for pause in self._history(last.kind).followed if pause >= begun]
            soon = sum(pause < begun + USUAL_TTL_S["1h"] for pause in still)
            due = last.call.start + (last.pings + 1) * options.ping_s
            is_worth_it = bool(still) and soon / len(still) * (options.write_5m - options.read) > options.read
            if not is_worth_it or due >= at:
                return
            last.pings += 1
            yield cache_only_call(last.call, last.call.request, due, "ping")


@dataclass(frozen=True, slots=True)
class RouteAsides(AgentChange):
    """Side calls go to `model`, which has a cache of its own; left out, they stay where they are.

    Main calls whose answer is at most `short_tokens` long go there, too: an upper bound of what a router can do, which
    must guess. `thinking` "off" turns it off where it was asked for; effort and speed do not go along to another
    model. `tools: none` sends no tools. Questions of tools are not routed: they have options of their own (`inquiry`).
    """

    model: str | None = None
    thinking: Literal["same", "off"] = "off"
    tools: Literal["same", "none"] = "same"
    short_tokens: int = 0

    def plan_calls(self, calls: Iterator[Call]) -> Iterator[Call]:
        for call in calls:
            is_routed = call.purpose == "aside"
            if call.purpose == "main" and self.short_tokens:
                tokens = call.output_tokens
                length = sum(map(estimate_tokens, call.output)) if tokens is None else tokens
                is_routed = length <= self.short_tokens
            yield replace(call, request=self._route(call.request)) if is_routed else call

    def _route(self, request: Request) -> Request:
        params = (
            params_for_model(request.params, self.model, keeps_thinking=True) if self.model else dict(request.params)
        )
        if self.thinking == "off" and "thinking" in params:
            params["thinking"] = {"type": "disabled"}
        routed = replace(request, model=self.model or request.model, params=params)
        if self.tools == "same":
            return routed
        breakpoints = tuple(breakpoint for breakpoint in request.breakpoints if breakpoint.layer is not Layer.TOOLS)
        params.pop("tool_choice", None)
        return replace(routed, tools=NOTHING, breakpoints=breakpoints)


@dataclass(frozen=True, slots=True)
class CallRetries(AgentChange):
    """A share `rate` of all calls fails once and is sent again `wait_s` seconds later.

    `refused` (429, 500, 529) is not billed and touches no cache, so it is no call in the report: it only costs time.
    `timeout` comes after the first token: the lost attempt is billed in full, with `output_tokens` of answer, and what
    it wrote can be read by the next one. Calls that go on from a late one start 2 s after it where they would start
    before. Anthropic's SDK (_constants.py) waits 0.5 s to 8 s, and times out
    after 600 s unless told otherwise: `wait_s` is then 600.
    """

    rate: float = 0.02
    fails: Literal["refused", "timeout"] = "refused"
    wait_s: float = 1.0
    output_tokens: int = 0

    def plan_calls(self, calls: Iterator[Call]) -> Iterator[Call]:
        def with_retries() -> Iterator[Timed]:
            fails, delays = EvenSampler(self.rate), Delays()
            for call in calls:
                start, is_lost = delays.start(call), fails()
                if is_lost and self.fails == "timeout":
                    lost = replace(call, start=start, output=(), output_tokens=self.output_tokens, purpose="failed")
                    yield call.start, lost
                yield call.start, delays.delay(call, start + self.wait_s if is_lost else start)

        return sort_calls(with_retries())
