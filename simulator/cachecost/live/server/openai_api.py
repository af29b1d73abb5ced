"""OpenAI's Chat Completions and Responses: calls turned into Messages calls, and Messages answers turned back.

Wire forms and field names: the API reference and the types of openai 3.54. Blocks that the two APIs have no form for
are left out. Usage includes what was read from the cache or written to it; Chat Completions splits no writes by TTL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from cachecost.conversations.calls import parse_usage
from cachecost.conversations.readers.apis.openai import from_chat, from_responses
from cachecost.live.keys import workspace_of
from cachecost.live.server.model import (
    INVALID,
    OF_STATUS,
    WAYS,
    ApiError,
    ResolvedCall,
    invalid,
    missing_model,
    of_status,
)
from cachecost.live.server.served_api import (
    EVENTS,
    ReceivedCall,
    ServedApi,
    ServedResponse,
    Wire,
    as_bytes,
    encode_json,
    pieces,
)
from cachecost.live.server.state import ServerState

Block = Mapping[str, Any]
OWN, THEIRS = "toolu_", "call_"


def joined(content: Iterable[Block], kind: Literal["text", "thinking"]) -> str:
    return "".join(str(block[kind]) for block in content if block.get("type") == kind)


def calls_of(content: Iterable[Block]) -> list[Block]:
    return [block for block in content if block.get("type") == "tool_use"]


def arguments_of(call: Block) -> str:
    """The input of a tool call as JSON text; a text stays what the model wrote."""
    given = call.get("input")
    return given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)


def call_form(call: Block, sent: Mapping[str, Any]) -> tuple[str, str]:
    """The type of a tool call and the field of its arguments or text; Chat Completions nests its definition."""
    offered = [tool for tool in sent.get("tools") or () if isinstance(tool, Mapping) and tool.get("type") == "custom"]
    named = (inner if isinstance(inner := tool.get("custom"), Mapping) else tool for tool in offered)
    is_custom = any(tool.get("name") == call["name"] for tool in named)
    return ("custom", "input") if is_custom else ("function", "arguments")


NO_KEY = "You didn't provide an API key. Provide it in an Authorization header: Authorization: Bearer YOUR_KEY"
STATUSES = {529: 503}
"""OpenAI's status of an overloaded server; the other statuses are the same."""
TYPES = {429: "requests", 500: "server_error", 503: "server_error"}
"""Error types by status; all others are `invalid_request_error` (OpenAI's page on error codes, November 2026)."""
CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
PARAMETER = re.compile(r"([a-z_]+(?:\.[a-z_0-9]+)*): ")
"""What a message begins with if it names a part of the body."""


def shown_model(message: Mapping[str, Any]) -> str:
    """The model of an answer as the API names it: the mode of its cache is none of its name."""
    return WAYS.sub("", str(message["model"]))


class OpenAIApi(ServedApi):
    stream_type = EVENTS
    maker = "openai"

    def header_fault(self, headers: Mapping[str, str]) -> ApiError | None:
        return None if workspace_of(headers) else of_status(401, NO_KEY)

    def with_own_ids(self, content: list[Block], body: Mapping[str, Any]) -> list[Block]:
        """Ids of tool calls that begin as OpenAI's do; those of a recording stay."""
        return [
            {**block, "id": THEIRS + str(block["id"]).removeprefix(OWN)}
            if block.get("type") == "tool_use" and str(block["id"]).startswith(OWN)
            else block
            for block in content
        ]

    def status(self, refused: ApiError) -> int:
        return STATUSES.get(refused.status, refused.status)

    def error(self, refused: ApiError, request_id: str) -> Wire:
        """A type that is not Anthropic's (a script may say any) stays."""
        status, named = self.status(refused), PARAMETER.match(refused.message)
        kind = TYPES.get(status, INVALID) if refused.type in OF_STATUS.values() else refused.type
        error: Wire = {"message": refused.message, "type": kind, "param": named and named[1]}
        if (model := missing_model(refused)) is not None:
            message = f"The model `{WAYS.sub('', model)}` does not exist or you do not have access to it."
            error |= {"message": message, "param": None, "code": "model_not_found"}
        else:
            error["code"] = getattr(refused, "details", {}).get("error_code") or CODES.get(status)
        return {"error": error}

    def model_object(self, one: Mapping[str, Any]) -> Wire:
        created = int(datetime.fromisoformat(one["created_at"]).timestamp())
        return {"id": one["id"], "object": "model", "created": created, "owned_by": "openai"}

    def model_list(self, models: list[Wire]) -> Wire:
        return {"object": "list", "data": models}


