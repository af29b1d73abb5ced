"""Reads runs of LangSmith and LangChain: exports, pages of its API, rows of bulk exports, dumps of tracers and events.

Source: LangSmith's documentation (run data format, bulk export, threads) and the sources of langsmith 0.15,
langchain-core 1.8 and langchain-anthropic 1.7, read 2026-11. JSON Lines, an array, `{"runs": […]}`, or runs with
`child_runs`. A run of type "llm" is a call; its request is `inputs` (LangChain's messages, or the body that an SDK's
wrapper saw) with `extra.invocation_params`. `session_id` of a run is its project: a conversation is what the metadata
calls session, thread or conversation. Events (`astream_events`) have no times, tools or parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.base.structs import replace
from cachecost.base.times import iso
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers import traces
from cachecost.conversations.readers.apis.formats import Body, answer_of, body_from
from cachecost.conversations.readers.call_builder import first_keys, parse_json_text
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.langchain import answer_blocks, body_from_request, plain
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.request import NotAMessage, show_found
from cachecost.providers.usage import Usage

MODELS = ("model", "model_name", "model_id", "deployment_name", "azure_deployment")
M5, H1 = "ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"
PROVIDER_USAGE = tuple(
    f"{place}/{name}"
    for place in ("message/response_metadata", "outputs/llm_output", "outputs")
    for name in ("usage", "token_usage")
)
LANGCHAIN_USAGE = ("message/usage_metadata", "outputs/usage_metadata", "extra/metadata/usage_metadata")


def sniff(head: bytes) -> str | None:
    keys = first_keys(re.sub(rb'^\s*\{\s*"runs"\s*:\s*\[', b"", head.removeprefix(b"\xef\xbb\xbf")))
    others = {"inputs", "outputs", "extra", "trace_id", "dotted_order", "session_id", "start_time", "parent_run_id"}
    if "run_type" in keys and keys & others:
        return 'its first object has a "run_type"'
    if {"event", "run_id"} <= keys and keys & {"data", "metadata", "parent_ids"}:
        return 'its first object has an "event" and a "run_id"'
    is_serialized = "inputs" in keys and re.search(rb'"lc"\s*:\s*1\b', head)
    return 'its first object has LangChain "inputs"' if is_serialized else None


def _runs(row: JsonObject) -> Iterator[JsonObject]:
    event = row.data
    if isinstance(event.get("runs"), list):
        for run in row.objects("runs"):
            yield from _runs(run)
    elif "event" in event and "run_type" not in event:
        data, made = event.get("data"), Body(run_type=str(event.get("event")))
        if event["event"] == "on_chat_model_end" and isinstance(data, Mapping):
            message = data.get("output")
            is_result = isinstance(message, Mapping) and "generations" in message
            made = {
                "run_type": "llm",
                "id": event.get("run_id"),
                "inputs": data.get("input"),
                "outputs": message if is_result else {"message": message},
                "extra": {"metadata": event.get("metadata")},
            }
        yield JsonObject(made, row.faults, row.file, row.line, row.place)
    else:
        yield row
        for child in row.objects("child_runs") if event.get("child_runs") else ():
            yield from _runs(child)


def _view(run: JsonObject) -> traces.View:
    """The run with its parts as objects, and in `generation` and `message` its answer. Raises NotAMessage if that is
    no message."""
    parts: dict[str, Any] = {}
    for name in ("inputs", "outputs", "extra"):
        value = parse_json_text(run.data.get(name))
        if value and not isinstance(value, Mapping):
            run.fault(name, f"expected an object; got {show_found(value)}")
        parts[name] = object_or_empty(value)
    outputs = parts["outputs"]
    found: Any = outputs.get("generations")
    while isinstance(found, list) and found:
        found = found[0]
    generation, several = object_or_empty(found), outputs.get("messages")
    flat = outputs if "content" in outputs or "tool_calls" in outputs else None
    last = several[-1] if isinstance(several, list) and several else None
    messages = (generation.get("message"), outputs.get("message"), flat, last)
    message = next((one for one in messages if isinstance(one, Mapping)), None)
    answer = {} if message is None else plain({"role": "assistant", **message}, "outputs")
    return {**run.data, **parts, "generation": generation, "message": answer}


def _body(run: traces.View, model: str, notes: ReaderNotes) -> Body:
    inputs = run["inputs"]
    request = {**object_or_empty(run["extra"].get("invocation_params")), **inputs, "model": model}
    messages, prompts = inputs.get("messages"), inputs.get("prompts") or inputs.get("prompt")
    if "messages" in inputs:
        if isinstance(messages, list) and messages and isinstance(messages[0], list):
            if len(messages) > 1:
                raise NotAMessage("inputs.messages", "one conversation per run", f"{len(messages)} conversations")
            messages = messages[0]
        return body_from_request({**request, "messages": messages})
    if "input" in inputs:
        return body_from(request)
    if prompts:
        alone = prompts[0] if isinstance(prompts, list) and len(prompts) == 1 else prompts
        return body_from_request({**request, "messages": traces.text_message(alone)})
    if inputs:
        notes.add("call", traces.NOT_MESSAGES)
        return {"messages": traces.text_message(inputs)}
    notes.add("call", "without messages: only usage is known")
    return {"messages": []}


def _start(run: JsonObject, name: str = "start_time") -> str | None:
    """An ISO 8601 time; tracers in JavaScript count milliseconds."""
    value = run.data.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e14:
        return iso(value / 1000)
    return traces.moment_of(run, name)


def _first_token_s(run: JsonObject, start: str | None) -> float:
    events = run.objects("events") if run.has("events") else []
    token = next((event for event in events if event.data.get("name") == "new_token"), None)
    first = _start(run, "first_token_time") or (_start(token, "time") if token else None)
    return traces.seconds_between(start, first)


def _usage(entry: JsonObject, run: traces.View, notes: ReaderNotes) -> Usage | None:
    """The bill: the usage in the answer, else LangSmith's own columns. A failed call has none, even if LangSmith
    counted its prompt. Raises NotAMessage."""
    own, counted = traces.object_within(run, *PROVIDER_USAGE), traces.object_within(run, *LANGCHAIN_USAGE)
    if "input_tokens" in own and any(str(name).startswith("cache_") for name in own):
        usage = usage_from(own, "usage", "anthropic")
        streamed = counted.get("output_tokens")
        return replace(usage, output_tokens=max(usage.output_tokens, streamed if isinstance(streamed, int) else 0))
    if counted:
        return usage_from(_with_cached_input(counted, run), "usage_metadata", "langchain")
    if own:
        return usage_from(own, "usage")
    if entry.data.get("error"):
        return None
    prompt, completion = entry.whole("prompt_tokens", 0), entry.whole("completion_tokens", 0)
    if not prompt:
        return None
    details = entry.mapping("prompt_token_details", required=False)
    columns = {"input_tokens": prompt, "output_tokens": completion, "input_token_details": details}
    notes.add("call", "with usage counted by LangSmith, which may be an estimate")
    return usage_from(columns, "prompt_tokens", "langchain")


def _with_cached_input(counted: Mapping[str, Any], run: traces.View) -> dict[str, Any]:
    """LangChain's usage with the cached tokens in its input, where it was written without them: by old wrappers."""
    stated = object_or_empty(counted.get("input_token_details"))
    misspelt = {"ephemeral_1hr_input_tokens": H1, "ephemeral_5min_input_tokens": M5}  # langsmith-js until March 2026
    details = {misspelt.get(name, name): value for name, value in stated.items()}
    read, written, five, hour = (_count(details, name) for name in ("cache_read", "cache_creation", M5, H1))
    cached, uncached = read + max(written, five + hour), _count(counted, "input_tokens")
    runtime, metadata = (object_or_empty(run["extra"].get(name)) for name in ("runtime", "metadata"))
    numbers = str(runtime.get("sdk_version") or "").split(".")[:3]
    is_old = runtime.get("sdk") == "langsmith-py" and all(map(str.isdecimal, numbers))
    is_old = is_old and tuple(map(int, numbers)) < (0, 7, 14)  # `wrap_anthropic` left cached tokens out of the input
    is_wrapper = metadata.get("ls_provider") == "anthropic" and "generations" not in run["outputs"]
    excludes = uncached < cached or (is_wrapper and is_old)
    return {
        **counted,
        "input_token_details": details,
        **({"input_tokens": uncached + cached} if excludes and cached else {}),
    }


