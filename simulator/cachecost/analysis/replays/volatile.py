"""Moves words of the system prompt that change from call to call behind the last breakpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cachecost.analysis.replays.steps import PartPool
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Layer, Message, Part
from cachecost.prompts.compare import shared_ends
from cachecost.prompts.request import Breakpoint, Request, block_of, sent_breakpoints, wire_path

LINE = 80
"""Characters: words that change are sent with the line they stand in, if what is before them there is not longer."""

Span = tuple[int, int]
"""How many characters at the beginning and at the end of a text never change."""


@dataclass(slots=True)
class VolatileTail:
    """Calls whose volatile words stand at the end. `spans`: by size of the system prompt and place; None: all.

    `paths` are the places as the API writes them.
    """

    spans: dict[tuple[int, int], Span | None]
    paths: frozenset[str]
    _parts: PartPool = field(default_factory=PartPool)

    @classmethod
    def find(cls, calls: Sequence[Call]) -> VolatileTail:
        """Places whose blocks differ between calls of one conversation that are sent as many system blocks."""
        last: dict[object, Part] = {}
        seen: dict[tuple[int, int], dict[bytes, Block]] = {}
        paths: set[str] = set()
        for call in calls:
            request = call.request
            size = len(request.system.blocks)
            conversation = (request.thread.up_to(1), size, call.host, call.workspace)
            before = last.get(conversation)
            last[conversation] = request.system
            for index, block in enumerate(request.system.blocks):
                was = before.blocks[index] if before else block
                if was.digest != block.digest and block.role:
                    seen.setdefault((size, index), {}).update({was.digest: was, block.digest: block})
                    paths.add(wire_path(request, Breakpoint(Layer.SYSTEM, index)))
        return cls({place: _span([*blocks.values()]) for place, blocks in seen.items()}, frozenset(paths))

    def __call__(self, call: Call) -> Call:
        request = call.request
        size = len(request.system.blocks)
        if request.thread.message is None or not any((size, index) in self.spans for index in range(size)):
            return call
        kept, gone, moved = list[Block](), list[int](), list[Block]()
        for index, block in enumerate(request.system.blocks):
            span = self.spans.get((size, index))
            if (size, index) not in self.spans:
                kept.append(block)
            elif span is None:
                gone.append(index)
                moved.append(block)
            else:
                assert block.content is not None
                text = str(block.content["text"])
                start, end = span[0], len(text) - span[1]
                kept.append(block_of(block.role, {**block.content, "text": text[:start] + text[end:]}))
                moved.append(block_of("user", {"type": "text", "text": text[start:end]}))
        return replace(call, request=_with_tail(request, self._parts.of(kept), gone, moved))


def _span(blocks: Sequence[Block]) -> Span | None:
    """What all texts begin and end with, in whole words; None if that is less than half, or there is no content."""
    texts = [block.content.get("text") if block.content and block.kind == "text" else None for block in blocks]
    if any(not isinstance(text, str) for text in texts):
        return None
    words = [str(text) for text in texts]
    head, tail = shared_ends(*words)
    shortest = min(map(len, words))
    first = words[0]
    head = _edge(first[:head])
    tail = _edge(first[len(first) - tail :][::-1])
    is_line = head == 0 or first[head - 1] == "\n"
    if is_line and tail and first[len(first) - tail] == "\n":
        tail -= 1  # the end of the line goes with it
    return (head, tail) if 2 * (head + tail) >= shortest and head + tail else None


def _edge(text: str) -> int:
    """Where the text that stays ends: with its last line, if what follows that is short, else with its last word."""
    line = text.rfind("\n") + 1
    if line and len(text) - line <= LINE:
        return line
    return next((end for end in range(len(text), 0, -1) if text[end - 1].isspace()), 0)


def _with_tail(request: Request, system: Part, gone: Sequence[int], moved: Sequence[Block]) -> Request:
    """The request with `moved` at its end, without the system blocks at `gone`.

    A breakpoint stays on its block; on one that is gone, it moves to the one before it, else to the last tool.
    """
    thread, message = request.thread, request.thread.message
    assert message is not None and thread.parent is not None
    tail = tuple(
        block_of(message.role, block.content) if block.content is not None else replace(block, role=message.role)
        for block in moved
        if not block.is_empty_text
    )
    longer = thread.parent.then(Message.of(message.role, (*message.blocks, *tail)))
    kept: dict[object, Breakpoint] = {}
    for breakpoint in sent_breakpoints(request).every:
        if breakpoint.node is thread:
            breakpoint = replace(breakpoint, node=longer)
        elif breakpoint.layer is Layer.SYSTEM:
            index = breakpoint.index - sum(one <= breakpoint.index for one in gone)
            if index < 0 and not request.tools.blocks:
                continue
            breakpoint = (
                replace(breakpoint, index=index)
                if index >= 0
                else Breakpoint(Layer.TOOLS, len(request.tools.blocks) - 1, breakpoint.ttl)
            )
        kept[breakpoint.block_key] = breakpoint
    return replace(request, system=system, thread=longer, breakpoints=tuple(kept.values()), automatic=None)
