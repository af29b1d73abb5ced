"""Reads what LiteLLM logs of calls: its StandardLoggingPayload, and the proxy's spend logs from its database.

Source: LiteLLM's documentation (proxy/logging_spec, October 2026) and source of 2026 (litellm_logging.py,
spend_tracking_utils.py). LiteLLM logs when an answer ends, so calls are sorted by when they began. The database cuts
texts beyond 2048 characters, and 1.106 leaves the system prompt of a Messages or Responses payload out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import is_number, whole_number
from cachecost.base.times import iso
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.apis.formats import FAILED, Body, answer_of, from_messages, is_anthropic
from cachecost.conversations.readers.apis.openai import from_chat, from_responses
from cachecost.conversations.readers.call_builder import (
    CallBuilder,
    errors_at,
    first_keys,
    objects,
    sort_by_start,
)
from cachecost.conversations.readers.common.json_values import array_at, object_or_empty
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.traces import object_within, value_at, values_at
from cachecost.conversations.usage_shapes import usage_from
from cachecost.providers.hosts import host_of_named, parse_model_name
from cachecost.providers.usage import Usage

MODEL_CALLS = {"completion", "text_completion", "anthropic_messages", "responses", "generate_content"}
PASSED_THROUGH = {"pass_through_endpoint", "llm_passthrough_route", ""}
REDACTED = "redacted-by-litellm"


def sniff(head: bytes) -> str | None:
    keys = first_keys(head)
    if "call_type" not in keys:
        return None
    if {"request_id", "spend"} <= keys:
        return 'its first object has a "call_type" and a "spend"'
    return 'its first object has a "call_type" and a "response_cost"' if "response_cost" in keys else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    faults: list[Fault] = []
    found, traces = list[Call](), set[str]()
    builder, notes = CallBuilder(keep_content), ReaderNotes()
    for row in objects(path, faults, warn, "a LiteLLM log"):
        call_type = row.text("call_type")
        kinds = {(kind := call_type.removesuffix("_stream")), kind.removeprefix("a")}  # also asynchronous ones
        # calls of any kind may be passed through; those with messages are model calls
        is_other = _is_missing(_request(row)[1]) if kinds & PASSED_THROUGH else not kinds & MODEL_CALLS
        if is_other:
            notes.skip("entry", f"call_type '{call_type}' is not a model call")
        elif not row.data.get("model") and _status(row):
            notes.skip("entry", "failed before a model was called")
        elif str(row.data.get("cache_hit")).lower() == "true":
            notes.skip("entry", "from LiteLLM's own cache, not billed by a provider")
        else:
            with errors_at(row):
                found.append(_build_call(row, call_type, builder, notes, traces))
    if faults:
        raise InputError(faults)
    notes.report(path, warn)
    yield from sort_by_start(found, traces)


def _build_call(row: JsonObject, call_type: str, builder: CallBuilder, notes: ReaderNotes, traces: set[str]) -> Call:
    """The call of a row. The session is the client's id, else the trace id, which LiteLLM generates if there is none
    and which is added to `traces`; a spend log does not distinguish the two. Raises NotAMessage."""
    parameters, messages = _request(row)
    model, host = parse_model_name(row.text("model"), row.text("custom_llm_provider", ""))
    host = host_of_named(host, str(row.data.get("api_base") or ""), model)
    status, start, response = _status(row), _moment(row, "startTime"), value_at(row.data, "response")
    notes.add("call", "without messages: only usage is known", _is_missing(messages) and status is None)
    body = _body(model, call_type, messages, parameters)
    has_system = body.get("system") or "completion" in call_type or _proxy_messages(row)
    no_system = "without a system prompt: LiteLLM does not log it for this endpoint"
    notes.add("call", no_system, bool(body["messages"]) and not has_system)
    is_truncated = "litellm_truncated" in str(row.data.get("proxy_server_request", ""))  # in the middle of a text
    notes.add("call", "with text truncated by LiteLLM: sizes are too small", is_truncated)
    usage, answer = (None, []) if status else (_usage(row), answer_of(response))
    if answer == REDACTED or any(REDACTED in block.values() for block in answer if isinstance(block, dict)):
        answer = []
    first_token_s = 0.0
    if row.data.get("completionStartTime") is not None and row.data.get("endTime") is not None:
        first, end = _moment(row, "completionStartTime"), _moment(row, "endTime")
        if start < first < end:  # without streaming, LiteLLM logs the end as the first token
            first_token_s = round(first - start, 6)
    named, trace = row.text("session_id", ""), row.text("trace_id", "")
    if not named or row.has("request_id"):
        traces.add(named or trace)
    return builder.build(
        body,
        usage=usage,
        answer=answer,
        served=object_or_empty(response),
        timestamp=iso(start),
        first_token_s=first_token_s,
        host=host,
        status=status,
        session=named or trace,
        id=row.text("request_id", "") or row.text("id", ""),
        line=row.line or 0,
    )


def _request(row: JsonObject) -> tuple[Mapping[str, Any], Any]:
    """(parameters, messages): of the body that came to the proxy, where a spend log has it, else as logged."""
    if messages := _proxy_messages(row):
        body = object_within(row.data, "proxy_server_request")
        return {name: value for name, value in body.items() if name not in ("messages", "input", "model")}, messages
    return object_or_empty(row.data.get("model_parameters")), value_at(row.data, "messages")


def _proxy_messages(row: JsonObject) -> Any:
    body = object_within(row.data, "proxy_server_request")
    return body.get("messages") or body.get("input")


def _status(row: JsonObject) -> int | None:
    if "failure" not in values_at(row.data, ("status", "metadata/status")):
        return None
    error = object_within(row.data, "error_information", "metadata/error_information")
    code = whole_number(str(error.get("error_code")))
    return code if code is not None and 400 <= code <= 599 else FAILED


def _usage(row: JsonObject) -> Usage:
    """The provider's usage as LiteLLM kept it; else what its own columns count."""
    for path in ("metadata/usage_object", "response/usage"):
        if kept := object_within(row.data, path):
            return usage_from(kept, path.replace("/", "."), "litellm" if "prompt_tokens" in kept else "auto")
    columns = {name: row.whole(name, 0) for name in ("prompt_tokens", "completion_tokens")}
    return usage_from({**object_within(row.data, "metadata/additional_usage_values"), **columns}, "row", "litellm")


def _moment(row: JsonObject, name: str) -> float:
    """Seconds since the epoch: a payload counts them, a database writes ISO 8601."""
    if isinstance(row.data.get(name), str):
        return row.time(name)
    expected = "seconds since the epoch or an ISO 8601 time"
    return float(row.get(name, expected, lambda value: is_number(value) and value < 1e11, 0.0))


def _body(model: str, call_type: str, messages: Any, parameters: Mapping[str, Any]) -> Body:
    """The Messages body. The messages are in the format of the endpoint (`call_type`). The parameters are those that
    LiteLLM sends to the provider, so Anthropic's tools may occur together with OpenAI's messages."""
    if _is_missing(messages):
        return {"model": model, "messages": []}
    if "responses" in call_type:
        return from_responses({**parameters, "model": model, "input": messages})
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    messages = array_at(messages, "messages", "an array of messages")
    convert = from_messages if "anthropic" in call_type or is_anthropic(messages) else from_chat
    return convert({**parameters, "model": model, "messages": messages})


def _is_missing(messages: Any) -> bool:
    """Whether there are no messages, or LiteLLM's word for what it took out."""
    alone = messages[0] if isinstance(messages, list) and len(messages) == 1 else None
    return not messages or REDACTED in (messages, object_or_empty(alone).get("content"))
