"""Which block of a request a rendered prefix ends with, and where a breakpoint can go."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cachecost.prompts.blocks import Layer, Prefix, Thread
from cachecost.prompts.compare import prefixes_back
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Request, accepts_breakpoint, is_server_tool
from cachecost.strategies.placements import blocks_back


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
    nodes = (node for node in prefixes_back(prompt.head) if node.block is not None)
    for layer, part in ((Layer.SYSTEM, request.system), (Layer.TOOLS, request.tools)):
        for index in range(len(part.blocks) - 1, -1, -1):
            yield BlockPlace(next(nodes), layer, index, None)


def message_places(prompt: Prompt, request: Request) -> Iterator[BlockPlace]:
    """The places in messages. Removed thinking and cleared results are not rendered."""
    sent = blocks_back(request.thread)
    for node in prefixes_back(prompt.end):
        if node is prompt.head:
            return
        for message, index in sent:
            block = message.message.blocks[index] if message.message else None
            if block is not None and node.block is not None and block.digest == node.block.digest:
                yield BlockPlace(node, Layer.MESSAGES, index, message)
                break
            if block is not None and not block.is_thinking:
                break


def accepts_breakpoints(prefix: Prefix) -> bool:
    """Whether a breakpoint here is legal and has an effect: no key, thinking, empty text or server tool."""
    block = prefix.block
    if block is None or not accepts_breakpoint(block):
        return False
    return prefix.layer is not Layer.SYSTEM or not is_server_tool(block)


def find_markable(prefix: Prefix | None) -> Prefix | None:
    """The block, or the nearest one before it that may have a breakpoint."""
    while prefix is not None and not accepts_breakpoints(prefix):
        prefix = prefix.parent
    return prefix
