"""What instrumentations log as input, parameters and output of a Langfuse generation -> a Messages body and blocks.

Langfuse fixes no form. Known here: messages as OpenAI's, Anthropic's or LangChain's; an object with them and the
tools; a Responses request; a text. LangChain's handler puts the definitions of tools at the end of the messages, as
messages of role tool whose content is a tool.

The fields of a Langfuse observation: in camelCase from its API and pages, in snake_case from blob storage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachecost.base.limits import whole_number
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.dialects import Body, as_text, parse_json_text
from cachecost.conversations.readers.common.dialects import answer_of as answer_of_response
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.readers.langsmith.langchain_messages import (
    answer_blocks,
    block_from,
    body_from_request,
    plain,
)
from cachecost.conversations.readers.openai.responses import from_responses, from_responses_output
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.request import show_found
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

ITEMS = ("function_call", "function_call_output", "reasoning", "message", "custom_tool_call", "web_search_call")
"""Types of what a Responses request and its answer are lists of."""
NOT_MESSAGES = "whose input is not a list of messages: read as one text"
NO_INPUT = "without input: only usage is known"


def parameters_of(value: Any) -> dict[str, Any]:
    """The model parameters; Langfuse writes those that are objects as texts."""
    return {name: parse_json_text(one) for name, one in value.items()} if isinstance(value, Mapping) else {}


def body_of(value: Any, parameters: Mapping[str, Any], model: str) -> tuple[Body, str]:
    """(Messages body, note for the user or ""). Raises NotAMessage."""
    if value is None or value in ([], {}):
        return {"messages": []}, NO_INPUT
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, Mapping):
        return body_from_request({**parameters, "model": model, "messages": as_text(value)}), ""
    request = {**parameters, **value, "model": model}
    messages = _messages(value)
    if messages is None and ("input" in value or "instructions" in value):
        return _from_responses(request), ""
    if messages is None:
        return {"messages": as_text(value)}, NOT_MESSAGES
    if any(
        (isinstance(one, Mapping) and one.get("type") in ITEMS and one.get("type") != "message" and "role" not in one)
        for one in messages
    ):
        return _from_responses({**request, "input": messages}), ""
    if not all(map(_is_message, messages)):
        return {"messages": as_text(messages)}, NOT_MESSAGES
    return body_from_request({**request, **_with_tools(messages, request.get("tools"))}), ""


def _messages(value: Mapping[str, Any]) -> list[Any] | None:
    """The messages of an input. LangChain may wrap them in a list of conversations that has one element."""
    messages = value.get("messages")
    if _is_message(value):
        return [value]
    if isinstance(value.get("prompt"), str):
        return as_text(value["prompt"])
    if isinstance(messages, list) and len(messages) == 1 and isinstance(messages[0], list):
        return messages[0]
    return messages if isinstance(messages, list) else None


def _is_message(one: Any) -> bool:
    if not isinstance(one, Mapping):
        return False
    return isinstance(one.get("role"), str) or "lc" in one or ("content" in one and isinstance(one.get("type"), str))


def _from_responses(request: Mapping[str, Any]) -> Body:
    inner = request.get("input")
    return from_responses({**request, "input": inner if inner is not None else []})


def _with_tools(messages: Sequence[Any], tools: Any) -> Body:
    among = [one["content"] for one in messages if _is_definition(one)]
    said = [one for one in messages if not _is_definition(one)]
    return {"messages": said, "tools": [*(tools or []), *among]} if among else {"messages": said}


def _is_definition(one: Mapping[str, Any]) -> bool:
    return one.get("role") == "tool" and "tool_call_id" not in one and isinstance(one.get("content"), Mapping)


def answer_of(value: Any, text: Any = None) -> list[Body] | str:
    """The blocks of an output; for an unknown kind of output, its `text` as logged. Raises NotAMessage."""
    found = _answer_of_list(value) if isinstance(value, list) else _answer_of(value)
    if found is not None:
        return found
    return text if isinstance(text, str) else str(as_text(value)[0]["content"])


def _answer_of(value: Any) -> list[Body] | str | None:
    if not isinstance(value, Mapping):
        return value if isinstance(value, str) else []
    if "choices" in value or isinstance(value.get("output"), list):
        return answer_of_response(value)
    if _is_message(value) or "content" in value or "tool_calls" in value:
        return answer_blocks(plain({"role": "assistant", **value}, "output"))
    return None


def _answer_of_list(values: Sequence[Any]) -> list[Body] | str | None:
    last = values[-1] if values else None
    if isinstance(last, Mapping) and last.get("type") in ITEMS:
        return from_responses_output(list(values))
    if _is_message(last):
        return _answer_of(last)
    if all(isinstance(one, Mapping) and isinstance(one.get("type"), str) for one in values):
        return [block_from(one, f"output.{number}", {}) for number, one in enumerate(values)]
    return None


USAGES = ("usageDetails", "usage_details", "usage")
"""`usage` is that of old versions, with a unit."""
PROVIDERS = ("ls_provider", "gen_ai.provider.name", "gen_ai.system")
"""Metadata keys of LangChain and OpenTelemetry that name the provider."""


def value_of(row: JsonObject, *names: str) -> Any:
    """The value of the first name that has one. Blob storage writes "" for null, and JSON as a string."""
    found = (parse_json_text(row.data.get(name)) for name in names)
    return next((value for value in found if value is not None and value != ""), None)


def text_of(row: JsonObject, *names: str) -> str:
    value = value_of(row, *names)
    return str(value) if isinstance(value, (str, int)) else ""


def start_of(row: JsonObject) -> str | None:
    """The start time, which every observation has."""
    return _moment(row, "start_time" if "start_time" in row.data else "startTime", required=True)


def first_token_at(row: JsonObject) -> str | None:
    names = ("completionStartTime", "completion_start_time")
    return next((_moment(row, name) for name in names if row.data.get(name)), None)


def _moment(row: JsonObject, name: str, required: bool = False) -> str | None:
    """An ISO 8601 time, with a T or a space in it, without a zone in UTC."""
    if required and not row.data.get(name):
        row.time(name)
    return row.moment(name)


def model_and_host(row: JsonObject) -> tuple[str, str | None]:
    """(the model as the instrumentation named it, the host if it is known)."""
    places = (object_or_empty(value_of(row, "metadata")), _attributes(row))
    told = (place.get(name) for place in places for name in PROVIDERS)
    provider = next((one for one in told if isinstance(one, str)), "")
    return parse_model_name(text_of(row, "model", "providedModelName", "provided_model_name"), provider)


def _attributes(row: JsonObject) -> Mapping[str, Any]:
    """The attributes of the span that an observation came as."""
    return object_or_empty(parse_json_text(object_or_empty(value_of(row, "metadata")).get("attributes")))


def usage_of(row: JsonObject) -> Usage | None:
    """The usage, or None. Raises NotAMessage.

    What came as attributes of OpenTelemetry is read as such, where the metadata keeps it: older servers copied its
    input, which includes the cached tokens, into the buckets, where it should not.
    """
    sent = {name: _number(value) for name, value in _attributes(row).items() if name.startswith("gen_ai.usage.")}
    if any("cache" in name and isinstance(value, int) and value for name, value in sent.items()):
        counts = {name: value for name, value in sent.items() if isinstance(value, int)}
        return usage_from(counts, "metadata.attributes", "otel")
    for name in USAGES:
        value = parse_json_text(row.data.get(name))
        if value and not isinstance(value, Mapping):
            row.fault(name, f"expected an object; got {show_found(value)}")
        told = {key: _number(count) for key, count in object_or_empty(value).items() if count is not None}
        if told.get("unit", "TOKENS") == "TOKENS" and any(isinstance(count, int) and count for count in told.values()):
            return usage_from(_without_writes(told), name, "langfuse")
    return None


def _without_writes(told: Mapping[str, Any]) -> dict[str, Any]:
    """LiteLLM subtracts the tokens read from the input, but not the tokens written (issue 26919). This shows in its
    total, which counts each token once."""
    names = ("input", "output", "total", "cache_read_input_tokens", "cache_creation_input_tokens")
    counts = [told[name] for name in names if isinstance(told.get(name), int)]
    if len(counts) < len(names) or not all(counts):
        return dict(told)
    told_in, told_out, total, read, written = counts
    partly = told_in + read + told_out == total and told_in >= written
    return {**told, "input": told_in - written} if partly else dict(told)


def _number(count: Any) -> Any:
    """ClickHouse writes large numbers as texts, and sums as numbers with a point."""
    if isinstance(count, float) and count.is_integer():
        return int(count)
    number = whole_number(count) if isinstance(count, str) and count.isascii() else None
    return count if number is None else number
