"""The answer to a call, as one object and as a stream of events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cachecost.live.server.model import CallCharge, ClientCall, ModelAnswer

Wire = dict[str, Any]
MOST_PIECES = 40
LETTERS = 24
"""The usual length of a piece of streamed text; a long text comes in MOST_PIECES."""


def message_of(asked: ClientCall, answer: ModelAnswer, metered: CallCharge) -> Wire:
    """The Messages API's answer."""
    message: Wire = {
        "id": asked.id,
        "type": "message",
        "role": "assistant",
        "model": asked.body["model"],
        "content": [dict(block) for block in answer.content],
        "stop_reason": answer.stop_reason,
        "stop_sequence": None,
        "stop_details": None,
        "usage": _usage(asked.body, metered),
    }
    if asked.wants_diagnostics:
        message["diagnostics"] = metered.diagnostics
    if isinstance(asked.body.get("context_management"), Mapping):
        message["context_management"] = {"applied_edits": []}
    return message


def _usage(body: Mapping[str, Any], metered: CallCharge) -> Wire:
    geo = "us" if body.get("inference_geo") == "us" else "global"
    usage = {**metered.usage.wire(), "service_tier": "standard", "inference_geo": geo}
    return {**usage, "speed": body["speed"]} if body.get("speed") else usage


def events_of(message: Mapping[str, Any]) -> Iterator[Wire]:
    """The events of the same answer as it streams; the `ping` comes once the answer has begun."""
    usage = message["usage"]
    head = {name: value for name, value in message.items() if name != "context_management"}
    first = min(1, usage["output_tokens"])
    begun = {**head, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": first}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        yield {"type": "content_block_start", "index": index, "content_block": _begin_block(block)}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield _end(message)
    yield {"type": "message_stop"}


def _end(message: Mapping[str, Any]) -> Wire:
    """The last delta. Its usage does not split writes by TTL."""
    stops = ("stop_reason", "stop_sequence", "stop_details")
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    event: Wire = {
        "type": "message_delta",
        "delta": {name: message[name] for name in stops},
        "usage": {name: message["usage"][name] for name in names},
    }
    if "context_management" in message:
        event["context_management"] = message["context_management"]
    return event


GROWING: dict[str, Wire] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
    "mcp_tool_use": {"input": {}},
}
"""The fields of a block that are streamed in pieces, and their first value. Other blocks come whole."""


def _begin_block(block: Mapping[str, Any]) -> Wire:
    begun = {**block, **GROWING.get(str(block.get("type")), {})}
    if begun.get("citations"):
        begun["citations"] = []
    return begun


def _deltas(block: Mapping[str, Any]) -> Iterator[Wire]:
    kind = str(block.get("type"))
    if kind == "text":
        yield from ({"type": "citations_delta", "citation": one} for one in block.get("citations") or ())
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
    elif kind == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block.get("signature") or ""}
    elif kind in GROWING:
        text = json.dumps(block.get("input") or {}, ensure_ascii=False)
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces(text)))


def pieces(text: str) -> Iterator[str]:
    """The pieces of a streamed text: at least three if it has as many characters."""
    parts = min(MOST_PIECES, max(3, len(text) // LETTERS))
    size = max(1, -(-len(text) // parts))
    return (text[start : start + size] for start in range(0, len(text), size))


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Compact JSON; a lone surrogate is escaped, since it cannot be encode_record."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def as_bytes(events: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Server-sent events."""
    for event in events:
        yield b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), encode_json(event))
