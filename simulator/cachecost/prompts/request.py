"""The request: the simulator renders it, live mode sends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from cachecost.base.structs import identity_struct, value
from cachecost.prompts.blocks import NOTHING, Block, Layer, Part, Thread

TTL = Literal["5m", "1h"]


LAYERS = tuple(Layer)


@value
class Breakpoint:
    """A `cache_control` on a block: the `index`-th of its part, or of the message `node` ends with."""

    layer: Layer
    index: int
    ttl: TTL = "5m"
    node: Thread | None = None

    @property
    def block_key(self) -> tuple[Layer, int, int]:
        """The place without the TTL: layer, message number, block number."""
        return (self.layer, self.node.length if self.node else 0, self.index)

    @property
    def prompt_order(self) -> tuple[int, int, int]:
        """What breakpoints are sorted by, as their blocks stand in a prompt."""
        layer, length, index = self.block_key
        return LAYERS.index(layer), length, index


@value
class MessageThread:
    """The thread that a request belongs to (beta message-threads-2026-08-12).

    `id` is that of the thread ("": unknown), `breakpoints` how many the client sent in this request, `idle_s` the
    seconds since the thread's last request. Both numbers are 0 for a call with a bill, as it was not
    refused.
    """

    id: str
    breakpoints: int = 0
    idle_s: float = 0.0


@identity_struct
class Request:
    """A Messages API request: shared content plus its own parameters.

    `params` holds every other body field as sent (tool_choice, thinking, output_config, speed,
    max_tokens, …). `automatic` is the TTL of a top-level `cache_control`, if there is one. `breakpoints`
    are its breakpoints in prompt order. `fault` is the API's answer to a body that it rejects for something
    only visible on the wire (a breakpoint on a sub-block …); such a request is never rendered.
    `deferred` are the tools, by name, that a `tool_reference` may load. `message_thread` is the thread in which it
    was sent; the request is whole nevertheless. `answering_model` is the model that answered it, as its bill shows:
    that one refuses none of its parameters.
    """

    model: str
    thread: Thread
    tools: Part = NOTHING
    system: Part = NOTHING
    breakpoints: tuple[Breakpoint, ...] = ()
    automatic: TTL | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    fault: str | None = None
    deferred: Mapping[str, Block] = field(default_factory=dict)
    message_thread: MessageThread | None = None
    answering_model: str = ""

    @property
    def params_id(self) -> int:
        """The same for the same parameters while these exist: their id, and 0 where there are none."""
        return id(self.params) if self.params else 0


def is_server_tool(block: Block) -> bool:
    """Whether a block of the system layer defines web search or web fetch, which are rendered there (rule 2)."""
    return block.kind == "tool" and not block.role


def writes(request: Request, breakpoint: Breakpoint) -> bool:
    """Whether the cache uses this breakpoint: on a definition of web search or web fetch it writes nothing."""
    return breakpoint.layer is not Layer.SYSTEM or not is_server_tool(request.system.blocks[breakpoint.index])


def place_as_sent(request: Request, breakpoint: Breakpoint) -> tuple[Layer, int, int]:
    """The place of a breakpoint in the request as sent: layer, message number from 1 (or 0), index."""
    if breakpoint.node is not None:
        return Layer.MESSAGES, breakpoint.node.length, breakpoint.index
    layer = Layer.TOOLS if breakpoint.layer is Layer.TOOLS or not writes(request, breakpoint) else Layer.SYSTEM
    part = request.tools if breakpoint.layer is Layer.TOOLS else request.system
    return layer, 0, _as_listed(request, breakpoint) if part.places is None else part.places[breakpoint.index]


def _as_listed(request: Request, breakpoint: Breakpoint) -> int:
    """The index of a breakpoint where the order as sent is unknown: server tools come last."""
    if breakpoint.layer is Layer.TOOLS:
        return breakpoint.index
    served = sum(map(is_server_tool, request.system.blocks))
    return breakpoint.index + len(request.tools.blocks) if breakpoint.index < served else breakpoint.index - served


def block_at(request: Request, breakpoint: Breakpoint) -> Block:
    """The block with the breakpoint `breakpoint`."""
    if breakpoint.layer is Layer.TOOLS:
        return request.tools.blocks[breakpoint.index]
    if breakpoint.layer is Layer.SYSTEM:
        return request.system.blocks[breakpoint.index]
    if breakpoint.node is None or breakpoint.node.message is None:
        raise ValueError(f"breakpoint={breakpoint!r}: a breakpoint in messages needs the node of its message")
    return breakpoint.node.message.blocks[breakpoint.index]
