"""Reads what LiteLLM logs of calls: its StandardLoggingPayload, and the proxy's spend logs from its database.

Source: LiteLLM's documentation (proxy/logging_spec, October 2026) and source of 2026 (litellm_logging.py,
spend_tracking_utils.py). One object a line or a file, or an array. Times, usage and the answer are there;
breakpoints are, as far as the messages are. LiteLLM logs when an answer ends, so calls are sorted by when they
began. It cannot tell what was said where prompts are redacted or not stored, texts that the database cut short (by
default beyond 2048 characters), the system prompt of a payload of the Messages or Responses API (1.106 leaves it
out), or whether writes were for 5m or 1h where the provider's usage was not kept whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.limits import whole_number
from cachecost.base.times import iso
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.apis.formats import FAILED, Body, answer_of, from_messages, is_anthropic
from cachecost.conversations.readers.apis.openai import from_chat, from_responses
from cachecost.conversations.readers.common.json_values import array_at, by_start, object_or_empty
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.parsed_calls import CallBuilder, ParsedCall, first_keys, must_hold, objects
from cachecost.conversations.readers.traces import object_within, value_at, values_at
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.request import NotAMessage
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

EXPECTED = "a LiteLLM log"
MODEL_CALLS = ("completion", "text_completion", "anthropic_messages", "responses", "generate_content")
"""Call types, without the `a` and the `_stream` of their asynchronous and streaming kinds."""
PASSED_THROUGH = ("pass_through_endpoint", "llm_passthrough_route", "")
"""Calls of any kind; those with messages are model calls."""
USAGES = ("metadata/usage_object", "response/usage")
NO_MESSAGES = "without messages: only usage is known"
NO_SYSTEM = "without a system prompt: LiteLLM does not log it for this endpoint"
TRUNCATED = "with text truncated by LiteLLM: sizes are too small"
REDACTED = "redacted-by-litellm"
CUT = "litellm_truncated"
"""Occurs in the middle of a text that was truncated for the database."""


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is a LiteLLM log; None if it is not."""
    keys = first_keys(head)
    if "call_type" not in keys:
        return None
    if {"request_id", "spend"} <= keys:
        return 'its first object has a "call_type" and a "spend"'
    return 'its first object has a "call_type" and a "response_cost"' if "response_cost" in keys else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in the order of their start. Raises InputError with every error; what the log lacks goes to `warn`."""
    faults: list[Fault] = []
    log = _LiteLLMLog(CallBuilder(keep_content))
    rows, found = 0, list[Call]()
    for row in objects(path, faults, warn):
        rows += 1
        found += log.calls(row)
    must_hold(path, EXPECTED, rows, faults)
    log.notes.report(path, warn)
    yield from by_start(found, log.traces)


@dataclass(slots=True)
class _LiteLLMLog:
    """A log while it is read, with the notes for the user."""

    builder: CallBuilder
    notes: ReaderNotes = field(default_factory=ReaderNotes)
    traces: set[str] = field(default_factory=set)

    def calls(self, row: JsonObject) -> Iterator[Call]:
        """The call of a row, if the row is a model call."""
        call_type = row.text("call_type")
        kinds = {(kind := call_type.removesuffix("_stream")), kind.removeprefix("a")}
        is_call = bool(kinds & {*MODEL_CALLS})
        if kinds & {*PASSED_THROUGH}:
            is_call = not _is_missing(_request(row)[1])
        if not is_call:
            self.notes.skip("entry", f"call_type '{call_type}' is not a model call")
        elif not row.data.get("model") and _status(row):
            self.notes.skip("entry", "failed before a model was called")
        elif str(row.data.get("cache_hit")).lower() == "true":
            self.notes.skip("entry", "from LiteLLM's own cache, not billed by a provider")
        else:
            try:
                yield self.builder.build(self._parse_call(row, call_type))
            except NotAMessage as fault:
                row.faults.append(Fault(row.file, f"{row.place}{fault}", row.line))

    def _parse_call(self, row: JsonObject, call_type: str) -> ParsedCall:
        parameters, messages = _request(row)
        model, host = parse_model_name(row.text("model"), row.text("custom_llm_provider", ""))
        status, start, response = _status(row), _moment(row, "startTime"), value_at(row.data, "response")
        self.notes.add("call", NO_MESSAGES, _is_missing(messages) and status is None)
        body = _body(model, call_type, messages, parameters)
        has_system = body.get("system") or "completion" in call_type or _proxy_messages(row)
        self.notes.add("call", NO_SYSTEM, bool(body["messages"]) and not has_system)
        self.notes.add("call", TRUNCATED, CUT in str(row.data.get("proxy_server_request", "")))
        return ParsedCall(
            body=body,
            usage=None if status else _usage(row),
            answer=[] if status else _answer(response),
            served=object_or_empty(response),
            timestamp=iso(start),
            first_token_s=_first_token(row, start),
            host=host,
            status=status,
            session=self._session(row),
            id=row.text("request_id", "") or row.text("id", ""),
            line=row.line or 0,
        )

    def _session(self, row: JsonObject) -> str:
        """The client's session id, else the trace id, which LiteLLM generates if there is none. A spend log does not
        distinguish the two."""
        named, trace = row.text("session_id", ""), row.text("trace_id", "")
        if not named or row.has("request_id"):
            self.traces.add(named or trace)
        return named or trace


def _request(row: JsonObject) -> tuple[Mapping[str, Any], Any]:
    """(parameters, messages): of the body that came to the proxy, where a spend log has it, else as logged."""
    if messages := _proxy_messages(row):
        body = object_within(row.data, "proxy_server_request")
        return {name: value for name, value in body.items() if name not in ("messages", "input", "model")}, messages
    return object_or_empty(row.data.get("model_parameters")), value_at(row.data, "messages")


def _proxy_messages(row: JsonObject) -> Any:
    """The messages that came to the proxy, where the database keeps its body."""
    body = object_within(row.data, "proxy_server_request")
    return body.get("messages") or body.get("input")


def _status(row: JsonObject) -> int | None:
    """None if the call succeeded, else the provider's HTTP status."""
    if "failure" not in values_at(row.data, ("status", "metadata/status")):
        return None
    error = object_within(row.data, "error_information", "metadata/error_information")
    code = whole_number(str(error.get("error_code")))
    return code if code is not None and 400 <= code <= 599 else FAILED


