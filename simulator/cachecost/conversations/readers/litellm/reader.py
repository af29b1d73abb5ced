"""Reads what LiteLLM logs of calls: its StandardLoggingPayload, and the proxy's spend logs from its database.

Rests on LiteLLM's documentation (proxy/logging_spec, October 2026) and source of 2026 (litellm_logging.py,
spend_tracking_utils.py). One object a line or a file, or an array. Times, usage and the answer are there; marks are,
as far as the messages are. LiteLLM logs when an answer ends, so calls are sorted by when they began. It cannot tell
what was said where prompts are redacted or not stored, texts that the database cut short (by default beyond 2048
characters), the system prompt of a payload of the Messages or Responses API (1.106 leaves it out), or whether writes
were for 5m or 1h where the provider's usage was not kept whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.times import iso
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.call_order import by_start
from cachecost.conversations.readers.common.dialects import parse_json_text
from cachecost.conversations.readers.common.json_documents import must_hold, objects
from cachecost.conversations.readers.common.model_names import parse_model_name
from cachecost.conversations.readers.common.parsed_call import CallBuilder, ParsedCall
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.litellm.bodies import CUT, answer, body_of, is_untold
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.wire import NotAMessage
from cachecost.providers.usage import Usage

EXPECTED = "LiteLLM's log of calls"
MODEL_CALLS = ("completion", "text_completion", "anthropic_messages", "responses", "generate_content")
"""Call types, without the `a` and the `_stream` of their asynchronous and streaming kinds."""
PASSED_THROUGH = ("pass_through_endpoint", "llm_passthrough_route", "")
"""Calls of any kind; those with messages are model calls."""
FAILED = 500
"""The status of a failure whose own LiteLLM did not log."""


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is LiteLLM's; None if it is not."""
    keys = set(top_keys(head.removeprefix(b"\xef\xbb\xbf").lstrip().removeprefix(b"[")))
    if "call_type" not in keys:
        return None
    if {"request_id", "spend"} <= keys:
        return 'its first object has a "call_type" and a "spend"'
    return 'its first object has a "call_type" and a "response_cost"' if "response_cost" in keys else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
    """The calls by when they began. Raises InputError with every fault; what a log cannot tell goes to `warn`."""
    faults: list[Fault] = []
    reading = _Reading(CallBuilder(keep_content))
    rows, found = 0, []
    for row in objects(path, faults, warn):
        rows += 1
        found += reading.take(row)
    must_hold(path, EXPECTED, rows, faults)
    reading.say(path, warn)
    yield from by_start(found, reading.traces)


@dataclass(slots=True)
class _Reading:
    """A log while it is read, with what is to be said of it."""

    teller: CallBuilder
    left_out: Counter[str] = field(default_factory=Counter)
    untold: int = 0
    cut: int = 0
    headless: int = 0
    traces: set[str] = field(default_factory=set)

    def take(self, row: JsonObject) -> list[RecordedCall]:
        """The call of a row, if it is one."""
        call_type = row.text("call_type")
        if not _is_model_call(call_type, row):
            self.left_out[f"of type '{call_type}' that are no model call"] += 1
        elif not row.data.get("model") and _status(row):
            self.left_out["that failed before a model was called"] += 1
        elif str(row.data.get("cache_hit")).lower() == "true":
            self.left_out["from LiteLLM's own cache, which no provider billed"] += 1
        else:
            try:
                return [self.teller.build(self._told(row, call_type))]
            except NotAMessage as fault:
                row.faults.append(Fault(row.file, f"{row.place}{fault}", row.line))
        return []

    def _told(self, row: JsonObject, call_type: str) -> ParsedCall:
        parameters, messages = _request(row)
        model, host = parse_model_name(row.text("model"), row.text("custom_llm_provider", ""))
        status = _status(row)
        start = _moment(row, "startTime")
        self.untold += is_untold(messages) and status is None
        self.cut += CUT in str(row.data.get("proxy_server_request", ""))
        body = body_of(model, call_type, messages, parameters)
        self.headless += bool(body["messages"]) and _may_lack_its_system(row, call_type, body)
        return ParsedCall(
            body=body,
            usage=None if status else _usage(row),
            answer=[] if status else answer(parse_json_text(row.data.get("response"))),
            timestamp=iso(start),
            first_token_s=_first_token(row, start),
            host=host,
            status=status,
            session=self._session(row),
            id=row.text("request_id", "") or row.text("id", ""),
            line=row.line or 0,
        )

    def _session(self, row: JsonObject) -> str:
        """The session that the client named; else the trace, which LiteLLM makes up where nobody gave one. A spend
        log does not tell one from the other."""
        named, trace = row.text("session_id", ""), row.text("trace_id", "")
        if not named or row.has("request_id"):
            self.traces.add(named or trace)
        return named or trace

    def say(self, path: Path, warn: Warn) -> None:
        """What was left out, and what the log does not tell."""
        for kind, number in self.left_out.items():
            warn(f"{path}: {number} entries {kind}: left out")
        if self.untold:
            warn(f"{path}: {self.untold} calls without their messages: only their usage is known")
        if self.headless:
            warn(f"{path}: {self.headless} calls without a system prompt: LiteLLM does not log it for their endpoint")
        if self.cut:
            warn(f"{path}: {self.cut} calls with texts that LiteLLM cut short: their sizes are not those of the prompt")


