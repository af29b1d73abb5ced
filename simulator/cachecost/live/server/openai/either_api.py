"""What OpenAI's two APIs have in common.

The blocks of a Messages answer as OpenAI's APIs need them. Blocks that they have no form for are left out.

OpenAI's error bodies, and its checks of headers.

OpenAI's Chat Completions: POST /v1/chat/completions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cachecost.conversations.readers.apis.openai import from_chat
from cachecost.live.keys import workspace_of
from cachecost.live.server.arrival import EVENTS, ReceivedCall, ServedApi, ServedResponse, Wire, encode_json, pieces
from cachecost.live.server.model import EXPLICIT, INVALID, OF_STATUS, ApiError, ResolvedCall, missing_model, of_status
from cachecost.live.server.openai.usage import body_fault, chat_usage
from cachecost.live.server.state import ServerState

Block = Mapping[str, Any]
OWN, THEIRS = "toolu_", "call_"


def with_own_ids(content: Iterable[Block]) -> list[Block]:
    """The blocks with ids of tool calls that begin as OpenAI's do; those of a recording stay."""
    return [
        {**block, "id": _own_id(str(block["id"]))} if block.get("type") == "tool_use" else block for block in content
    ]


def _own_id(name: str) -> str:
    return THEIRS + name.removeprefix(OWN) if name.startswith(OWN) else name


def text_of(content: Iterable[Block]) -> str:
    return "".join(str(block["text"]) for block in content if block.get("type") == "text")


def thinking_of(content: Iterable[Block]) -> str:
    return "".join(str(block["thinking"]) for block in content if block.get("type") == "thinking")


def calls_of(content: Iterable[Block]) -> list[Block]:
    return [block for block in content if block.get("type") == "tool_use"]


def arguments_of(call: Block) -> str:
    """The input of a tool call as JSON text; a text stays what the model wrote."""
    given = call.get("input")
    return given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)


def is_custom(name: str, sent: Mapping[str, Any]) -> bool:
    """Whether the tool of this name takes a text instead of arguments. Chat Completions nests its definition."""
    offered = [tool for tool in sent.get("tools") or () if isinstance(tool, Mapping) and tool.get("type") == "custom"]
    return any(
        (inner if isinstance(inner := tool.get("custom"), Mapping) else tool).get("name") == name for tool in offered
    )


NO_KEY = "You didn't provide an API key. Provide it in an Authorization header: Authorization: Bearer YOUR_KEY"
OVERLOADED = 529
STATUSES = {OVERLOADED: 503}
"""OpenAI's status of an overloaded server; the other statuses are the same."""
TYPES = {429: "requests", 500: "server_error", 503: "server_error"}
"""Error types by status; all others are `invalid_request_error` (OpenAI's page on error codes, November 2026)."""
CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
PARAMETER = re.compile(r"([a-z_]+(?:\.[a-z_0-9]+)*): ")
"""What a message begins with if it names a part of the body."""


def header_fault(headers: Mapping[str, str]) -> ApiError | None:
    """Why these headers are refused: without a key. Any key is valid."""
    return None if workspace_of(headers) else of_status(401, NO_KEY)


def status_of(refused: ApiError) -> int:
    return STATUSES.get(refused.status, refused.status)


def error_body(refused: ApiError) -> dict[str, Any]:
    """The body of an error response. A type that is not Anthropic's (a script may say any) stays."""
    status, named = status_of(refused), PARAMETER.match(refused.message)
    kind = TYPES.get(status, INVALID) if refused.type in OF_STATUS.values() else refused.type
    error: dict[str, Any] = {"message": refused.message, "type": kind, "param": named and named[1]}
    if (model := missing_model(refused)) is not None:
        message = f"The model `{model}` does not exist or you do not have access to it."
        error |= {"message": message, "param": None, "code": "model_not_found"}
    else:
        error["code"] = getattr(refused, "details", {}).get("error_code") or CODES.get(status)
    return {"error": error}


MAKER = "openai"


def shown_model(message: Mapping[str, Any]) -> str:
    """The model of an answer as the API names it: the mode of its cache is none of its name."""
    return str(message["model"]).removesuffix(EXPLICIT)


