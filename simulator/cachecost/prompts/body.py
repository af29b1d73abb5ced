"""Turns a Request into a Messages API body: what was priced is what is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.base.errors import CannotEvaluate
from cachecost.prompts.blocks import Block, Layer, Part, Thread
from cachecost.prompts.request import TTL, Breakpoint, Request
from cachecost.prompts.wire import BREAKPOINT

Body = dict[str, Any]


def body_of(request: Request) -> Body:
    """The body that parses back to `request`: same blocks, breakpoints and parameters.

    Server tools, which are rendered at the start of the system layer (rule 2), are listed among the tools again. Raises
    CannotEvaluate for a block whose content is not known.
    """
    placed = {breakpoint.block_key: breakpoint.ttl for breakpoint in request.breakpoints}
    system = list(_part(request.system, Layer.SYSTEM, placed))
    theirs, texts = ([item for block, item in system if bool(block.role) is told] for told in (False, True))
    body: Body = {"model": request.model, **request.params}
    if tools := [*(item for _, item in _part(request.tools, Layer.TOOLS, placed)), *theirs, *_deferred_tools(request)]:
        body["tools"] = tools
    if texts:
        body["system"] = texts
    body["messages"] = [_message(node, placed) for node in [*request.thread.back()][::-1]]
    if request.automatic:
        body[BREAKPOINT] = breakpoint_of(request.automatic)
    return body


def _deferred_tools(request: Request) -> list[Body]:
    """The deferred tools that messages refer to, each once, in the order of the references."""
    messages = [node.message for node in [*request.thread.back()][::-1] if node.message]
    found = (tool for message in messages for block in message.blocks for tool in block.brought)
    return list({str(tool.get("name")): dict(tool) for tool in found}.values())


def breakpoint_of(ttl: TTL) -> Mapping[str, str]:
    """A `cache_control` with this TTL; the API's default is five minutes."""
    return {"type": "ephemeral", "ttl": ttl} if ttl == "1h" else {"type": "ephemeral"}


Placed = Mapping[tuple[Layer, int, int], TTL]


def _part(part: Part, layer: Layer, placed: Placed) -> Iterator[tuple[Block, Body]]:
    for index, block in enumerate(part.blocks):
        yield block, _wire_block(block, placed.get(Breakpoint(layer, index).block_key))


def _message(node: Thread, placed: Placed) -> Body:
    message = node.message
    assert message is not None
    blocks = enumerate(message.blocks)
    content = [_wire_block(block, placed.get((Layer.MESSAGES, node.length, index))) for index, block in blocks]
    config = {"output_config": {"effort": message.effort}} if message.effort else {}
    return {"role": message.role, "content": content, **config}


def _wire_block(block: Block, ttl: TTL | None) -> Body:
    if block.content is None:
        raise CannotEvaluate(f"a {block.kind} block of {block.size} bytes has no content, so it cannot be sent")
    return {**block.content, BREAKPOINT: breakpoint_of(ttl)} if ttl else dict(block.content)
