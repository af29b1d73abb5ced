"""Pings while nothing else is sent: a read refreshes an entry before it expires.

Calls that are sent only for the cache; which calls belong to the main thread; sorting calls by their start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any, Literal

from cachecost.conversations.calls import PlannedCall
from cachecost.prompts.blocks import Message, Thread, given_block
from cachecost.prompts.request import Request
from cachecost.strategies.agent import STEP_S
from cachecost.strategies.changes.base import AgentChange

NEVER = float("-inf")
Timed = tuple[float, PlannedCall]
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


def cache_only_call(
    call: PlannedCall, request: Request, start: float, purpose: str, max_tokens: int = 0
) -> PlannedCall:
    """`request` sent for the cache alone, in addition to `call`, with an output of `max_tokens` tokens (0 or 1).

    Where 0 is refused it is 1. Manual thinking wants more than its budget: the request says so, and is assumed to be
    broken off at its first token. Neither changes the prompt. Streaming, which 0 cannot go with, is left out.
    """
    params = {name: value for name, value in request.params.items() if name != "stream"}
    output = max(max_tokens, int(needs_output(params)))
    budget = (params.get("thinking") or {}).get("budget_tokens", 0)
    sent = replace(request, params={**params, "max_tokens": output + budget})
    return PlannedCall(
        sent, start, output_tokens=output, purpose=purpose, turn=call.turn, host=call.host, workspace=call.workspace
    )


def filler_thread() -> Thread:
    """The least message, of one token, for a call that is about the head alone: the API wants a message."""
    return Thread().then(Message.of("user", (given_block("text", "user", "filler", 1),)))


class MainThread:
    """Which calls of a plan are the main thread's: those that grow out of its first one, forks included.

    A thread that shares no message with any other is the main one, begun anew, if it has its head; else a sub-agent's.
    """

    def __init__(self) -> None:
        self._is_main: dict[Thread, bool] = {}
        self._head: tuple[bytes, bytes] | None = None

    def includes(self, call: PlannedCall) -> bool:
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

    def start(self, call: PlannedCall) -> float:
        """The earliest start of `call`, in seconds."""
        before = call.request.thread.parent
        nodes = before.back() if before else ()
        return max(call.start, next((self._free[node] for node in nodes if node in self._free), NEVER))

    def delay(self, call: PlannedCall, start: float) -> PlannedCall:
        """The call as it starts at `start`, or later where its thread waits. Each call is put, late or not."""
        late = replace(call, start=max(start, self.start(call)))
        free = late.start + STEP_S if late.start > call.start else NEVER
        thread = call.request.thread
        self._free[thread] = max(free, self._free.get(thread, NEVER))
        return late


def sort_calls(calls: Iterable[Timed], early_s: float = 0.0) -> Iterator[PlannedCall]:
    """Calls by their start, of which some come late, and some up to `early_s` before what the plan had reached."""
    waiting: list[tuple[float, int, PlannedCall]] = []
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

    def __post_init__(self) -> None:
        AgentChange.__post_init__(self)
        if self.every_s <= 0:
            raise ValueError(f"every_s={self.every_s}: expected more than 0 seconds")

    def plan_calls(self, calls: Iterator[PlannedCall]) -> Iterator[PlannedCall]:
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
        self._last: PlannedCall | None = None
        self._request: Request | None = None
        self._sent = 0

    def follow(self, call: PlannedCall) -> None:
        is_cached = (call.request.breakpoints or call.request.automatic) and not call.is_batch
        self._last, self._request, self._sent = call if is_cached else None, None, 0

    def before(self, at: float) -> Iterator[PlannedCall]:
        """The pings due before `at`, seconds since the epoch."""
        options = self._options
        while self._last is not None and self._sent < options.times:
            wait = (self._sent + 1) * options.every_s
            if self._last.start + wait >= at or (options.until_s is not None and wait > options.until_s):
                return
            self._sent += 1
            self._request = self._request or self._ping_request(self._last.request)
            yield cache_only_call(self._last, self._request, self._last.start + wait, "ping", options.max_tokens)

    def _ping_request(self, request: Request) -> Request:
        return request if self._options.whole else self._marked_part(request)

    def _marked_part(self, request: Request) -> Request:
        """The request up to its last breakpoint, ended as the API accepts it: by a message of the user's."""
        if request.automatic:
            return request
        marked = request.breakpoints[-1].node
        if marked is None or marked.message is None:
            self._filler = self._filler or filler_thread()
            return replace(request, thread=self._filler)
        length = marked.length + (marked.message.role == "assistant")
        return replace(request, thread=request.thread.up_to(length))


CHANGES: dict[str, type[AgentChange]] = {"keep_alive": KeepAlive}
