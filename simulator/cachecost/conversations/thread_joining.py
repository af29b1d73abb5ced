"""Rebuilds the calls of several files in one tree of threads, so that equal prefixes are shared."""

from __future__ import annotations

from cachecost.base.structs import replace
from cachecost.conversations.calls import RecordedCall
from cachecost.prompts.blocks import Part, Thread
from cachecost.prompts.request import Request


class ThreadJoiner:
    """Gives calls of several files one root. What they shared before they still share; equal parts are one object."""

    def __init__(self) -> None:
        self._parts: dict[Part, Part] = {}
        self._threads: dict[Thread, Thread] = {}
        self._root = Thread()

    def call(self, call: RecordedCall) -> RecordedCall:
        """The call with its thread and the places of its breakpoints in the common tree."""
        return replace(call, request=self._request(call.request))

    def _request(self, request: Request) -> Request:
        breakpoints = tuple(
            replace(breakpoint, node=breakpoint.node and self._thread(breakpoint.node))
            for breakpoint in request.breakpoints
        )
        return replace(
            request,
            thread=self._thread(request.thread),
            tools=self._parts.setdefault(request.tools, request.tools),
            system=self._parts.setdefault(request.system, request.system),
            breakpoints=breakpoints,
        )

    def _thread(self, thread: Thread) -> Thread:
        """The node of the common tree; costs work only for messages that are new."""
        return thread.fold(self._threads, self._root, Thread.then)
