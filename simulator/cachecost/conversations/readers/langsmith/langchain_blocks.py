"""Converts a content block of a LangChain message to a block of the Messages API (see langchain_messages.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachecost.conversations.readers.common.dialects import Body, parse_json_text
from cachecost.conversations.readers.openai.parts import SHORT, part
from cachecost.prompts.wire import BREAKPOINT, NotAMessage

NARROWED = {
    "text": ("type", "text", "citations", BREAKPOINT),
    "thinking": ("type", "thinking", "signature", BREAKPOINT),
    "redacted_thinking": ("type", "data", BREAKPOINT),
}
"""What is sent of these; LangChain keeps more in them."""
STREAMED = ("index", "partial_json")
"""What streaming leaves behind in a block. It is never sent."""
BESIDE = (BREAKPOINT, "citations", "title", "context")
MEDIA = {"image": "image", "file": "document", "text-plain": "document"}
"""LangChain's own blocks for pictures and documents: they have no `source`."""
Calls = Mapping[str, Mapping[str, Any]]


def block_from(block: Any, path: str, calls: Calls) -> Body:
    """The block as it is sent; an unknown type stays unchanged. Raises NotAMessage."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
        raise NotAMessage(path, "a block with a type", block)
    kind, inner = block["type"], block.get("value")
    if kind == "non_standard" and isinstance(inner, Mapping):
        return block_from(inner, path, calls)
    if kind in NARROWED:
        return {name: value for name, value in block.items() if name in NARROWED[kind]}
    if kind == "image_url":
        return part(block, path, SHORT)
    if kind in MEDIA and "source" not in block:
        return _medium(block)
    return _call_or_other(block, calls)


def _call_or_other(block: Mapping[str, Any], calls: Calls) -> Body:
    kind, id_ = block["type"], str(block.get("id"))
    if kind == "tool_call" or (kind == "tool_use" and id_ in calls):
        return tool_use(calls.get(id_, block))
    signature = _extras(block).get("signature")
    if signature and kind == "reasoning":
        return {"type": "thinking", "thinking": block.get("reasoning") or "", "signature": signature}
    sent = {name: value for name, value in block.items() if name not in STREAMED}
    if "partial_json" in block and not block.get("input"):
        sent["input"] = parse_json_text(block["partial_json"]) or {}
    return sent


def tool_use(call: Mapping[str, Any]) -> Body:
    """The block of an entry of `tool_calls`."""
    return {"type": "tool_use", "name": call.get("name"), "input": call.get("args") or {}, "id": call.get("id")}


def result_of(message: Mapping[str, Any], blocks: Sequence[Body]) -> list[Body]:
    """The tool_result blocks of a tool message, whose content may already be such blocks."""
    if blocks and all(block["type"] == "tool_result" for block in blocks):
        return list(blocks)
    content = message.get("content")
    breakpoints = [block[BREAKPOINT] for block in blocks if BREAKPOINT in block]
    inner = [{name: value for name, value in block.items() if name != BREAKPOINT} for block in blocks]
    result = {
        "type": "tool_result",
        "content": content if isinstance(content, str) else inner,
        "tool_use_id": message.get("tool_call_id"),
        "is_error": message.get("status") == "error",
    }
    return [{**result, BREAKPOINT: breakpoints[-1]} if breakpoints else result]


def _medium(block: Mapping[str, Any]) -> Body:
    extras = _extras(block)
    beside = {name: block.get(name, extras.get(name)) for name in BESIDE if name in block or name in extras}
    return {"type": MEDIA[block["type"]], "source": _source(block), **beside}


def _extras(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """What LangChain's blocks keep of a provider's own fields."""
    extras = block.get("extras") or block.get("metadata")
    return extras if isinstance(extras, Mapping) else {}


def _source(block: Mapping[str, Any]) -> Body:
    kind, url = block.get("source_type"), block.get("url")
    media = block.get("mime_type") or "application/pdf"
    if isinstance(url, str) and not url.startswith("data:"):
        return {"type": "url", "url": url}
    if isinstance(url, str):
        media, _, data = url.removeprefix("data:").partition(";base64,")
        return {"type": "base64", "media_type": media, "data": data}
    if block["type"] == "text-plain" or kind == "text":
        return {"type": "text", "media_type": block.get("mime_type") or "text/plain", "data": block.get("text")}
    if "file_id" in block or kind == "id":
        return {"type": "file", "file_id": block.get("file_id", block.get("id"))}
    return {"type": "base64", "media_type": media, "data": block.get("base64", block.get("data"))}
