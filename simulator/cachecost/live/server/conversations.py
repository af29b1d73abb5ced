"""Which conversation a call belongs to, which call it continues, and where its last breakpoint is."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from cachecost.prompts.blocks import Layer, Message, Thread
from cachecost.prompts.refusals import sent_breakpoints
from cachecost.prompts.request import Breakpoint, Request, block_at


class ConversationIndex:
    """The conversations of all workspaces. Calls with the same first message are one conversation.

    The work is proportional to the new messages.
    """

    def __init__(self) -> None:
        self._first: dict[Thread, Thread] = {}
        self._calls: dict[tuple[str, Thread], int] = {}

    def first(self, thread: Thread) -> Thread:
        """The first message of a thread; an empty thread is its own."""
        path = []
        node = thread
        while node.length > 1 and node not in self._first:
            path.append(node)
            assert node.parent is not None
            node = node.parent
        found = self._first.get(node, node)
        self._first.update(dict.fromkeys(path, found))
        return found

    def before(self, workspace: str, thread: Thread) -> int | None:
        """The number of the last call that `thread` continues; None if it is the first."""
        for node in thread.back():
            if (call := self._calls.get((workspace, node))) is not None:
                return call
        return None

    def remember(self, workspace: str, thread: Thread, call: int) -> None:
        self._calls[workspace, thread] = call


def answers_tools(thread: Thread) -> bool:
    """Whether the last message has tool results: a step of a tool loop."""
    return thread.message is not None and _brings_results(thread.message)


def _brings_results(message: Message) -> bool:
    return any(block.kind == "tool_result" for block in message.blocks)


def breakpoints_tool_results(request: Request) -> bool:
    return any(
        block_at(request, breakpoint).kind == "tool_result" for breakpoint in sent_breakpoints(request).breakpoints
    )


@dataclass(frozen=True, slots=True)
class LastBreakpoint:
    """What the last breakpoint is on, in words, and how many messages follow."""

    on: str
    messages_after: int


def last_breakpoint(request: Request) -> LastBreakpoint | None:
    """The last breakpoint of a request; None without any."""
    breakpoints = sent_breakpoints(request).breakpoints
    if not breakpoints:
        return None
    deepest = max(breakpoints, key=attrgetter("prompt_order"))
    return LastBreakpoint(_kind(request, deepest), request.thread.length - (deepest.node.length if deepest.node else 0))


def _kind(request: Request, breakpoint: Breakpoint) -> str:
    if breakpoint.layer is Layer.TOOLS:
        return "a tool's definition"
    if breakpoint.layer is Layer.SYSTEM:
        return "the system prompt"
    block = block_at(request, breakpoint)
    if block.kind != "text":
        return f"a {block.kind}"
    is_first = breakpoint.node is not None and breakpoint.node.length == 1
    return f"the first {block.role} text" if is_first else f"a later {block.role} text"
