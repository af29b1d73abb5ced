"""Which call a call continues, where its last breakpoint is, and the API's cache diagnostics.

The diagnostics say where a request differs from the one that the client names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter
from typing import Any, Literal

from cachecost.prompts.blocks import Block, Layer, Part, Thread, estimate_tokens
from cachecost.prompts.compare import first_changed_block
from cachecost.prompts.output_format import output_format
from cachecost.prompts.request import Request, block_at, sent_breakpoints


class ConversationIndex:
    """The conversations of all workspaces. Calls with the same first message are one conversation.

    The work is proportional to the new messages.
    """

    def __init__(self) -> None:
        self._calls: dict[tuple[str, Thread], int] = {}

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
    return thread.message is not None and any(block.kind == "tool_result" for block in thread.message.blocks)


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
    length = deepest.node.length if deepest.node else 0
    if deepest.layer is Layer.TOOLS:
        on = "a tool's definition"
    elif deepest.layer is Layer.SYSTEM:
        on = "the system prompt"
    elif (block := block_at(request, deepest)).kind != "text":
        on = f"a {block.kind}"
    else:
        on = f"{'the first' if length == 1 else 'a later'} {block.role} text"
    return LastBreakpoint(on, request.thread.length - length)


def breakpoints_tool_results(request: Request) -> bool:
    """Whether a breakpoint is on a tool result."""
    return any(block_at(request, one).kind == "tool_result" for one in sent_breakpoints(request).breakpoints)


NOT_FOUND = "previous_message_not_found"
UNAVAILABLE = "unavailable"
MOST_KEPT = 10_000
"""Answered requests that a client can name; the oldest is dropped first. The API keeps them for a short time."""
Kind = Literal["model_changed", "tools_changed", "system_changed", "unavailable", "messages_changed"]
Size = Callable[[Block], int]

COMPARED = ("tool_choice", "thinking", "context_management")
"""Parameters whose change the API reports as "unavailable". `speed` is compared too: it is in the cache key here
(rule 2), and not in the documentation's list."""


class AnsweredRequests:
    """Remembers what was answered, by workspace and message id."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._answered: dict[tuple[str, str], Request] = {}
        self._most = most

    def remember(self, workspace: str, message_id: str, request: Request) -> None:
        self._answered[workspace, message_id] = request
        if len(self._answered) > self._most:
            del self._answered[next(iter(self._answered))]

    def of(self, workspace: str, previous: str | None, request: Request) -> Mapping[str, Any] | None:
        """The `diagnostics` of an answer to `request`; None (JSON's null) for a first turn, or where nothing differs.

        A message of another workspace is not found.
        """
        if previous is None:
            return None
        before = self._answered.get((workspace, previous))
        return _miss_reason(NOT_FOUND) if before is None else compare_requests(before, request)


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference in prompt order, and how many tokens of the earlier prompt come after it."""

    kind: Kind
    missed_tokens: int


def divergence(before: Request, after: Request, size: Size = estimate_tokens) -> Divergence | None:
    """How `after` differs from `before`; None if it continues it.

    Breakpoints make no difference (rule 1). `size` is the number of tokens of a block; the API's figure is "a
    byte-length estimate" as well.
    """
    if before.model != after.model:
        return _divergence_before_messages("model_changed", before, size, before.tools.blocks, before.system.blocks)
    if (tools := _differs(before.tools, after.tools)) is not None:
        return _divergence_before_messages("tools_changed", before, size, tools, before.system.blocks)
    if (system := _differs(before.system, after.system)) is not None:
        return _divergence_before_messages("system_changed", before, size, system)
    if _parameters(before) != _parameters(after):
        return _divergence_before_messages("unavailable", before, size)
    parting = before.thread.common(after.thread).length
    old = _blocks(before, parting)
    left = old[first_changed_block(old, _blocks(after, parting)) :]
    return Divergence("messages_changed", sum(map(size, left))) if left else None


def _divergence_before_messages(kind: Kind, before: Request, size: Size, *rest: Sequence[Block]) -> Divergence:
    """A difference before the messages: `rest` and all messages of the earlier prompt follow it."""
    return Divergence(kind, sum(size(block) for blocks in (*rest, _blocks(before, 0)) for block in blocks))


def _differs(before: Part, after: Part) -> Sequence[Block] | None:
    """The blocks of a layer from its first difference on; None if both are equal."""
    if before.digest == after.digest:
        return None
    return before.blocks[first_changed_block(before.blocks, after.blocks) :]


def _blocks(request: Request, after: int) -> list[Block]:
    """The blocks of the messages after the first `after`."""
    nodes = takewhile(lambda node: node.length > after, request.thread.back())
    messages = [node.message for node in nodes if node.message is not None]
    return [block for message in reversed(messages) for block in message.blocks]


def _parameters(request: Request) -> list[Any]:
    """What the API compares without naming it; an explicit null counts as absent."""
    config = {key: value for key, value in (request.params.get("output_config") or {}).items() if key != "format"}
    named = [request.params.get(name) or None for name in (*COMPARED, "speed")]
    return [*named, config or None, output_format(request.params)]


def compare_requests(before: Request, request: Request, size: Size = estimate_tokens) -> Mapping[str, Any] | None:
    """The `diagnostics` of `request` after `before`."""
    found = divergence(before, request, size)
    if found is None:
        return None
    return _miss_reason(UNAVAILABLE) if found.kind == UNAVAILABLE else _miss_reason(found.kind, found.missed_tokens)


def _miss_reason(kind: str, tokens: int | None = None) -> Mapping[str, Any]:
    sized = {} if tokens is None else {"cache_missed_input_tokens": tokens}
    return {"cache_miss_reason": {"type": kind, **sized}}