def _is_model_call(call_type: str, row: JsonObject) -> bool:
    kind = call_type.removesuffix("_stream")
    if kind in PASSED_THROUGH or kind.removeprefix("a") in PASSED_THROUGH:
        return not is_untold(_request(row)[1])
    return kind in MODEL_CALLS or kind.removeprefix("a") in MODEL_CALLS


def _may_lack_its_system(row: JsonObject, call_type: str, body: Mapping[str, Any]) -> bool:
    """LiteLLM's payload of a Messages or Responses call leaves `system` and `instructions` out."""
    return not body.get("system") and "completion" not in call_type and _received(row) is None


def _request(row: JsonObject) -> tuple[Mapping[str, Any], Any]:
    """(parameters, messages): of the body that came to the proxy, where a spend log has it, else as logged."""
    body = _received(row)
    if body is not None:
        rest = {name: value for name, value in body.items() if name not in ("messages", "input", "model")}
        return rest, body.get("messages") or body.get("input")
    parameters = row.data.get("model_parameters")
    return (parameters if isinstance(parameters, Mapping) else {}), parse_json_text(row.data.get("messages"))


def _received(row: JsonObject) -> Mapping[str, Any] | None:
    """The body that came to the proxy, where the database keeps it."""
    body = parse_json_text(row.data.get("proxy_server_request"))
    has_messages = isinstance(body, Mapping) and bool(body.get("messages") or body.get("input"))
    return body if has_messages else None


def _status(row: JsonObject) -> int | None:
    """None where it went well; else what the provider answered."""
    metadata = _metadata(row)
    if "failure" not in (row.data.get("status"), metadata.get("status")):
        return None
    error = row.data.get("error_information") or metadata.get("error_information")
    code = str(error.get("error_code")) if isinstance(error, Mapping) else ""
    return int(code) if code.isdecimal() and 400 <= int(code) <= 599 else FAILED


def _metadata(row: JsonObject) -> Mapping[str, Any]:
    metadata = parse_json_text(row.data.get("metadata"))
    return metadata if isinstance(metadata, Mapping) else {}


def _usage(row: JsonObject) -> Usage:
    """The provider's usage as LiteLLM kept it; else what its own columns count."""
    metadata, response = _metadata(row), parse_json_text(row.data.get("response"))
    kept = metadata.get("usage_object")
    if isinstance(kept, Mapping) and kept:
        return usage_from(kept, "metadata.usage_object", _shape(kept))
    told = response.get("usage") if isinstance(response, Mapping) else None
    if isinstance(told, Mapping) and told:
        return usage_from(told, "response.usage", _shape(told))
    more = metadata.get("additional_usage_values")
    counted = {name: row.whole(name, 0) for name in ("prompt_tokens", "completion_tokens")}
    return usage_from({**(more if isinstance(more, Mapping) else {}), **counted}, "row", "litellm")


def _shape(usage: Mapping[str, Any]) -> str:
    return "litellm" if "prompt_tokens" in usage else "auto"


def _moment(row: JsonObject, name: str) -> float:
    """Seconds since the epoch: a payload counts them, a database writes ISO 8601."""
    value = row.data.get(name)
    if isinstance(value, str):
        return row.time(name)
    told = row.get(name, "seconds since the epoch or an ISO 8601 time", _is_time, None)
    return 0.0 if told is None else float(told)


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e11


def _first_token(row: JsonObject, start: float) -> float:
    """Seconds to the first token. Without streaming LiteLLM logs the end as the beginning: not told."""
    if row.data.get("completionStartTime") is None or row.data.get("endTime") is None:
        return 0.0
    first, end = _moment(row, "completionStartTime"), _moment(row, "endTime")
    return round(first - start, 6) if start < first < end else 0.0
