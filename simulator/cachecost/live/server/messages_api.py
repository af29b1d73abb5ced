"""Anthropic's Messages API, which is also what the server works with: nothing is converted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.live.keys import workspace_of
from cachecost.live.server.model import (
    ApiError,
    CallCharge,
    ClientCall,
    ModelAnswer,
    ResolvedCall,
    body_fault,
    error_body,
    invalid,
    of_status,
)
from cachecost.live.server.served_api import EVENTS, ReceivedCall, ServedApi, ServedResponse, Wire, as_bytes, pieces
from cachecost.live.server.state import ServerState

VERSIONS = ("2023-06-01", "2026-10-21")
VERSION = "anthropic-version"


def message_of(asked: ClientCall, answer: ModelAnswer, metered: CallCharge) -> Wire:
    """The Messages API's answer."""
    body = asked.body
    geo = "us" if body.get("inference_geo") == "us" else "global"
    usage = {**metered.usage.wire(), "service_tier": "standard", "inference_geo": geo}
    message: Wire = {
        "id": asked.id,
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [dict(block) for block in answer.content],
        "stop_reason": answer.stop_reason,
        "stop_sequence": None,
        "stop_details": None,
        "usage": {**usage, "speed": body["speed"]} if body.get("speed") else usage,
    }
    if asked.wants_diagnostics:
        message["diagnostics"] = metered.diagnostics
    if isinstance(body.get("context_management"), Mapping):
        message["context_management"] = {"applied_edits": []}
    return message


def events_of(message: Mapping[str, Any]) -> Iterator[Wire]:
    """The events of the same answer as it streams. The usage of the last delta does not split writes by TTL."""
    usage = message["usage"]
    head = {name: value for name, value in message.items() if name != "context_management"}
    first = min(1, usage["output_tokens"])
    begun = {**head, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": first}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        begun = {**block, **GROWING.get(str(block.get("type")), {})}
        if begun.get("citations"):
            begun["citations"] = []
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stops = ("stop_reason", "stop_sequence", "stop_details")
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    end: Wire = {
        "type": "message_delta",
        "delta": {name: message[name] for name in stops},
        "usage": {name: usage[name] for name in names},
    }
    if "context_management" in message:
        end["context_management"] = message["context_management"]
    yield end
    yield {"type": "message_stop"}


GROWING: dict[str, Wire] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
    "mcp_tool_use": {"input": {}},
}
"""The fields of a block that are streamed in pieces, and their first value. Other blocks come whole."""


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


class MessagesApi(ServedApi):
    """See `ServedApi`."""

    name = None
    maker = "anthropic"
    id_prefix = "msg_"
    stream_type = EVENTS

    def header_fault(self, headers: Mapping[str, str]) -> ApiError | None:
        """No key, or no known version. Any key is valid."""
        if not workspace_of(headers):
            return of_status(401, "x-api-key header is required")
        version = headers.get(VERSION)
        if not version:
            return invalid(f"{VERSION}: header is required")
        if version not in VERSIONS:
            return invalid(f'{VERSION}: "{version}" is not a valid version')
        return None

    def resolve(self, served: ServerState, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
        return served.threads.resolve(arrived.workspace, arrived.body, start)

    def fault(self, arrived: ReceivedCall, resolved: ResolvedCall) -> ApiError | None:
        return body_fault(resolved.body, arrived.version)

    def keep(self, served: ServerState, arrived: ReceivedCall, resolved: ResolvedCall, answer: ServedResponse) -> None:
        assert not isinstance(answer.message, ApiError)
        served.threads.keep(arrived.workspace, resolved, answer.message)

    def error(self, refused: ApiError, request_id: str) -> dict[str, Any]:
        return error_body(refused, request_id)

    def whole(self, answer: ServedResponse) -> Mapping[str, Any]:
        assert not isinstance(answer.message, ApiError)
        return answer.message

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        return as_bytes(events_of(self.whole(answer)))


MESSAGES = MessagesApi()
