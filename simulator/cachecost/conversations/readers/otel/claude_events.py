"""Calls in the telemetry of Claude Code: the events `claude_code.api_request` and `claude_code.api_error`.

Source: code.claude.com, Monitoring, and what Claude Code 2.1.330 exports (2026-11-23). An event has the bill of its
call and nothing of what was sent; it is emitted when the call ends. Clients of early 2026 write numbers as texts and
do not split the writes by TTL: these count as 5m. With tracing, the same calls are also
spans (`claude_code.llm_request`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cachecost.base import limits
from cachecost.base.times import seconds
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.notes import ReaderNotes
from cachecost.conversations.readers.common.traces import status_in
from cachecost.conversations.readers.otel.spans import OtelSpan
from cachecost.providers.hosts import host_of_provider
from cachecost.providers.usage import Usage

PREFIX = "claude_code."
REQUEST, ERROR, SPAN = "api_request", "api_error", "llm_request"
MAIN = ("sdk", "main")
"""Sources of the main thread, besides those that begin with `repl_main_thread`."""
AGENTS = ("agent:builtin:", "agent:")
NO_TTL = "with writes that are not split by TTL: taken as 5m"


@dataclass(frozen=True, slots=True)
class ClaudeCall:
    """One call of Claude Code. `usage` is None and `status` an HTTP status where it failed.

    `start` and `end` are seconds since the epoch, `agent` the sub-agent or the side task that made the call ("": the
    main thread), `prompt` the id of the user's message that it belongs to, `version` that of the client.
    """

    at: JsonObject
    model: str
    start: float
    end: float
    usage: Usage | None = None
    status: int | None = None
    session: str = ""
    agent: str = ""
    id: str = ""
    host: str | None = None
    first_token_s: float = 0.0
    is_fast: bool = False
    effort: str = ""
    prompt: str = ""
    version: str = ""


def split_claude_calls(found: Iterable[OtelSpan], notes: ReaderNotes) -> tuple[list[ClaudeCall], list[OtelSpan]]:
    """(the calls of Claude Code, each once; the other spans and log records)."""
    calls, rest = dict[str, ClaudeCall](), list[OtelSpan]()
    spans = list[OtelSpan]()
    for one in found:
        name = event_name(one)
        if name is None:
            rest.append(one)
        elif not one.is_record:
            spans.append(one)
        elif name in (REQUEST, ERROR):
            _add(calls, _parse_event(one, name == ERROR, notes), notes)
        else:
            notes.skip("log record", "not a model call")
    for span in spans:
        if event_name(span) == SPAN:
            _add(calls, _parse_span(span, notes), notes)
        else:
            notes.skip("span", "not a model call")
    return list(calls.values()), rest


def event_name(span: OtelSpan) -> str | None:
    """The name of an event or span of Claude Code, without its prefix; None for any other."""
    names = [span.name, *(str(attributes.get("body")) for _, attributes in span.events if span.is_record)]
    return next((name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)), None)


def _add(calls: dict[str, ClaudeCall], call: ClaudeCall, notes: ReaderNotes) -> None:
    """Add a call, unless it is there already."""
    key = call.id or f"{call.session} {call.end} {len(calls)}"
    if key in calls:
        notes.skip("record", "same call as one before it")
    calls.setdefault(key, call)


def _parse_event(record: OtelSpan, has_failed: bool, notes: ReaderNotes) -> ClaudeCall:
    at = record.at.within(record.events[0][1], "attributes")
    moment = at.moment("event.timestamp")
    end = record.start if moment is None else seconds(moment)
    return _parse_call(record, at, (end - _number(at, "duration_ms") / 1000, end), has_failed, notes)


def _parse_span(span: OtelSpan, notes: ReaderNotes) -> ClaudeCall:
    at = span.at.within(span.attributes, "attributes")
    has_failed = span.failed or at.data.get("success") in (False, "false")
    end = span.start + _number(at, "duration_ms") / 1000
    return _parse_call(span, at, (span.start, end), has_failed, notes)


def _parse_call(
    span: OtelSpan, at: JsonObject, times: tuple[float, float], has_failed: bool, notes: ReaderNotes
) -> ClaudeCall:
    start, end = times
    return ClaudeCall(
        span.at,
        at.text("model", "") or at.text("gen_ai.request.model", ""),
        max(0.0, start),
        max(0.0, end),
        usage=None if has_failed else _usage(at, notes),
        status=_status(at) if has_failed else None,
        session=at.text("session.id", ""),
        agent=_agent(at),
        id=at.text("request_id", "") or at.text("client_request_id", ""),
        host=host_of_provider(at.text("anthropic.provider", "")),
        first_token_s=_number(at, "ttft_ms") / 1000,
        is_fast=at.data.get("speed") == "fast",
        effort=at.text("effort", ""),
        prompt=at.text("prompt.id", ""),
        version=span.version,
    )


def _usage(at: JsonObject, notes: ReaderNotes) -> Usage:
    """The bill of a call. Writes that the event does not split by TTL count as 5m."""
    written, hour = _tokens(at, "cache_creation_tokens"), _tokens(at, "cache_creation_1h_tokens")
    short = _tokens(at, "cache_creation_5m_tokens")
    if written > short + hour:
        short = written - hour
        notes.add("call", NO_TTL)
    return Usage(
        _tokens(at, "input_tokens"), _tokens(at, "cache_read_tokens"), short, hour, _tokens(at, "output_tokens")
    )


def _status(at: JsonObject) -> int:
    """The HTTP status of a failed call: as stated, else as its error says."""
    stated = str(at.data.get("status_code") or "")
    is_status = stated.isdecimal() and 400 <= int(stated[:4]) <= 599
    return int(stated) if is_status else status_in(str(at.data.get("error") or ""))


def _agent(at: JsonObject) -> str:
    source = at.text("query_source", "")
    if name := at.text("agent.name", ""):
        return name
    if source in MAIN or source.startswith("repl_main_thread"):
        return ""
    return next((source.removeprefix(prefix) for prefix in AGENTS if source.startswith(prefix)), source)


def _tokens(at: JsonObject, name: str) -> int:
    return int(at.get(name, "a number of tokens", _are_tokens, 0, required=False))


def _number(at: JsonObject, name: str) -> float:
    return float(at.get(name, "a number from 0", _is_number, 0.0, required=False))


def _are_tokens(value: Any) -> bool:
    if isinstance(value, str):
        return value.isdecimal() and len(value) < 16 and limits.is_tokens(int(value))
    return limits.is_tokens(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.replace(".", "", 1).isdecimal() and len(value) < 20
    return limits.is_number(value)
