"""The request: the simulator renders it, live mode sends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from cachecost.base.structs import identity_struct, value
from cachecost.prompts.blocks import NOTHING, Block, Layer, Part, Thread

TTL = Literal["5m", "1h"]


@value
class Mark:
    """A `cache_control` on a block: the `index`-th of its part, or of the message `node` ends with."""

    layer: Layer
    index: int
    ttl: TTL = "5m"
    node: Thread | None = None

    @property
    def block_key(self) -> tuple[Layer, int, int]:
        """The place without the TTL: layer, message number, block number."""
        return (self.layer, self.node.length if self.node else 0, self.index)


@identity_struct
class Request:
    """A Messages API request: shared content plus its own parameters.

    `params` holds every other body field as sent (tool_choice, thinking, output_config, speed,
    max_tokens, …). `automatic` is the TTL of a top-level `cache_control`, if there is one. `marks`
    are its breakpoints in prompt order. `fault` is the API's answer to a body that it rejects for something
    only visible on the wire (a breakpoint on a sub-block …); such a request is never rendered.
    `deferred` are the tools, by name, that a `tool_reference` may load.
    """

    model: str
    thread: Thread
    tools: Part = NOTHING
    system: Part = NOTHING
    marks: tuple[Mark, ...] = ()
    automatic: TTL | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None
    deferred: Mapping[str, Block] = field(default_factory=dict)


def is_server_tool(block: Block) -> bool:
    """Whether a block of the system layer defines web search or web fetch, which are rendered there (rule 2)."""
    return block.kind == "tool" and not block.role


def writes(request: Request, mark: Mark) -> bool:
    """Whether the cache uses this breakpoint: on a definition of web search or web fetch it writes nothing."""
    return mark.layer is not Layer.SYSTEM or not is_server_tool(request.system.blocks[mark.index])


def place_as_sent(request: Request, mark: Mark) -> tuple[Layer, int, int]:
    """The place of a breakpoint in the request as sent: layer, message number from 1 (or 0), index."""
    if mark.node is not None:
        return Layer.MESSAGES, mark.node.length, mark.index
    layer = Layer.TOOLS if mark.layer is Layer.TOOLS or not writes(request, mark) else Layer.SYSTEM
    part = request.tools if mark.layer is Layer.TOOLS else request.system
    return layer, 0, _as_listed(request, mark) if part.places is None else part.places[mark.index]


def _as_listed(request: Request, mark: Mark) -> int:
    """The index of a breakpoint where the order as sent is unknown: server tools come last."""
    if mark.layer is Layer.TOOLS:
        return mark.index
    served = sum(map(is_server_tool, request.system.blocks))
    return mark.index + len(request.tools.blocks) if mark.index < served else mark.index - served


def block_at(request: Request, mark: Mark) -> Block:
    """The block with the breakpoint `mark`."""
    if mark.layer is Layer.TOOLS:
        return request.tools.blocks[mark.index]
    if mark.layer is Layer.SYSTEM:
        return request.system.blocks[mark.index]
    if mark.node is None or mark.node.message is None:
        raise ValueError(f"mark={mark!r}: a mark in messages needs the node of its message")
    return mark.node.message.blocks[mark.index]