def body_fault(body: Mapping[str, Any], asked: str, limits: Mapping[str, int]) -> ApiError | None:
    """The first error in `body`; `asked` is the field of the prompt, `limits` the least value of each output limit."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        return invalid("you must provide a model parameter")
    if body.get(asked) in (None, [], ""):
        return invalid(f"{asked}: Missing required parameter")
    if not isinstance(body.get("stream") or False, bool):
        return invalid("stream: expected a boolean")
    for name, least in limits.items():
        value = body.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            return invalid(f"{name}: expected an integer")
        if value is not None and value < least:
            expected = f"Expected a value >= {least}, but got {value} instead"
            return invalid(f"{name}: integer below minimum value. {expected}.")
    if body.get("n") not in (None, 1):
        return invalid("n: cachecost serve gives one choice")
    return invalid("background: cachecost serve answers at once") if body.get("background") else None


def chat_usage(message: Mapping[str, Any], thinking_tokens: int) -> Wire:
    """The usage of a Messages answer as Chat Completions has it. `thinking_tokens` are part of its output."""
    usage = parse_usage(message["usage"], "usage")
    return {
        "prompt_tokens": usage.total_input,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_input + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.read, "cache_write_tokens": usage.write, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thinking_tokens, "audio_tokens": 0},
    }


def responses_usage(message: Mapping[str, Any], thinking_tokens: int) -> Wire:
    """The same as Responses has it."""
    usage = parse_usage(message["usage"], "usage")
    written = {"ttl_30m_tokens": usage.write_5m, "ttl_12h_tokens": usage.write_1h}
    cached = {"cached_tokens": usage.read, "cache_write_tokens": usage.write}
    return {
        "input_tokens": usage.total_input,
        "input_tokens_details": {**cached, "cache_write_tokens_details": written},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": thinking_tokens},
        "total_tokens": usage.total_input + usage.output_tokens,
    }


REASONS = {"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
"""`finish_reason` by stop reason; any other is "stop"."""


class ChatApi(OpenAIApi):
    name = "chat"
    id_prefix = "chatcmpl-"

    def resolve(self, served: ServerState, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
        if refused := body_fault(arrived.body, "messages", {"max_completion_tokens": 1, "max_tokens": 1}):
            return refused
        body = from_chat(arrived.body)
        return ResolvedCall(body, start=start, host=served.meters.host_of(self.maker, body["model"]))

    def whole(self, answer: ServedResponse) -> Wire:
        content = answer.answer["content"]
        calls = []
        for call in calls_of(content):
            kind, field = call_form(call, answer.sent)
            form = {"name": call["name"], field: arguments_of(call)}
            calls.append({"id": call["id"], "type": kind, kind: form})
        text = joined(content, "text") or None
        message: Wire = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        if calls:
            message["tool_calls"] = calls
        if thinking := joined(content, "thinking"):
            message["reasoning_content"] = thinking
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(answer.answer)}
        return {
            **_chat_head(answer, "chat.completion"),
            "choices": [choice],
            "usage": chat_usage(answer.answer, answer.thinking_tokens),
        }

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        for chunk in self._chunks(answer):
            yield b"data: %b\n\n" % encode_json(chunk)
        yield b"data: [DONE]\n\n"

    def _chunks(self, answer: ServedResponse) -> Iterator[Wire]:
        """The chunks. With `stream_options.include_usage`, the last one has the usage and the others a null."""
        options, content = answer.sent.get("stream_options"), answer.answer["content"]
        with_usage = isinstance(options, Mapping) and bool(options.get("include_usage"))
        head = {**_chat_head(answer, "chat.completion.chunk"), **({"usage": None} if with_usage else {})}
        text, thinking = joined(content, "text"), joined(content, "thinking")
        deltas: list[Wire] = [{"role": "assistant", "content": "" if text else None, "refusal": None}]
        deltas += [{"reasoning_content": piece} for piece in pieces(thinking)]
        deltas += [{"content": piece} for piece in pieces(text)]
        for index, call in enumerate(calls_of(content)):
            kind, field = call_form(call, answer.sent)
            begun = {"name": call["name"], field: ""}
            deltas.append({"tool_calls": [{"index": index, "id": call["id"], "type": kind, kind: begun}]})
            deltas += [{"tool_calls": [{"index": index, kind: {field: piece}}]} for piece in pieces(arguments_of(call))]
        for delta in deltas:
            yield {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
        end = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": _finish_reason(answer.answer)}
        yield {**head, "choices": [end]}
        if with_usage:
            yield {**head, "choices": [], "usage": chat_usage(answer.answer, answer.thinking_tokens)}


CHAT = ChatApi()


def _chat_head(answer: ServedResponse, kind: str) -> Wire:
    return {
        "id": answer.answer["id"],
        "object": kind,
        "created": int(answer.start),
        "model": shown_model(answer.answer),
        "service_tier": _tier_of(answer),
        "system_fingerprint": None,
    }


def _tier_of(answer: ServedResponse) -> str:
    asked = answer.sent.get("service_tier")
    return str(asked) if asked and asked != "auto" else "default"


def _finish_reason(message: Mapping[str, Any]) -> str:
    return REASONS.get(str(message["stop_reason"]), "stop")


SEALED = "reasoning.encrypted_content"


def items_of(content: Sequence[Block], name: str, sent: Mapping[str, Any]) -> list[Wire]:
    """The items of an answer; `name` tells their ids apart from those of other answers."""
    items: list[Wire] = []
    for number, block in enumerate(content):
        kind, own = block.get("type"), f"{name}_{number}"
        if kind == "text":
            text = {"type": "output_text", "text": block["text"], "annotations": [], "logprobs": []}
            head = {"id": f"msg_{own}", "type": "message", "role": "assistant", "status": "completed"}
            items.append({**head, "content": [text]})
        elif kind == "thinking":
            summary = [{"type": "summary_text", "text": block["thinking"]}]
            sealed = {"encrypted_content": block.get("signature")} if SEALED in (sent.get("include") or ()) else {}
            items.append({"id": f"rs_{own}", "type": "reasoning", "summary": summary, **sealed})
        elif kind == "tool_use":
            kind, field = call_form(block, sent)
            prefix, form = ("ctc", "custom_tool_call") if kind == "custom" else ("fc", "function_call")
            called = {"status": "completed", "call_id": block["id"], "name": block["name"]}
            items.append({"id": f"{prefix}_{own}", "type": form, **called, field: arguments_of(block)})
    return items


def item_events(item: Wire, number: int) -> Iterator[Wire]:
    at = {"output_index": number, "item_id": item["id"]}
    kind = item["type"]
    field, nothing = GROWING_FIELDS[kind]
    begun = {**item, **({"status": "in_progress"} if "status" in item else {}), field: nothing}
    yield {"type": "response.output_item.added", "output_index": number, "item": begun}
    if kind in PART_EVENTS:
        index, part_event, text_event, more = PART_EVENTS[kind]
        part, at = item[field][0], {**at, index: 0}
        yield {"type": f"{part_event}.added", **at, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": f"{text_event}.delta", **at, "delta": piece, **more}
        yield {"type": f"{text_event}.done", **at, "text": part["text"], **more}
        yield {"type": f"{part_event}.done", **at, "part": part}
    else:
        for piece in pieces(item[field]):
            yield {"type": f"response.{kind}_{field}.delta", **at, "delta": piece}
        name = {"name": item["name"]} if field == "arguments" else {}
        yield {"type": f"response.{kind}_{field}.done", **at, field: item[field], **name}
    yield {"type": "response.output_item.done", "output_index": number, "item": item}


GROWING_FIELDS: dict[str, tuple[str, Any]] = {
    "message": ("content", []),
    "reasoning": ("summary", []),
    "function_call": ("arguments", ""),
    "custom_tool_call": ("input", ""),
}
"""The field of an item that is streamed in pieces, and its first value."""
PART_EVENTS: dict[str, tuple[str, str, str, Wire]] = {
    "message": ("content_index", "response.content_part", "response.output_text", {"logprobs": []}),
    "reasoning": ("summary_index", "response.reasoning_summary_part", "response.reasoning_summary_text", {}),
}
"""Of items whose text is in a part: its index, and the events of the part and of its text with their further fields."""


ECHOED: Wire = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
}
"""Fields of a request that its response repeats, and their defaults."""


class ResponsesApi(OpenAIApi):
    name = "responses"
    id_prefix = "resp_"

    def resolve(self, served: ServerState, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
        if arrived.body.get("prompt") is not None:
            return invalid("prompt: cachecost serve keeps no prompt templates")
        if refused := body_fault(arrived.body, "input", {"max_output_tokens": 16}):
            return refused
        whole = served.responses.complete(arrived.workspace, arrived.body)
        if isinstance(whole, ApiError):
            return whole
        body = from_responses(whole)
        return ResolvedCall(body, start=start, host=served.meters.host_of(self.maker, body["model"]))

    def keep(self, served: ServerState, arrived: ReceivedCall, resolved: ResolvedCall, answer: ServedResponse) -> None:
        whole, response = served.responses.complete(arrived.workspace, arrived.body), self.whole(answer)
        assert not isinstance(whole, ApiError)
        served.responses.keep(arrived.workspace, response["id"], whole, response["output"])

    def whole(self, answer: ServedResponse) -> Wire:
        message, name = answer.answer, str(answer.answer["id"]).removeprefix(self.id_prefix)
        is_cut = message["stop_reason"] == "max_tokens"
        return {
            **_response_head(answer),
            "status": "incomplete" if is_cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
            "output": items_of(message["content"], name, answer.sent),
            "usage": responses_usage(message, answer.thinking_tokens),
        }

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        whole = self.whole(answer)
        nothing_yet: Wire = {"status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
        begun = {**_response_head(answer), **nothing_yet}
        events: list[Wire] = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
        for number, item in enumerate(whole["output"]):
            events += item_events(item, number)
        events.append({"type": f"response.{whole['status']}", "response": whole})
        return as_bytes({**event, "sequence_number": number} for number, event in enumerate(events))


RESPONSES = ResponsesApi()


def _response_head(answer: ServedResponse) -> Wire:
    sent = {name: answer.sent[name] for name in ECHOED if answer.sent.get(name) is not None}
    return {
        "id": answer.answer["id"],
        "object": "response",
        "created_at": int(answer.start),
        "error": None,
        "model": shown_model(answer.answer),
        "service_tier": _tier_of(answer),
        **ECHOED,
        **sent,
    }
