"""What each API that the server speaks must have, a call that has arrived, and the Messages API, which all become."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from cachecost.conversations.readers.http.exchange import parameters_in
from cachecost.live.keys import query_secrets, remove_secrets, secrets_in, secrets_of, workspace_of
from cachecost.live.request_log import COMPRESSIONS, decompressor
from cachecost.live.server.model import (
    INVALID,
    ApiError,
    CallCharge,
    ClientCall,
    DetailedError,
    ModelAnswer,
    ResolvedCall,
    body_fault,
    error_body,
    invalid,
    of_status,
)
from cachecost.live.server.state import InjectedFault, ServerState

Wire = dict[str, Any]
EVENTS = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ServedResponse:
    """What goes to the client of `api`: an answer or an error, when, and a fault to inject.

    `message` is an answer of the Messages API, `sent` the body as the client sent it. `start` is when the call began,
    in seconds since the epoch; `thinking_tokens` are part of the output.
    """

    request_id: str
    message: Mapping[str, Any] | ApiError
    api: ServedApi
    sent: Mapping[str, Any] = field(default_factory=dict)
    start: float = 0.0
    streams: bool = False
    first_token_s: float = 0.0
    seconds: float = 0.0
    fault: InjectedFault | None = None
    thinking_tokens: int = 0

    @property
    def answer(self) -> Mapping[str, Any]:
        """The message of a call that was not refused."""
        assert not isinstance(self.message, ApiError)
        return self.message


class ServedApi(Protocol):
    """How an API words its calls, answers and errors; each inherits from it what it does not do otherwise.

    `name` is what a record calls it (None: the Messages API), `id_prefix` begins the ids of its answers, and
    `stream_type` is the content type of a stream. `maker` is the host whose models it has.
    """

    name: ClassVar[str | None]
    id_prefix: ClassVar[str]
    maker: ClassVar[str]

    @property
    def stream_type(self) -> str: ...

    def header_fault(self, headers: Mapping[str, str]) -> ApiError | None:
        """Why these headers are refused."""

    def headers(self, headers: Mapping[str, str], query: Mapping[str, str]) -> Mapping[str, str]:
        """The headers of a call, with what its query says instead of them."""
        return headers

    def resolve(self, served: ServerState, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
        """The complete Messages call of a body. Raises NotAMessage."""

    def fault(self, arrived: ReceivedCall, resolved: ResolvedCall) -> ApiError | None:
        """The first error in a complete call, apart from its prompt."""
        return None

    def is_streamed(self, sent: Mapping[str, Any]) -> bool:
        """Whether the answer to a valid body is a stream."""
        return bool(sent.get("stream"))

    def with_own_ids(self, content: list[Mapping[str, Any]], body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The blocks of an answer, with ids of tool calls as this API writes them. `body` is the Messages call."""
        return content

    def keep(self, served: ServerState, arrived: ReceivedCall, resolved: ResolvedCall, answer: ServedResponse) -> None:
        """Store what later calls may refer to."""
        return

    def status(self, refused: ApiError) -> int:
        return refused.status

    def error(self, refused: ApiError, request_id: str) -> Wire:
        """The body of an error."""

    def whole(self, answer: ServedResponse) -> Mapping[str, Any]:
        """The answer as one object."""

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        """The answer as a stream."""

    def model_object(self, one: Mapping[str, Any]) -> Mapping[str, Any]:
        """A model, of its wire object in the Messages API."""
        return one

    def model_list(self, models: list[Wire]) -> Mapping[str, Any]:
        return {"data": models}


LARGEST = 32 * 1024 * 1024
"""Bytes of a Messages body, as sent and unpacked (Anthropic's request size limits)."""
RETRY = "x-stainless-retry-count"
PLACEHOLDER = "anything"
"""The key that `serve` suggests. It is an ordinary word, not a secret."""
MOST_NESTED = 200
"""Levels of a body. A schema has about ten; functions that walk a body recurse once or twice per level."""
MOST_RETRIES = 10**9
NO_JSON = "The request body is not valid JSON"
TOO_LARGE = "Request exceeds the maximum size"


@dataclass(frozen=True, slots=True)
class ReceivedCall:
    """A call with valid headers and body. `data` is the decoded body as bytes, `body` the parsed object.

    The call's API key and its credentials for other servers are removed from the body: everything that is shown,
    recorded or answered comes from here.
    """

    body: Mapping[str, Any]
    data: bytes
    version: str
    workspace: str
    retry: int


