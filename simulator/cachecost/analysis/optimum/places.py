"""Which block of a request a rendered prefix ends with, that is, where its breakpoint goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cachecost.prompts.blocks import Layer, Part, Prefix, Thread
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Request


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """The place of a rendered block in its request."""

    prefix: Prefix
    layer: Layer
    index: int
    node: Thread | None

    @property
    def block_key(self) -> tuple[Layer, int, int]:
        """As that of a breakpoint there."""
        return self.layer, self.node.length if self.node else 0, self.index


def places(prompt: Prompt, request: Request) -> Iterator[BlockPlace]:
    """The rendered blocks that can have a breakpoint, the last first, without blocks that the server added."""
    yield from message_places(prompt, request)
    yield from static_places(prompt, request)


def static_places(prompt: Prompt, request: Request) -> Iterator[BlockPlace]:
    """The places in system prompt and tools."""
    nodes = (node for node in _up(prompt.head) if node.block is not None)
    for layer, part in ((Layer.SYSTEM, request.system), (Layer.TOOLS, request.tools)):
        yield from _part_places(layer, part, nodes)


def _part_places(layer: Layer, part: Part, nodes: Iterator[Prefix]) -> Iterator[BlockPlace]:
    for index in range(len(part.blocks) - 1, -1, -1):
        yield BlockPlace(next(nodes), layer, index, None)


def message_places(prompt: Prompt, request: Request) -> Iterator[BlockPlace]:
    """The places in messages. Removed thinking and cleared results are not rendered."""
    sent = _blocks_back(request.thread)
    for node in _up(prompt.end):
        if node is prompt.head:
            return
        for message, index in sent:
            block = message.message.blocks[index] if message.message else None
            if block is not None and node.block is not None and block.digest == node.block.digest:
                yield BlockPlace(node, Layer.MESSAGES, index, message)
                break
            if block is not None and not block.is_thinking:
                break


def _blocks_back(thread: Thread) -> Iterator[tuple[Thread, int]]:
    for node in thread.back():
        assert node.message is not None
        for index in range(len(node.message.blocks) - 1, -1, -1):
            yield node, index


def _up(node: Prefix | None) -> Iterator[Prefix]:
    while node is not None:
        yield node
        node = node.parent
