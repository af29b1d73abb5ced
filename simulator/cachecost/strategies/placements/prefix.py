"""Breakpoints on what comes before the conversation: tools, system blocks, documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Literal

from cachecost.prompts.blocks import Layer, Thread
from cachecost.prompts.refusals import accepts_breakpoint
from cachecost.prompts.request import is_server_tool
from cachecost.strategies.placements.base import Primitive, Spot
from cachecost.strategies.placements.thread_index import View

NAMED: Mapping[str | int, slice] = {
    "last": slice(-1, None),
    "last_two": slice(-2, None),
    "first": slice(1),
    "first_two": slice(2),
    "each": slice(None),
}
"""Which of the system blocks that may carry a breakpoint."""


@dataclass(frozen=True, slots=True)
class LastTool(Primitive):
    """The last tool that is not deferred."""

    rank: ClassVar[int] = 0

    def spots(self, view: View) -> Iterator[Spot]:
        for index in range(len(view.tools.blocks) - 1, -1, -1):
            if not (view.tools.blocks[index].content or {}).get("defer_loading"):
                yield Layer.TOOLS, None, index
                return


@dataclass(frozen=True, slots=True)
class SystemBlock(Primitive):
    """A system block: the last, the last two, the first, the first two, each, or one by its number from 0.

    Definitions of web search and web fetch are rendered before them and are none: a breakpoint there writes nothing.
    """

    which: Literal["last", "last_two", "first", "first_two", "each"] | int = "last"
    rank: ClassVar[int] = 1
    least: ClassVar[int] = 0

    def spots(self, view: View) -> Iterator[Spot]:
        blocks = enumerate(view.system.blocks)
        breakpoint_places = [
            index for index, block in blocks if accepts_breakpoint(block) and not is_server_tool(block)
        ]
        named = NAMED.get(self.which)
        chosen = breakpoint_places[named] if named else [index for index in breakpoint_places if index == self.which]
        for index in chosen:
            yield Layer.SYSTEM, None, index


@dataclass(frozen=True, slots=True)
class SegmentEnd(Primitive):
    """The end of a static part: `head` is the last system block, or the last tool where there is no system prompt.

    `documents` is the last document block of the first user message, where attachments go. The ends of tools and
    of one system block are `last_tool` and `system_block`.
    """

    segment: Literal["head", "documents"] = "head"

    def spots(self, view: View) -> Iterator[Spot]:
        if self.segment == "documents":
            start: tuple[Spot, ...] = ()
            yield from view.trail.fold(self, view.thread, start, _documents)
        else:
            ends = (*SystemBlock("last").spots(view), *LastTool().spots(view))
            yield from islice(ends, 1)


def _documents(found: tuple[Spot, ...], node: Thread) -> tuple[Spot, ...]:
    """The spot, once the first message has passed."""
    if node.length > 1 or node.message is None or node.message.role != "user":
        return found
    places = [index for index, block in enumerate(node.message.blocks) if block.kind == "document"]
    return tuple((Layer.MESSAGES, node, index) for index in places[-1:])
