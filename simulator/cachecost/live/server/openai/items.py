"""The items of a response's `output`, and the events that stream each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cachecost.live.server.message import pieces
from cachecost.live.server.openai.blocks import arguments_of, is_custom

Block = Mapping[str, Any]
Item = dict[str, Any]
Event = dict[str, Any]
SEALED = "reasoning.encrypted_content"


def items_of(content: Sequence[Block], name: str, sent: Mapping[str, Any]) -> list[Item]:
    """The items of an answer; `name` tells their ids apart from those of other answers."""
    made = (_item(block, f"{name}_{number}", sent) for number, block in enumerate(content))
    return [item for item in made if item is not None]


def _item(block: Block, name: str, sent: Mapping[str, Any]) -> Item | None:
    kind = block.get("type")
    if kind == "text":
        text = {"type": "output_text", "text": block["text"], "annotations": [], "logprobs": []}
        return {"id": f"msg_{name}", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    if kind == "thinking":
        summary = [{"type": "summary_text", "text": block["thinking"]}]
        sealed = {"encrypted_content": block.get("signature")} if SEALED in (sent.get("include") or ()) else {}
        return {"id": f"rs_{name}", "type": "reasoning", "summary": summary, **sealed}
    return _call(block, name, sent) if kind == "tool_use" else None


def _call(block: Block, name: str, sent: Mapping[str, Any]) -> Item:
    """A call of a function, or of a custom tool, whose input is a text."""
    head = {"status": "completed", "call_id": block["id"], "name": block["name"]}
    if is_custom(block["name"], sent):
        return {"id": f"ctc_{name}", "type": "custom_tool_call", **head, "input": arguments_of(block)}
    return {"id": f"fc_{name}", "type": "function_call", **head, "arguments": arguments_of(block)}


def item_events(item: Item, number: int) -> Iterator[Event]:
    """The events of the `number`-th item."""
    at = {"output_index": number, "item_id": item["id"]}
    yield {"type": "response.output_item.added", "output_index": number, "item": _begun(item)}
    if item["type"] == "message":
        yield from _text_events(item["content"][0], {**at, "content_index": 0})
    elif item["type"] == "reasoning":
        yield from _summary_events(item["summary"][0], {**at, "summary_index": 0})
    else:
        yield from _call_events(item, at)
    yield {"type": "response.output_item.done", "output_index": number, "item": item}


GROWING: dict[str, Item] = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}
"""The field of an item that is streamed in pieces, and its first value."""


def _begun(item: Item) -> Item:
    status = {"status": "in_progress"} if "status" in item else {}
    return {**item, **status, **GROWING[item["type"]]}


def _text_events(text: Item, at: Event) -> Iterator[Event]:
    kind = "response.output_text"
    yield {"type": "response.content_part.added", **at, "part": {**text, "text": ""}}
    for piece in pieces(text["text"]):
        yield {"type": f"{kind}.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": f"{kind}.done", **at, "text": text["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": text}


def _summary_events(summary: Item, at: Event) -> Iterator[Event]:
    kind = "response.reasoning_summary"
    yield {"type": f"{kind}_part.added", **at, "part": {**summary, "text": ""}}
    for piece in pieces(summary["text"]):
        yield {"type": f"{kind}_text.delta", **at, "delta": piece}
    yield {"type": f"{kind}_text.done", **at, "text": summary["text"]}
    yield {"type": f"{kind}_part.done", **at, "part": summary}


def _call_events(item: Item, at: Event) -> Iterator[Event]:
    field = "input" if item["type"] == "custom_tool_call" else "arguments"
    kind = f"response.{item['type']}_{field}"
    for piece in pieces(item[field]):
        yield {"type": f"{kind}.delta", **at, "delta": piece}
    name = {"name": item["name"]} if field == "arguments" else {}
    yield {"type": f"{kind}.done", **at, field: item[field], **name}
