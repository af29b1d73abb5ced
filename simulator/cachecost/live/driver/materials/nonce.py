"""A few words in the first block of a prompt, so that strategies and runs do not share cache entries."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from cachecost.prompts.wire import content_blocks

Body = dict[str, Any]


def nonce_of(run: str, strategy: str) -> str:
    """The same length for every strategy and every run."""
    return "run " + blake2b(f"{run}\0{strategy}".encode(), digest_size=8, person=b"nonce").hexdigest()


def with_nonce(body: Mapping[str, Any], nonce: str) -> Body:
    """`body` with the nonce in its first block: a tool's description, else the system prompt, else the first message.

    Not in a tool that Anthropic defines, nor in a deferred one.
    """
    tools = list(body.get("tools") or ())
    for number, tool in enumerate(tools):
        if "input_schema" in tool and not tool.get("defer_loading"):
            told = {**tool, "description": f"{nonce} {tool.get('description') or ''}".rstrip()}
            return {**body, "tools": [*tools[:number], told, *tools[number + 1 :]]}
    if body.get("system"):
        return {**body, "system": _before(content_blocks(body["system"], "system"), nonce)}
    first, *rest = body["messages"]
    content = _before(content_blocks(first["content"], "messages.0.content"), nonce)
    return {**body, "messages": [{**first, "content": content}, *rest]}


def _before(blocks: list[Mapping[str, Any]], nonce: str) -> list[Mapping[str, Any]]:
    first, *rest = blocks
    if first.get("type") == "text":
        return [{**first, "text": f"{nonce} {first['text']}"}, *rest]
    return [{"type": "text", "text": nonce}, *blocks]
