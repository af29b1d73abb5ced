"""The APIs of models: what converts a body and an answer of each, and joins the events of a stream to the answer that
the API returns without streaming; and bodies of which a log names no API."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from cachecost.conversations.calls import Iteration
from cachecost.conversations.readers.apis.converse import KINDS, from_converse, from_converse_answer
from cachecost.conversations.readers.apis.gemini import from_candidate, from_generate_content
from cachecost.conversations.readers.apis.openai import (
    from_chat,
    from_chat_message,
    from_responses,
    from_responses_output,
    parse_json,
)
from cachecost.conversations.readers.common.json_values import array_at, object_or_empty, objects_in
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.request import NotAMessage, content_blocks
from cachecost.providers.hosts import host_of_model, parse_model_name

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
            block = blocks.setdefault(_number(event, "index"), {"type": "text"})
            delta = {name: value for name, value in object_or_empty(event.get("delta")).items() if name != "type"}
            if "citation" in delta:
                block["citations"] = [*(block.get("citations") or []), delta.pop("citation")]
            _extend(block, delta)
        elif kind == "message_delta":
            usage = object_or_empty(message.get("usage"))
            message["usage"] = _largest_counts(usage, object_or_empty(event.get("usage")))
        elif kind == "error" and not message:
            return event
    content = []
    for block in blocks.values():
        pieces = block.pop("partial_json", None)  # input that is cut off stays the text it is
        content.append({**block, "input": parse_json(pieces)} if pieces else block)
    return {**message, "content": content} if message else {}


def _extend(block: Piece, delta: Mapping[str, Any]) -> None:
    """Add a delta to its block: texts go on, other values take the place of those before."""
    for name, value in delta.items():
        block[name] = f"{block.get(name) or ''}{value}" if isinstance(value, str) else value


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
        first = next((one for one in objects_in(event.get("choices")) if not one.get("index")), {})
        delta = object_or_empty(first.get("delta"))
        _extend(message, {name: value for name, value in delta.items() if isinstance(value, str) and name != "role"})
        pieces = delta.get("tool_calls")
        for piece in map(object_or_empty, pieces if isinstance(pieces, list) else ()):
            number = _number(piece, "index") if "index" in piece else len(calls)
            call = calls.setdefault(number, {"type": "function", "function": {"arguments": ""}})
            stated, function = object_or_empty(piece.get("function")), call["function"]
            call |= {"id": piece["id"]} if piece.get("id") else {}
            function |= {"name": stated["name"]} if stated.get("name") else {}
            function["arguments"] += str(stated.get("arguments") or "")
    if calls:
        message["tool_calls"] = list(calls.values())
    return {**whole, "choices": [{"message": message}]}


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
        first = candidates[0] if isinstance(candidates, list) and candidates else {}
        found = object_or_empty(object_or_empty(first).get("content")).get("parts")
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
            if not isinstance(value, str):
                inner = dict(object_or_empty(block.get(name)))
                _extend(inner, object_or_empty(value))
                value = inner
            _extend(block, {name: value})
        if "usage" in event:
            whole["usage"] = event["usage"]
    content = []
    for block in filter(None, blocks.values()):
        use, thought = object_or_empty(block.get("toolUse")), object_or_empty(block.get("reasoningContent"))
        if "toolUse" in block:
            block = {"toolUse": {**use, "input": parse_json(use.get("input") or "{}")}}
        elif thought and "redactedContent" not in thought:
            block = {"reasoningContent": {"reasoningText": thought}}
        content.append(block)
    return {**whole, "output": {"message": {"role": "assistant", "content": content}}}


Body = dict[str, Any]
Api = Literal["messages", "chat", "responses", "converse", "gemini"]


class ApiFormat(NamedTuple):
    """One API. `body` makes a Messages body of a request to a model, `answer` blocks of an answer, `join` an answer of
    events; each raises NotAMessage. `usage` is the shape of its usage, `asked` a field that each of its bodies has,
    `host` the only host that has it."""

    name: str
    body: Callable[[Mapping[str, Any], str], Body]
    answer: Callable[[Mapping[str, Any]], list[Body]]
    join: Callable[[Events], Piece]
    usage: str
    asked: str = "messages"
    host: str = ""


def chat_answer(choices: Sequence[Any]) -> list[Body]:
    """The blocks of the first of the choices of a chat completion; none where it has no message."""
    message = choices[0].get("message") if choices and isinstance(choices[0], Mapping) else None
    return from_chat_message(message) if isinstance(message, Mapping) else []


APIS: Mapping[Api, ApiFormat] = {
    "messages": ApiFormat(
        "Anthropic's Messages API",
        lambda body, model: {**body, "model": model or None},
        lambda whole: list(array_at(whole.get("content"), "content")),
        join_message,
        "anthropic",
    ),
    "converse": ApiFormat(
        "Bedrock's Converse API", from_converse, from_converse_answer, join_converse, "bedrock", host="bedrock"
    ),
    "chat": ApiFormat(
        "OpenAI's Chat Completions API",
        lambda body, model: from_chat({**body, "model": model or None}),
        lambda whole: chat_answer(array_at(whole.get("choices"), "choices")),
        join_completion,
        "openai",
    ),
    "responses": ApiFormat(
        "OpenAI's Responses API",
        lambda body, model: from_responses({**body, "model": model or None}),
        lambda whole: from_responses_output(array_at(whole.get("output"), "output")),
        join_response,
        "openai",
        "input",
    ),
    "gemini": ApiFormat(
        "Gemini's generateContent",
        from_generate_content,
        from_candidate,
        join_candidate,
        "gemini",
        "contents",
        "gemini",
    ),
}


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
    """Whose API a body that stands alone is for; None if it is no request."""
    messages = body.get("messages")
    if "contents" in body:
        return "gemini"
    if not isinstance(messages, list):
        is_input = "input" in body and "model" in body
        return "responses" if is_input else "messages" if "messages" in body else None
    if OF_CONVERSE & body.keys() or any(
        "type" not in block and KINDS & block.keys()
        for message in objects_in(messages)
        for block in objects_in(message.get("content"))
    ):
        return "converse"
    if OF_MESSAGES & body.keys():
        return "messages"
    # the Messages API has no message of a tool, and none of the system before the first of the user
    roles = [str(message.get("role")) for message in objects_in(messages)]
    is_chat = OF_CHAT & body.keys() or any("function" in tool for tool in objects_in(body.get("tools")))
    is_chat = is_chat or not ROLES_OF_CHAT.isdisjoint(roles) or roles[:1] == ["system"]
    return "chat" if is_chat or host_of_model(str(body.get("model"))) not in ("", "anthropic") else "messages"


def messages_body(body: Mapping[str, Any]) -> BareBody:
    """The body as one of the Messages API. Raises NotAMessage with a path in the body as it is."""
    api = api_of(body) or "messages"
    if api == "messages":
        return BareBody(api, dict(body), "")
    name, form = body.get("modelId") or body.get("model"), APIS[api]
    if not isinstance(name, str) or not name:
        key = "modelId" if api == "converse" else "model"
        raise NotAMessage(key, "a model id, which this API has in the URL" if form.host else "a model id", name)
    model, host = parse_model_name(name.removeprefix("models/"), form.host)
    return BareBody(api, form.body(body, model), host or form.host or host_of_model(model))


def body_from(body: Mapping[str, Any]) -> Body:
    """The Messages body of a request that a tool logged of whichever API. Raises NotAMessage."""
    if "messages" not in body and "input" in body:
        return from_responses(body)
    has_schema = any("input_schema" in tool for tool in objects_in(body.get("tools")))
    return from_messages(body) if "system" in body or has_schema or is_anthropic(body["messages"]) else from_chat(body)


def is_anthropic(messages: Any) -> bool:
    """Whether tools are spoken of in Anthropic's blocks."""
    blocks = [block for message in objects_in(messages) for block in objects_in(message.get("content"))]
    return any(block.get("type") in ("tool_use", "tool_result") for block in blocks)


