"""Joins the events of a streamed answer to the answer that the API returns without streaming."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.base.limits import json_value
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.prompts.request import NotAMessage

Piece = dict[str, Any]
Events = list[Piece]


def join_message(events: Events) -> Piece:
    """A Messages answer; the error event if there is nothing else. Raises NotAMessage, as all of these."""
    message: Piece = {}
    blocks: dict[int, Piece] = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = dict(object_or_empty(event.get("message")))
        elif kind == "content_block_start":
            blocks[_number(event, "index")] = dict(object_or_empty(event.get("content_block")))
        elif kind == "content_block_delta":
            _extend(blocks.setdefault(_number(event, "index"), {"type": "text"}), object_or_empty(event.get("delta")))
        elif kind == "message_delta":
            usage = object_or_empty(message.get("usage"))
            message["usage"] = _largest_counts(usage, object_or_empty(event.get("usage")))
        elif kind == "error" and not message:
            return event
    content = []
    for block in blocks.values():
        pieces = block.pop("partial_json", None)  # input that is cut off stays the text it is
        content.append({**block, "input": _parse_input(pieces)} if pieces else block)
    return {**message, "content": content} if message else {}


def _extend(block: Piece, delta: Mapping[str, Any]) -> None:
    """Add a delta to its block; the input of a tool comes as JSON in pieces."""
    for name, value in delta.items():
        if name == "citation":
            block["citations"] = [*(block.get("citations") or []), value]
        elif isinstance(value, str) and name != "type":
            block[name] = f"{block.get(name) or ''}{value}"
        elif name != "type":
            block[name] = value


def _parse_input(text: Any) -> Any:
    try:
        return json_value(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _largest_counts(one: Mapping[str, Any], other: Mapping[str, Any]) -> Piece:
    both = dict(one)
    for name, value in other.items():
        before = both.get(name)
        if isinstance(value, Mapping):
            both[name] = _largest_counts(object_or_empty(before), value)
        elif isinstance(value, int) and isinstance(before, int):
            both[name] = max(before, value)
        elif value is not None:
            both[name] = value
    return both


def _number(event: Mapping[str, Any], name: str) -> int:
    value = event.get(name)
    if not isinstance(value, int):
        raise NotAMessage(name, "the number of a block", value)
    return value


def join_completion(events: Events) -> Piece:
    """A chat completion: its first choice, and the usage, which is in one of the last chunks."""
    whole: Piece = {}
    message: Piece = {"role": "assistant"}
    calls: dict[int, Piece] = {}
    for event in events:
        whole |= {name: event[name] for name in ("id", "model", "created", "usage", "error") if event.get(name)}
        choices = event.get("choices")
        each = choices if isinstance(choices, list) else []
        first = next((one for one in each if isinstance(one, Mapping) and not one.get("index")), {})
        for name, value in object_or_empty(first.get("delta")).items():
            if name == "tool_calls" and isinstance(value, list):
                for piece in map(object_or_empty, value):
                    _add_call(calls, piece)
            elif isinstance(value, str) and name != "role":
                message[name] = f"{message.get(name) or ''}{value}"
    if calls:
        message["tool_calls"] = list(calls.values())
    return {**whole, "choices": [{"message": message}]}


def _add_call(calls: dict[int, Piece], piece: Mapping[str, Any]) -> None:
    number = _number(piece, "index") if "index" in piece else len(calls)
    call = calls.setdefault(number, {"type": "function", "function": {"arguments": ""}})
    if piece.get("id"):
        call["id"] = piece["id"]
    stated, function = object_or_empty(piece.get("function")), call["function"]
    if stated.get("name"):
        function["name"] = stated["name"]
    function["arguments"] += str(stated.get("arguments") or "")


def join_response(events: Events) -> Piece:
    """The response that the last event holds whole; of a stream that was cut off, the items that were done."""
    ended = [event for event in events if isinstance(event.get("response"), Mapping) and "output" in event["response"]]
    if ended and ended[-1].get("type") in ("response.completed", "response.incomplete", "response.failed"):
        return dict(ended[-1]["response"])
    items = [event.get("item") for event in events if event.get("type") == "response.output_item.done"]
    return {**(ended[-1]["response"] if ended else {}), "output": [item for item in items if item]}


def join_candidate(events: Events) -> Piece:
    """An answer of Gemini: the parts of its first candidate, and the last usage. Pieces of one text become one."""
    whole: Piece = {}
    parts: list[Piece] = []
    for event in events:
        whole |= {name: value for name, value in event.items() if value}
        candidates = event.get("candidates")
        first = object_or_empty(candidates[0]) if isinstance(candidates, list) and candidates else {}
        found = object_or_empty(first.get("content")).get("parts")
        for part in map(object_or_empty, found if isinstance(found, list) else ()):
            last = parts[-1] if parts else {}
            if "text" in part and "text" in last and bool(part.get("thought")) == bool(last.get("thought")):
                parts[-1] = {**last, **part, "text": f"{last['text']}{part['text']}"}
            else:
                parts.append(dict(part))
    return {**whole, "candidates": [{"content": {"role": "model", "parts": parts}}]}


def join_converse(events: Events) -> Piece:
    """A Converse answer. The kind of an event is clear from its fields; the frame's header is not needed."""
    blocks: dict[int, Piece] = {}
    whole: Piece = {}
    for event in events:
        number = _number(event, "contentBlockIndex") if "contentBlockIndex" in event else -1
        block = blocks.setdefault(number, {})
        for name, value in object_or_empty(event.get("start")).items():
            block[name] = dict(object_or_empty(value))
        for name, value in object_or_empty(event.get("delta")).items():
            if isinstance(value, str):
                block[name] = f"{block.get(name) or ''}{value}"
                continue
            inner = block[name] = dict(object_or_empty(block.get(name)))
            for key, piece in object_or_empty(value).items():
                inner[key] = f"{inner.get(key) or ''}{piece}" if isinstance(piece, str) else piece
        if "usage" in event:
            whole["usage"] = event["usage"]
    content = []
    for block in filter(None, blocks.values()):
        use, thought = object_or_empty(block.get("toolUse")), object_or_empty(block.get("reasoningContent"))
        if "toolUse" in block:
            block = {"toolUse": {**use, "input": _parse_input(use.get("input") or "{}")}}
        elif thought and "redactedContent" not in thought:
            block = {"reasoningContent": {"reasoningText": thought}}
        content.append(block)
    return {**whole, "output": {"message": {"role": "assistant", "content": content}}}