def _count(usage: Mapping[str, Any], name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


calls = traces.TraceFormat(
    expected="runs of LangSmith",
    kind="run_type",
    kinds=("llm", "chat_model"),
    model=(
        *(f"{place}/{name}" for place in ("extra/invocation_params", "inputs") for name in MODELS),
        "extra/metadata/ls_model_name",
        *(f"message/response_metadata/{name}" for name in MODELS),
        "outputs/model",
    ),
    provider=("extra/metadata/ls_provider",),
    session=(*(f"extra/metadata/{name}" for name in ("session_id", "thread_id", "conversation_id")), "trace_id"),
    parent=("parent_run_id",),
    start=_start,
    first_token_s=_first_token_s,
    entries=_runs,
    view=_view,
    skipped=lambda run: (
        ("answer", "from LangChain's own cache, not billed by a provider")  # which sets the cost of a first answer to 0
        if object_or_empty(run["message"].get("usage_metadata")).get("total_cost", 1) == 0
        else None
    ),
    body=_body,
    answer=lambda run: (
        answer_blocks(run["message"])
        if run["message"]
        else traces.text_at(run, ("generation/text",)) or answer_of(run["outputs"])
    ),
    usage=_usage,
    failed=lambda run: bool(run.get("error") or run.get("status") == "error"),
).calls