async def receive_call(
    api: ServedApi, headers: Mapping[str, str], chunks: AsyncIterator[bytes], query: str = ""
) -> ReceivedCall | ApiError:
    """Read a call of `api` to its end and parse it. `query` is that of its URL, which may hold the key.

    A body that is too large is read to its end too, because clients listen only then.
    """
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size <= LARGEST:
            parts.append(chunk)
    if fault := api.header_fault(headers):
        return fault
    if size > LARGEST:
        return of_status(413, TOO_LARGE)
    data = unpack_body(b"".join(parts), headers.get("content-encoding", ""))
    if isinstance(data, ApiError):
        return data
    clean = remove_secrets(data, secrets_of([*keys_in(headers), *query_secrets(query)], data))
    body = parse_body(clean)
    if isinstance(body, ApiError):
        return body
    count = headers.get(RETRY, "")
    retry = int(count[: len(str(MOST_RETRIES)) + 1]) if count.isascii() and count.isdecimal() else 0
    if retry >= MOST_RETRIES:
        return invalid(f"{RETRY}: expected fewer than {MOST_RETRIES:,} retries")
    body = {**parameters_in(headers), **body}
    return ReceivedCall(body, clean, headers.get("anthropic-version", ""), workspace_of(headers), retry)


def keys_in(headers: Mapping[str, str]) -> list[str]:
    """The call's keys, which must not be shown or stored."""
    return [secret for secret in secrets_in(headers.items()) if secret != PLACEHOLDER]


def unpack_body(data: bytes, encodings: str) -> bytes | ApiError:
    """Decode a body's content encodings, the last one first. At most LARGEST bytes are produced."""
    for encoding in reversed([name.strip().lower() for name in encodings.split(",")]):
        if encoding in ("", "identity"):
            continue
        if encoding not in COMPRESSIONS:
            return _encoding("unsupported", f"content-encoding: '{encoding}' is not supported; use gzip or deflate")
        damaged = _encoding("invalid", f"The request body is not valid for its content-encoding '{encoding}'")
        unpacker = decompressor(encoding, data)
        try:
            data = unpacker.decompress(data, LARGEST + 1)
        except zlib.error:
            return damaged
        if len(data) > LARGEST:
            code = {"error_code": "request_body_too_large_after_decoding"}
            return DetailedError(413, "request_too_large", TOO_LARGE, details=code)
        if not unpacker.eof:
            return damaged
    return data


def _encoding(code: str, message: str) -> ApiError:
    return DetailedError(400, INVALID, message, details={"error_code": f"request_body_encoding_{code}"})


def parse_body(data: bytes) -> Mapping[str, Any] | ApiError:
    """The JSON object of a body. What would damage a log is refused: NaN, 1e400, half of a surrogate pair."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    def finite(word: str) -> float:
        if math.isinf(number := float(word)):
            raise ValueError(word)
        return number

    try:
        body = json.loads(data.decode(), parse_constant=refuse, parse_float=finite)
    except (ValueError, RecursionError):
        return invalid(NO_JSON)
    if not isinstance(body, Mapping):
        return invalid("Input should be a valid dictionary")
    level: list[Any] = [body]
    for _ in range(MOST_NESTED):
        values = (inner for one in level for inner in (one.values() if isinstance(one, dict) else one))
        level = [inner for inner in values if isinstance(inner, dict | list)]
    if level:
        return invalid(f"{NO_JSON}: nested more than {MOST_NESTED} levels deep")
    if re.search(rb"\\u[dD][89a-fA-F]", data):
        try:
            json.dumps(body, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            return invalid(f"{NO_JSON}: lone surrogate in a string")
    return body


MOST_PIECES, LETTERS = 40, 24
"""The usual length of a piece of streamed text; a long text comes in MOST_PIECES."""


def pieces(text: str) -> Iterator[str]:
    """The pieces of a streamed text: at least three if it has as many characters."""
    parts = min(MOST_PIECES, max(3, len(text) // LETTERS))
    size = max(1, -(-len(text) // parts))
    return (text[start : start + size] for start in range(0, len(text), size))


def encode_json(value: Mapping[str, Any]) -> bytes:
    """Compact JSON; a lone surrogate is escaped, since it cannot be encoded."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def as_bytes(events: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    for event in events:
        yield b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), encode_json(event))


VERSIONS = ("2023-06-01", "2026-10-21")
VERSION = "anthropic-version"


def message_of(asked: ClientCall, answer: ModelAnswer, metered: CallCharge) -> Wire:
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
        served.threads.keep(arrived.workspace, resolved, answer.answer)

    def error(self, refused: ApiError, request_id: str) -> dict[str, Any]:
        return error_body(refused, request_id)

    def whole(self, answer: ServedResponse) -> Mapping[str, Any]:
        return answer.answer

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        return as_bytes(events_of(self.whole(answer)))


MESSAGES = MessagesApi()
