"""Pings while nothing else is sent: a read refreshes an entry before it expires."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from cachecost.conversations.calls import PlannedCall
from cachecost.prompts.blocks import Thread
from cachecost.prompts.request import Request
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.cache_only_calls import MainThread, cache_only_call, filler_thread


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
