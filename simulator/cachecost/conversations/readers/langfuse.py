"""Reads Langfuse generations: pages of its API, traces, and exports from its website or to blob storage.

Source: Langfuse's documentation (blob storage export fields, observations API v2), its server's export streams and
its SDK 5.0, read 2026-11. JSON Lines, an array, `{"data": […]}`, or traces with their `observations`; names in
camelCase or snake_case, contents as JSON or as JSON in a text. An observation of type GENERATION is a call.

Langfuse fixes no form of inputs and outputs. Known here: messages as OpenAI's, Anthropic's or LangChain's; an object
with them and the tools; a Responses request; a text. LangChain's handler puts the definitions of tools at the end of
the messages, as messages of role tool whose content is a tool, converts tools to OpenAI's format and loses their
breakpoints; OpenAI's wrapper logs no tool choice. Where no usage was sent, Langfuse counts tokens itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.base.limits import whole_number
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers import traces
from cachecost.conversations.readers.apis.formats import Body, answer_of
from cachecost.conversations.readers.apis.openai import from_responses, from_responses_output
from cachecost.conversations.readers.call_builder import first_keys, parse_json_text
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.readers.common.peek import ReaderNotes, top_keys
from cachecost.conversations.readers.langchain import answer_blocks, block_from, body_from_request, plain
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.request import show_found
from cachecost.providers.usage import Usage

TRACE_IDS = {"traceId", "trace_id"}
OWN_KEYS = {
    *("usageDetails", "usage_details", "parentObservationId", "parent_observation_id"),
    *("providedModelName", "provided_model_name", "statusMessage", "status_message", "internalModelId"),
}
"""Keys that, together with a trace id, only an observation has."""
TRACE_KEYS = {"projectId", "project_id", "timestamp", "bookmarked", "htmlPath", "sessionId", "trace", "latency"}
TRACE_SESSION = "session of the trace"
ITEMS = ("function_call", "function_call_output", "reasoning", "message", "custom_tool_call", "web_search_call")
"""Types of what a Responses request and its answer are lists of."""
COUNTS = ("input", "output", "total", "cache_read_input_tokens", "cache_creation_input_tokens")


def sniff(head: bytes) -> str | None:
    keys = first_keys(head)
    if _is_observation(keys):
        return f'its first object has a "{min(keys & TRACE_IDS)}" and a "{min(keys & OWN_KEYS)}"'
    if keys >= {"traceId", "startTime", "completionStartTime", "modelParameters"}:  # and an input longer than `head`
        return 'its first object has a "traceId" and a "modelParameters"'
    if "observations" in keys and keys & TRACE_KEYS:
        return 'its first object is a trace with "observations"'
    inside = re.search(rb'"(?:data|observations)"\s*:\s*\[', head) if "data" in keys else None
    found = set(top_keys(head[inside.end() :])) if inside else set()
    if _is_observation(found) or ("observations" in found and found & TRACE_KEYS):
        return 'its "data" contains observations'
    return None


def _is_observation(keys: set[str]) -> bool:
    return bool(keys & TRACE_IDS and keys & OWN_KEYS and keys & {"type", "startTime", "start_time"})


def _observations(row: JsonObject) -> Iterator[JsonObject]:
    """The observations in a row: a page or a trace of them, or one. Those of a trace have its session."""
    inside = row.data.get("observations")
    if isinstance(inside, list):
        trace = row.data.get("trace")
        session = traces.text_at(trace if isinstance(trace, dict) else row.data, ("sessionId", "session_id"))
        if any(isinstance(one, str) for one in inside):
            row.fault("observations", "expected observations; got only their ids (as in a list of traces)")
            return
        for inner in row.objects("observations"):
            yield JsonObject({**inner.data, TRACE_SESSION: session}, row.faults, row.file, row.line, inner.place)
    elif isinstance(row.data.get("data"), list):
        for inner in row.objects("data"):
            yield from _observations(inner)
    else:
        yield row


def _body(row: traces.View, model: str, notes: ReaderNotes) -> Body:
    parameters = object_or_empty(traces.value_at(row, "modelParameters", "model_parameters"))
    parameters = {name: parse_json_text(one) for name, one in parameters.items()}  # objects are written as texts
    value = traces.value_at(row, "input")
    if value is None or value in ([], {}):
        notes.add("call", "without input: only usage is known")
        return {"messages": []}
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, Mapping):
        return body_from_request({**parameters, "model": model, "messages": traces.text_message(value)})
    request = {**parameters, **value, "model": model}
    messages = _messages(value)
    is_request = messages is None and ("input" in value or "instructions" in value)
    objects = [one for one in messages or () if isinstance(one, Mapping) and "role" not in one]
    if is_request or any(one.get("type") in ITEMS and one["type"] != "message" for one in objects):
        items = value.get("input") if messages is None else messages
        return from_responses({**request, "input": [] if items is None else items})
    if messages is None or not all(map(_is_message, messages)):
        notes.add("call", traces.NOT_MESSAGES)
        return {"messages": traces.text_message(value if messages is None else messages)}
    tools = [one["content"] for one in messages if _is_definition(one)]
    spoken = [one for one in messages if not _is_definition(one)]
    more = {"tools": [*(request.get("tools") or []), *tools]} if tools else {}
    return body_from_request({**request, "messages": spoken, **more})


def _messages(value: Mapping[str, Any]) -> list[Any] | None:
    """The messages of an input. LangChain may wrap them in a list of conversations that has one element."""
    messages = value.get("messages")
    if _is_message(value):
        return [value]
    if isinstance(value.get("prompt"), str):
        return traces.text_message(value["prompt"])
    if isinstance(messages, list) and len(messages) == 1 and isinstance(messages[0], list):
        return messages[0]
    return messages if isinstance(messages, list) else None


def _is_message(one: Any) -> bool:
    if not isinstance(one, Mapping):
        return False
    return isinstance(one.get("role"), str) or "lc" in one or ("content" in one and isinstance(one.get("type"), str))


def _is_definition(one: Mapping[str, Any]) -> bool:
    return one.get("role") == "tool" and "tool_call_id" not in one and isinstance(one.get("content"), Mapping)


def _answer(row: traces.View) -> list[Body] | str:
    value, text = traces.value_at(row, "output"), row.get("output")
    last = value[-1] if isinstance(value, list) and value else None
    one = last if _is_message(last) else value
    if isinstance(last, Mapping) and last.get("type") in ITEMS:
        return from_responses_output(list(value))
    if isinstance(one, list):
        if all(isinstance(block, Mapping) and isinstance(block.get("type"), str) for block in one):
            return [block_from(block, f"output.{number}", {}) for number, block in enumerate(one)]
    elif not isinstance(one, Mapping):
        return one if isinstance(one, str) else []
    elif "choices" in one or isinstance(one.get("output"), list):
        return answer_of(one)
    elif _is_message(one) or "content" in one or "tool_calls" in one:
        return answer_blocks(plain({"role": "assistant", **one}, "output"))
    return text if isinstance(text, str) else str(traces.text_message(value)[0]["content"])


def _usage(entry: JsonObject, row: traces.View, notes: ReaderNotes) -> Usage | None:
    """The usage, or None. Raises NotAMessage.

    What came as attributes of OpenTelemetry is read as such, where the metadata keeps it: older servers copied its
    input, which includes the cached tokens, into the buckets, where it should not. LiteLLM subtracts the tokens read
    from the input, but not the tokens written (issue 26919), which shows in its total: that counts each token once.
    """
    attributes = traces.object_within(row, "metadata/attributes")
    sent = {name: _number(value) for name, value in attributes.items() if name.startswith("gen_ai.usage.")}
    counts = {name: value for name, value in sent.items() if isinstance(value, int)}
    if any("cache" in name and value for name, value in counts.items()):
        return usage_from(counts, "metadata.attributes", "otel")
    for name in ("usageDetails", "usage_details", "usage"):  # the last is that of old versions, with a unit
        value = parse_json_text(row.get(name))
        if value and not isinstance(value, Mapping):
            entry.fault(name, f"expected an object; got {show_found(value)}")
        buckets = {key: _number(count) for key, count in object_or_empty(value).items() if count is not None}
        if buckets.get("unit", "TOKENS") == "TOKENS" and any(isinstance(one, int) and one for one in buckets.values()):
            known = [buckets[count] for count in COUNTS if isinstance(buckets.get(count), int) and buckets[count]]
            if len(known) == len(COUNTS):
                fresh, output, total, read, written = known
                is_partly = fresh + read + output == total and fresh >= written
                buckets["input"] = fresh - written if is_partly else fresh
            return usage_from(buckets, name, "langfuse")
    return None


def _number(count: Any) -> Any:
    """ClickHouse writes large numbers as texts, and sums as numbers with a point."""
    if isinstance(count, float) and count.is_integer():
        return int(count)
    number = whole_number(count) if isinstance(count, str) and count.isascii() else None
    return count if number is None else number


calls = traces.TraceFormat(
    expected="observations of Langfuse",
    kind="type",
    kinds=("generation",),
    model=("model", "providedModelName", "provided_model_name"),
    provider=tuple(  # metadata keys of LangChain and OpenTelemetry
        f"{place}/{name}"
        for place in ("metadata", "metadata/attributes")
        for name in ("ls_provider", "gen_ai.provider.name", "gen_ai.system")
    ),
    session=("sessionId", "session_id", TRACE_SESSION, "traceId", "trace_id"),
    parent=("parentObservationId", "parent_observation_id"),
    error=("statusMessage", "status_message"),
    start=lambda row: traces.moment_of(row, "startTime", "start_time", required=True),
    first_token_s=lambda row, start: traces.seconds_between(
        start, traces.moment_of(row, "completionStartTime", "completion_start_time")
    ),
    entries=_observations,
    body=_body,
    answer=_answer,
    usage=_usage,
    failed=lambda row: row.get("level") == "ERROR",
).calls
