"""A request body that stands alone, without the address it was sent to: its keys show whose API it is for.

Typed netstrings as mitmproxy writes them: LENGTH:DATA and a byte for the type, one value after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from cachecost.base.limits import LINE
from cachecost.conversations.readers.http.bodies import Api
from cachecost.conversations.readers.http.exchange import KINDS, from_converse, from_generate_content
from cachecost.conversations.readers.openai.chat import from_chat
from cachecost.conversations.readers.openai.responses import from_responses
from cachecost.prompts.request import NotAMessage
from cachecost.providers.hosts import host_of_model, parse_model_name

NAMES: Mapping[Api, str] = {
    "messages": "Anthropic's Messages API",
    "converse": "Bedrock's Converse API",
    "chat": "OpenAI's Chat Completions API",
    "responses": "OpenAI's Responses API",
    "gemini": "Gemini's generateContent",
}
HOSTS: Mapping[Api, str] = {"converse": "bedrock", "gemini": "gemini"}
OF_CONVERSE = frozenset({"modelId", "inferenceConfig", "toolConfig", "additionalModelRequestFields"})
OF_CHAT = frozenset(
    {"max_completion_tokens", "reasoning_effort", "response_format", "functions", "parallel_tool_calls", "logit_bias"}
)
OF_MESSAGES = frozenset({"system", "cache_control", "thinking", "output_config", "anthropic_version"})
ROLES_OF_CHAT = frozenset({"developer", "tool", "function"})


class BareBody(NamedTuple):
    """A body as one of the Messages API. `host` is "" where neither its API nor its model shows one."""

    api: Api
    body: dict[str, Any]
    host: str


def api_of(body: Mapping[str, Any]) -> Api | None:
    """Whose API a body is for; None if it is no request."""
    messages = body.get("messages")
    if "contents" in body:
        return "gemini"
    if not isinstance(messages, list):
        is_input = "input" in body and "model" in body
        return "responses" if is_input else "messages" if "messages" in body else None
    if OF_CONVERSE & body.keys() or any(map(_is_of_converse, messages)):
        return "converse"
    if OF_MESSAGES & body.keys():
        return "messages"
    tools = [tool for tool in body.get("tools") or () if isinstance(tool, Mapping)]
    is_chat = OF_CHAT & body.keys() or any("function" in tool for tool in tools) or _has_roles_of_chat(messages)
    return "chat" if is_chat or host_of_model(str(body.get("model"))) not in ("", "anthropic") else "messages"


def _is_of_converse(message: Any) -> bool:
    content = message.get("content") if isinstance(message, Mapping) else None
    blocks = content if isinstance(content, list) else ()
    return any(isinstance(block, Mapping) and "type" not in block and KINDS & block.keys() for block in blocks)


def _has_roles_of_chat(messages: list[Any]) -> bool:
    """The Messages API has no message of a tool, and none of the system before the first of the user."""
    roles = [message.get("role") for message in messages if isinstance(message, Mapping)]
    return not ROLES_OF_CHAT.isdisjoint(map(str, roles)) or roles[:1] == ["system"]


def messages_body(body: Mapping[str, Any]) -> BareBody:
    """The body as one of the Messages API. Raises NotAMessage with a path in the body as it is."""
    api = api_of(body) or "messages"
    if api == "messages":
        return BareBody(api, dict(body), "")
    name = body.get("modelId") or body.get("model")
    if not isinstance(name, str) or not name:
        key = "modelId" if api == "converse" else "model"
        raise NotAMessage(key, "a model id, which this API has in the URL" if api in HOSTS else "a model id", name)
    model, host = parse_model_name(name.removeprefix("models/"), HOSTS.get(api, ""))
    host = host or HOSTS.get(api) or host_of_model(model)
    if api == "converse":
        return BareBody(api, from_converse(body, model), host)
    if api == "gemini":
        return BareBody(api, from_generate_content(body, model), host)
    return BareBody(api, (from_chat if api == "chat" else from_responses)({**body, "model": model}), host)


MOST_DIGITS = 12
DEEPEST = 40
PIECE = 1 << 20


class DamagedNetstring(ValueError):
    """Bytes that are not a typed netstring, and their position."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(f"{what} at byte {at}")


class TruncatedNetstring(DamagedNetstring):
    """A value whose end is missing."""


def values(stream: BinaryIO) -> Iterator[Any]:
    """The values of a file. Raises DamagedNetstring, or TruncatedNetstring if the file ends within a value."""
    at = 0
    while head := stream.read(1):
        length, digits = _length(stream, head, at)
        most = LINE.value()
        data = _data(stream, min(length, most) + 1)
        if length > most and len(data) > most:
            raise DamagedNetstring(at, str(LINE.error()))
        if len(data) < length + 1:
            raise TruncatedNetstring(at, "an incomplete value")
        start = at + digits + 1
        yield _Parser(data, start).value(0, length, data[length], 0)
        at = start + length + 1


def _length(stream: BinaryIO, head: bytes, at: int) -> tuple[int, int]:
    """(the length before the colon, how many digits it has)."""
    digits = head
    while len(digits) <= MOST_DIGITS and digits.isdigit():
        byte = stream.read(1)
        if byte == b":":
            return int(digits), len(digits)
        if not byte:
            raise TruncatedNetstring(at, "an incomplete length")
        digits += byte
    raise DamagedNetstring(at, "expected a length")


def _data(stream: BinaryIO, length: int) -> bytes:
    """Up to `length` bytes; memory is only taken for bytes that exist."""
    pieces = []
    while length > 0 and (piece := stream.read(min(PIECE, length))):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


class _Parser:
    """One value that is whole in memory; `offset` is where its data begin in the file."""

    def __init__(self, data: bytes, offset: int) -> None:
        self._data = data
        self._offset = offset

    def value(self, start: int, end: int, kind: int, depth: int) -> Any:
        if depth > DEEPEST:
            raise self._error(start, "nested too deeply")
        if kind in b"]}":
            items = list(self._items(start, end, depth + 1))
            return items if kind == ord("]") else self._mapping(items, start)
        return self._scalar(self._data[start:end], kind, start)

    def _scalar(self, data: bytes, kind: int, start: int) -> Any:
        if kind == ord(","):
            return data
        try:
            if kind == ord(";"):
                return data.decode()
            if kind in b"#^":
                return int(data) if kind == ord("#") else float(data)
            return {b"true!": True, b"false!": False, b"~": None}[data + bytes([kind])]
        except (ValueError, KeyError):
            raise self._error(start, "a value that does not match its type") from None

    def _items(self, start: int, end: int, depth: int) -> Iterator[Any]:
        while start < end:
            colon = self._data.find(b":", start, min(end, start + MOST_DIGITS + 1))
            digits = self._data[start:colon] if colon > start else b""
            if not digits.isdigit():
                raise self._error(start, "expected a length")
            first, last = colon + 1, colon + 1 + int(digits)
            if last >= end:
                raise self._error(start, "a length beyond the end of its value")
            yield self.value(first, last, self._data[last], depth)
            start = last + 1

    def _mapping(self, items: list[Any], start: int) -> dict[str, Any]:
        """Keys are texts; old files have bytes."""
        keys = [key.decode("latin-1") if isinstance(key, bytes) else key for key in items[::2]]
        if len(items) % 2 or not all(isinstance(key, str) for key in keys):
            raise self._error(start, "expected pairs of keys and values")
        return dict(zip(keys, items[1::2], strict=True))

    def _error(self, start: int, what: str) -> DamagedNetstring:
        return DamagedNetstring(self._offset + start, what)