def from_messages(body: Mapping[str, Any]) -> Body:
    """A Messages body whose system prompt may have been logged as its first messages."""
    system: list[Any] = []
    messages = list(body["messages"])
    while messages and isinstance(messages[0], Mapping) and messages[0].get("role") == "system":
        system += content_blocks(messages.pop(0).get("content") or [], "system")
    return {**body, "messages": messages, **({"system": system} if system else {})}


def answer_of(response: Any) -> list[Body] | str:
    """The blocks of an answer of whichever API; none where there is none. Raises NotAMessage."""
    if not isinstance(response, Mapping):
        return response if isinstance(response, str) else []
    if isinstance(response.get("output"), list):
        return from_responses_output(response["output"])
    if choices := objects_in(response.get("choices")):
        return chat_answer(choices)
    content = response.get("content") or []
    if isinstance(content, str):
        return content
    return [
        {name: value for name, value in block.items() if value is not None} if isinstance(block, Mapping) else block
        for block in content
    ]


REFUSED, FAILED = 400, 500
"""The HTTP status of a refusal, and of a failure, that states none."""
NOT_RUN = 499
"""A batch was canceled or expired before the request was sent. Not an HTTP status that any API uses."""
STATUS = {
    "invalid_request_error": REFUSED,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status that goes with a type of error (Anthropic's errors page)."""
CODES = {"rate_limit_exceeded": 429, "insufficient_quota": 429, "server_error": 500, "invalid_api_key": 401}
"""The HTTP status of an error code of OpenAI's."""


def status_in(error: str) -> int:
    """The HTTP status that the text of an error names, as the SDKs' errors state it."""
    found = re.search(r"(?:Error code|status_code|HTTP)\W{0,3}([45]\d\d)\b", error)
    return int(found[1]) if found else FAILED


def iteration_of(raw: Any, path: str) -> Iteration:
    """One entry of `usage.iterations`. Raises NotAMessage."""
    usage = usage_from(raw, path, "anthropic")
    return Iteration(str(raw.get("type") or "message"), usage, str(raw.get("model") or ""))
