"""Gemini's generateContent and streamGenerateContent. Wire form: the API reference and the types of google-genai 3.4.

A call of a function has no id, as from most of Gemini's models: results are matched by name and order. Thoughts are
shown if `includeThoughts` asks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cachecost.conversations.calls import parse_usage
from cachecost.conversations.readers.apis.gemini import camel_case, from_generate_content
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.live.keys import workspace_of
from cachecost.live.server.model import ApiError, ResolvedCall, invalid, missing_model, of_status
from cachecost.live.server.served_api import EVENTS, ReceivedCall, ServedApi, ServedResponse, Wire, encode_json, pieces
from cachecost.live.server.state import ServerState

NO_KEY = (
    "Method doesn't allow unregistered callers. Please use API Key (x-goog-api-key) or another identity to call it."
)
CODES = {529: 503, 413: 400}
"""Gemini's status of an overloaded server and of a body that is too large; the other statuses are the same."""
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""The canonical name of each HTTP status (Google's google.rpc.Code)."""
KEY_HEADER = "x-goog-api-key"
WHOLE, STREAM, COUNT = "generateContent", "streamGenerateContent", "countTokens"
Block = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GeminiApi(ServedApi):
    """Calls of one model; see `ServedApi`. `streams` and `as_events` (else an array) are what the address asks for."""

    model: str
    streams: bool = False
    as_events: bool = False
    name = "gemini"
    maker = "gemini"
    id_prefix = ""

    @property
    def stream_type(self) -> str:
        return EVENTS if self.as_events else "application/json"

    def header_fault(self, headers: Mapping[str, str]) -> ApiError | None:
        return None if workspace_of(headers) else of_status(403, NO_KEY)

    def headers(self, headers: Mapping[str, str], query: Mapping[str, str]) -> Mapping[str, str]:
        """A key in the query counts as one in its header."""
        key = query.get("key")
        return {**headers, KEY_HEADER: key} if key and KEY_HEADER not in headers else headers

    def resolve(self, served: ServerState, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
        sent = camel_case(arrived.body)
        config = object_or_empty(sent.get("generationConfig"))
        most = config.get("maxOutputTokens")
        if sent.get("cachedContent"):
            return of_status(403, "CachedContent not found (or permission denied)")
        if not sent.get("contents"):
            return invalid("* GenerateContentRequest.contents: contents is not specified")
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            return invalid("* GenerateContentRequest.generation_config.max_output_tokens: must be a positive integer")
        if config.get("candidateCount") not in (None, 1):
            return invalid("cachecost serve gives one candidate")
        body = from_generate_content(sent, self.model)
        return ResolvedCall(body, start=start, host=served.meters.host_of(self.maker, self.model))

    def is_streamed(self, sent: Mapping[str, Any]) -> bool:
        return self.streams

    def with_own_ids(self, content: list[Block], body: Mapping[str, Any]) -> list[Block]:
        """Ids as the reader gives them to calls without one: the name, and the how-maniest call of it this is."""
        before = (block for message in body["messages"] for block in message["content"])
        counts = Counter(str(block.get("name")) for block in before if block.get("type") == "tool_use")
        named = []
        for block in content:
            if block.get("type") == "tool_use":
                name = str(block["name"])
                counts[name] += 1
                block = {**block, "id": f"{name} {counts[name]}"}
            named.append(block)
        return named

    def status(self, refused: ApiError) -> int:
        return CODES.get(refused.status, refused.status)

    def error(self, refused: ApiError, request_id: str) -> Wire:
        code, model, message = self.status(refused), missing_model(refused), refused.message
        if model is not None:
            message = f"models/{model} is not found for API version v1beta, or is not supported for generateContent."
        return {"error": {"code": code, "message": message, "status": STATUSES.get(code, "UNKNOWN")}}

    def model_object(self, one: Mapping[str, Any]) -> Wire:
        return {
            "name": f"models/{one['id']}",
            "displayName": one["display_name"],
            "inputTokenLimit": one["max_input_tokens"],
            "supportedGenerationMethods": [WHOLE, COUNT],
        }

    def model_list(self, models: list[Wire]) -> Wire:
        return {"models": models}

    def whole(self, answer: ServedResponse) -> Wire:
        return _ended(answer, _parts(answer))

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        """Texts grow, calls come whole. Without `alt=sse`, the chunks are one array."""
        streamed: list[Wire] = []
        for part in _parts(answer):
            streamed += [{**part, "text": piece} for piece in pieces(part["text"])] if "text" in part else [part]
        chunks = [_piece(answer, [part]) for part in streamed[:-1]]
        chunks.append(_ended(answer, streamed[-1:] or [{"text": ""}]))
        for number, chunk in enumerate(map(encode_json, chunks)):
            if self.as_events:
                yield b"data: %b\r\n\r\n" % chunk
            else:
                yield b"%b%b" % (b",\r\n" if number else b"[", chunk)
        if not self.as_events:
            yield b"]"


def _parts(answer: ServedResponse) -> list[Wire]:
    config = object_or_empty(camel_case(answer.sent).get("generationConfig"))
    shows_thoughts = bool(object_or_empty(config.get("thinkingConfig")).get("includeThoughts"))
    parts: list[Wire] = []
    for block in answer.answer["content"]:  # Gemini has no form for other blocks
        kind, arguments = block.get("type"), block.get("input")
        if kind == "text":
            parts.append({"text": block["text"]})
        elif kind == "thinking" and shows_thoughts:
            parts.append({"text": block["thinking"], "thought": True})
        elif kind == "tool_use":
            call = {"name": block["name"], "args": arguments if isinstance(arguments, Mapping) else {}}
            parts.append({"functionCall": call})
    return parts


def _piece(answer: ServedResponse, parts: list[Wire]) -> Wire:
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    return {"candidates": [candidate], "modelVersion": answer.answer["model"], "responseId": answer.answer["id"]}


def _ended(answer: ServedResponse, parts: list[Wire]) -> Wire:
    """The last piece: it also says why the answer ends, and the usage."""
    piece, is_cut = _piece(answer, parts), answer.answer["stop_reason"] == "max_tokens"
    piece["candidates"][0]["finishReason"] = "MAX_TOKENS" if is_cut else "STOP"
    return {**piece, "usageMetadata": gemini_usage(answer.answer, answer.thinking_tokens)}


def gemini_usage(message: Mapping[str, Any], thinking_tokens: int) -> Wire:
    """The usage of a Messages answer as Gemini has it: the prompt includes what was read, and thoughts are apart."""
    usage = parse_usage(message["usage"], "usage")
    return {
        "promptTokenCount": usage.total_input,
        "candidatesTokenCount": usage.output_tokens - thinking_tokens,
        "totalTokenCount": usage.total_input + usage.output_tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.total_input}],
        **({"cachedContentTokenCount": usage.read} if usage.read else {}),
        **({"thoughtsTokenCount": thinking_tokens} if thinking_tokens else {}),
    }
