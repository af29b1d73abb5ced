"""Context editing and compaction: what the server removes from a thread before the cache look-up.

`clear_tool_uses_20250919` replaces the oldest tool results once the prompt reaches its trigger,
`clear_thinking_20251015` drops the thinking of all but the last turns that think. Both are applied
to the request of each call; everything before the first cleared block stays cached.
Source: platform.claude.com, Context editing, 2026-08-22.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from cachecost.base.structs import replace
from cachecost.prompts.blocks import COMPACTION, Block, Layer, Message, Thread, digest_of
from cachecost.prompts.request import Breakpoint, Request

CLEAR_TOOLS, CLEAR_THINKING = "clear_tool_uses_20250919", "clear_thinking_20251015"
TRIGGER_TOKENS, KEPT_TOOL_USES = 100_000, 3
"""The API's defaults, of the type's own date: another default would be another type."""
PLACEHOLDER_TOKENS = 12
"""What stands for a cleared result; its length is not published: an assumption."""


def edits_of(request: Request) -> list[Mapping[str, Any]]:
    """The requested edits, as sent."""
    edits = (request.params.get("context_management") or {}).get("edits")
    return [edit for edit in edits if isinstance(edit, Mapping)] if isinstance(edits, list) else []


def apply_edits(
    request: Request, breakpoints: tuple[Breakpoint, ...], prompt_tokens: int
) -> tuple[Request, tuple[Breakpoint, ...]]:
    """The request and its breakpoints after the edits; `prompt_tokens` is its length before them."""
    plan = _Plan()
    for edit in edits_of(request):
        if edit.get("type") == CLEAR_THINKING:
            plan.thoughts |= set(_find_cleared_thinking(request.thread, edit))
        elif edit.get("type") == CLEAR_TOOLS and _is_due(request.thread, edit, prompt_tokens):
            plan.results |= set(_find_cleared_results(request.thread, edit))
    return plan.applied(request, breakpoints) if plan.thoughts or plan.results else (request, breakpoints)


def since_compaction(request: Request, breakpoints: tuple[Breakpoint, ...]) -> tuple[Request, tuple[Breakpoint, ...]]:
    """The request without everything before its last compaction block, which the API ignores."""
    first = request.thread.compaction
    if first is None or first.message is None:
        return request, breakpoints
    kinds = [block.kind for block in first.message.blocks]
    cut = len(kinds) - 1 - kinds[::-1].index(COMPACTION)
    nodes = list(request.thread.back())[::-1]
    thread, places = nodes[0].parent or Thread(), {}
    for node in nodes[first.length - 1 :]:
        assert node.message is not None
        blocks = node.message.blocks[cut:] if node is first else node.message.blocks
        thread = places[node] = thread.then(Message.of(node.message.role, blocks))
    moved = tuple(
        kept for breakpoint in breakpoints if (kept := _keep_breakpoint(breakpoint, first, cut, places)) is not None
    )
    return replace(request, thread=thread, breakpoints=moved), moved


def _keep_breakpoint(
    breakpoint: Breakpoint, first: Thread, cut: int, places: Mapping[Thread, Thread]
) -> Breakpoint | None:
    if breakpoint.layer is not Layer.MESSAGES or breakpoint.node is None:
        return breakpoint
    index = breakpoint.index - cut if breakpoint.node is first else breakpoint.index
    return (
        replace(breakpoint, node=places[breakpoint.node], index=index)
        if breakpoint.node in places and index >= 0
        else None
    )


class _Plan(msgspec.Struct):
    """The edits of a request: messages whose thinking is removed, by number from 1, and (message, block) of removed
    results.
    """

    thoughts: set[int] = msgspec.field(default_factory=set)
    results: set[tuple[int, int]] = msgspec.field(default_factory=set)

    def applied(self, request: Request, breakpoints: tuple[Breakpoint, ...]) -> tuple[Request, tuple[Breakpoint, ...]]:
        nodes = list(request.thread.back())[::-1]
        thread = nodes[0].parent if nodes else request.thread
        places: dict[Thread, Thread] = {}
        for node in nodes:
            assert thread is not None and node.message is not None
            blocks = tuple(self._blocks(node))
            thread = thread.then(Message.of(node.message.role, blocks)) if blocks else thread
            places[node] = thread
        moved = tuple(self._moved(breakpoint, places) for breakpoint in breakpoints)
        return replace(request, thread=thread or request.thread, breakpoints=moved), moved

    def _blocks(self, node: Thread) -> Iterator[Block]:
        assert node.message is not None
        for index, block in enumerate(node.message.blocks):
            if (node.length, index) in self.results:
                yield _placeholder(block)
            elif not (block.is_thinking and node.length in self.thoughts):
                yield block

    def _moved(self, breakpoint: Breakpoint, places: Mapping[Thread, Thread]) -> Breakpoint:
        if breakpoint.layer is not Layer.MESSAGES or breakpoint.node is None or breakpoint.node.message is None:
            return breakpoint
        gone = 0
        if breakpoint.node.length in self.thoughts:
            gone = sum(block.is_thinking for block in breakpoint.node.message.blocks[: breakpoint.index])
        return replace(breakpoint, node=places[breakpoint.node], index=breakpoint.index - gone)


def _placeholder(block: Block) -> Block:
    digest = digest_of(block.role, block.kind, b"cleared:" + block.digest)
    return Block(block.kind, block.role, digest, PLACEHOLDER_TOKENS * 4, tokens=PLACEHOLDER_TOKENS)


def _find_cleared_thinking(thread: Thread, edit: Mapping[str, Any]) -> Iterator[int]:
    """Messages before the last `keep` turns with thinking; a turn begins with a human message."""
    keep = edit.get("keep")
    kept = keep.get("value") if isinstance(keep, Mapping) else None
    if not isinstance(kept, int):
        return
    turns: list[Thread | None] = []
    for node in thread.back():
        if node.message is not None and node.message.has_thinking:
            if node.human not in turns:
                turns.append(node.human)
            if turns.index(node.human) >= kept:
                yield node.length


def _is_due(thread: Thread, edit: Mapping[str, Any], prompt_tokens: int) -> bool:
    trigger = edit.get("trigger")
    threshold: Mapping[str, Any] = trigger if isinstance(trigger, Mapping) else {"value": TRIGGER_TOKENS}
    limit = int(threshold.get("value", TRIGGER_TOKENS))
    if threshold.get("type") == "tool_uses":
        return sum(1 for _ in _results(thread)) >= limit
    return prompt_tokens >= limit


def _find_cleared_results(thread: Thread, edit: Mapping[str, Any]) -> list[tuple[int, int]]:
    """All but the last `keep` tool results."""
    keep = edit.get("keep")
    kept = int(keep.get("value", KEPT_TOOL_USES)) if isinstance(keep, Mapping) else KEPT_TOOL_USES
    return list(_results(thread))[kept:]


def _results(thread: Thread) -> Iterator[tuple[int, int]]:
    """(message, block) of every tool result, latest first."""
    for node in thread.back():
        assert node.message is not None
        for index in range(len(node.message.blocks) - 1, -1, -1):
            if node.message.blocks[index].kind == "tool_result":
                yield node.length, index