class OpenAIApi(ServedApi):
    """See `ServedApi`."""

    stream_type = EVENTS

    def header_fault(self, headers: Mapping[str, str]) -> ApiError | None:
        return header_fault(headers)

    def with_own_ids(self, content: list[Mapping[str, Any]], body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return with_own_ids(content)

    def status(self, refused: ApiError) -> int:
        return status_of(refused)

    def error(self, refused: ApiError, request_id: str) -> Wire:
        return error_body(refused)


LIMITS = {"max_completion_tokens": 1, "max_tokens": 1}
REASONS = {"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
"""`finish_reason` by stop reason; any other is "stop"."""
DONE = b"data: [DONE]\n\n"


class ChatApi(OpenAIApi):
    """See `ServedApi`."""

    name = "chat"
    id_prefix = "chatcmpl-"

    def resolve(self, served: ServerState, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
        if refused := body_fault(arrived.body, "messages", LIMITS):
            return refused
        body = from_chat(arrived.body)
        return ResolvedCall(body, start=start, host=served.meters.host_of(MAKER, body["model"]))

    def whole(self, answer: ServedResponse) -> Wire:
        assert not isinstance(answer.message, ApiError)
        content = answer.message["content"]
        calls = [_call(call, answer.sent) for call in calls_of(content)]
        message: Wire = {"role": "assistant", "content": text_of(content) or None, "refusal": None, "annotations": []}
        if calls:
            message["tool_calls"] = calls
        if thinking := thinking_of(content):
            message["reasoning_content"] = thinking
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(answer.message)}
        return {
            **_head(answer, "chat.completion"),
            "choices": [choice],
            "usage": chat_usage(answer.message, answer.thinking_tokens),
        }

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        for chunk in _chunks(answer):
            yield b"data: %b\n\n" % encode_json(chunk)
        yield DONE


CHAT = ChatApi()


def _head(answer: ServedResponse, kind: str) -> Wire:
    assert not isinstance(answer.message, ApiError)
    return {
        "id": answer.message["id"],
        "object": kind,
        "created": int(answer.start),
        "model": shown_model(answer.message),
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _reason(message: Mapping[str, Any]) -> str:
    return REASONS.get(str(message["stop_reason"]), "stop")


def _call(call: Mapping[str, Any], sent: Mapping[str, Any]) -> Wire:
    kind, field = _form(call, sent)
    return {"id": call["id"], "type": kind, kind: {"name": call["name"], field: arguments_of(call)}}


def _form(call: Mapping[str, Any], sent: Mapping[str, Any]) -> tuple[str, str]:
    """(the type of a call, the field of what it passes)."""
    return ("custom", "input") if is_custom(call["name"], sent) else ("function", "arguments")


def _chunks(answer: ServedResponse) -> Iterator[Wire]:
    """The chunks. With `stream_options.include_usage`, the last one has the usage and the others a null."""
    assert not isinstance(answer.message, ApiError)
    told = answer.sent.get("stream_options")
    with_usage = isinstance(told, Mapping) and bool(told.get("include_usage"))
    head = {**_head(answer, "chat.completion.chunk"), **({"usage": None} if with_usage else {})}
    for delta in _deltas(answer.message["content"], answer.sent):
        yield {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
    end = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": _reason(answer.message)}
    yield {**head, "choices": [end]}
    if with_usage:
        yield {**head, "choices": [], "usage": chat_usage(answer.message, answer.thinking_tokens)}


def _deltas(content: list[Mapping[str, Any]], sent: Mapping[str, Any]) -> Iterator[Wire]:
    yield {"role": "assistant", "content": "" if text_of(content) else None, "refusal": None}
    yield from ({"reasoning_content": piece} for piece in pieces(thinking_of(content)))
    yield from ({"content": piece} for piece in pieces(text_of(content)))
    for index, call in enumerate(calls_of(content)):
        kind, field = _form(call, sent)
        begun = {"name": call["name"], field: ""}
        yield {"tool_calls": [{"index": index, "id": call["id"], "type": kind, kind: begun}]}
        for piece in pieces(arguments_of(call)):
            yield {"tool_calls": [{"index": index, kind: {field: piece}}]}
