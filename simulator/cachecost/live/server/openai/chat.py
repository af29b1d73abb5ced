"""OpenAI's Chat Completions: POST /v1/chat/completions.

Wire form: the API reference and the types of openai 3.54. Thinking is shown as `reasoning_content`, where other makers
put it; OpenAI shows none in this API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.conversations.readers.openai.chat import from_chat
from cachecost.live.server.arrival import ReceivedCall
from cachecost.live.server.message import encode_json, pieces
from cachecost.live.server.model import ApiError
from cachecost.live.server.openai.blocks import arguments_of, calls_of, is_custom, text_of, thinking_of
from cachecost.live.server.openai.checks import body_fault
from cachecost.live.server.openai.either_api import MAKER, OpenAIApi, shown_model
from cachecost.live.server.openai.usage import chat_usage
from cachecost.live.server.served_api import ServedResponse, Wire
from cachecost.live.server.state import ServerState
from cachecost.live.server.threads import ResolvedCall

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