def _usage(row: JsonObject) -> Usage:
    """The provider's usage as LiteLLM kept it; else what its own columns count."""
    for path in USAGES:
        if kept := object_within(row.data, path):
            return usage_from(kept, path.replace("/", "."), "litellm" if "prompt_tokens" in kept else "auto")
    columns = {name: row.whole(name, 0) for name in ("prompt_tokens", "completion_tokens")}
    return usage_from({**object_within(row.data, "metadata/additional_usage_values"), **columns}, "row", "litellm")


def _moment(row: JsonObject, name: str) -> float:
    """Seconds since the epoch: a payload counts them, a database writes ISO 8601."""
    if isinstance(row.data.get(name), str):
        return row.time(name)
    found = row.get(name, "seconds since the epoch or an ISO 8601 time", _is_time, None)
    return 0.0 if found is None else float(found)


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e11


def _first_token(row: JsonObject, start: float) -> float:
    """Seconds to the first token; 0 without streaming, where LiteLLM logs the end as the first token."""
    if row.data.get("completionStartTime") is None or row.data.get("endTime") is None:
        return 0.0
    first, end = _moment(row, "completionStartTime"), _moment(row, "endTime")
    return round(first - start, 6) if start < first < end else 0.0


def _body(model: str, call_type: str, messages: Any, parameters: Mapping[str, Any]) -> Body:
    """The Messages body; without messages if they were not logged. Raises NotAMessage.

    The messages are in the format of the endpoint (`call_type`). The parameters are those that LiteLLM sends to the
    provider, so Anthropic's tools may occur together with OpenAI's messages.
    """
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


def _answer(response: Any) -> list[Body] | str:
    """The blocks of an answer; empty if LiteLLM redacted them. Raises NotAMessage."""
    found = answer_of(response)
    is_redacted = found == REDACTED or any(REDACTED in block.values() for block in found if isinstance(block, dict))
    return [] if is_redacted else found
