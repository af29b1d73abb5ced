"""Calls in the telemetry of Claude Code: the events `claude_code.api_request` and `claude_code.api_error`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cachecost.base import limits
from cachecost.base.times import iso, seconds
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.apis.formats import status_in
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.otel.spans import OtelSpan
from cachecost.providers.hosts import host_of_provider, parse_model_name
from cachecost.providers.usage import Usage

PREFIX = "claude_code."
REQUEST, ERROR, SPAN = "api_request", "api_error", "llm_request"
MAIN = ("sdk", "main")
"""Sources of the main thread, besides those that begin with `repl_main_thread`."""
AGENTS = ("agent:builtin:", "agent:")
COUNTS = ("cache_creation", "cache_creation_1h", "cache_creation_5m", "input", "cache_read", "output")
NO_TTL = "with writes that are not split by TTL: taken as 5m"


def event_name(span: OtelSpan) -> str | None:
    """The name of an event or span of Claude Code, without its prefix; None for any other."""
    names = [span.name, *(str(attributes.get("body")) for _, attributes in span.events if span.is_record)]
    return next((name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)), None)


def claude_calls(found: Iterable[OtelSpan], notes: ReaderNotes) -> Iterable[tuple[OtelSpan, dict[str, Any]]]:
    """The calls among the events and spans of Claude Code, as what `CallBuilder.build` takes: bills, without what was
    sent. Each is there once; an event comes before a span of the same call."""
    calls = dict[str, tuple[OtelSpan, dict[str, Any]]]()
    for span in sorted(found, key=lambda one: not one.is_record):
        name = event_name(span)
        if name not in ((REQUEST, ERROR) if span.is_record else (SPAN,)):
            notes.skip("log record" if span.is_record else "span", "not a model call")
            continue
        at = span.at.within(span.events[0][1] if span.is_record else span.attributes, "attributes")
        if span.is_record:
            moment = at.moment("event.timestamp")
            end = span.start if moment is None else seconds(moment)
            start, has_failed = end - _number(at, "duration_ms") / 1000, name == ERROR
        else:
            start, has_failed = span.start, span.failed or at.data.get("success") in (False, "false")
            end = start + _number(at, "duration_ms") / 1000
        call = _parse_call(at, max(0.0, start), has_failed, notes)
        key = call["id"] or f"{call['session']} {max(0.0, end)} {len(calls)}"
        if key in calls:
            notes.skip("record", "same call as one before it")
        calls.setdefault(key, (span, call))
    return calls.values()


def _parse_call(at: JsonObject, start: float, has_failed: bool, notes: ReaderNotes) -> dict[str, Any]:
    model, host = parse_model_name(at.text("model", "") or at.text("gen_ai.request.model", ""), "")
    speed = {"speed": "fast"} if at.data.get("speed") == "fast" else {}
    return {
        "body": {"messages": [], "model": model, **speed},
        "usage": None if has_failed else _usage(at, notes),
        "timestamp": iso(start),
        "first_token_s": _number(at, "ttft_ms") / 1000,
        "host": host_of_provider(at.text("anthropic.provider", "")) or host,
        "status": _status(at) if has_failed else None,
        "source": "claude-code",
        "session": at.text("session.id", ""),
        "id": at.text("request_id", "") or at.text("client_request_id", ""),
        "line": at.line or 0,
        "agent": _agent(at),
    }


def _usage(at: JsonObject, notes: ReaderNotes) -> Usage:
    """The bill of a call. Writes that the event does not split by TTL count as 5m."""
    written, hour, short, fresh, read, output = (
        int(at.get(f"{name}_tokens", "a number of tokens", _are_tokens, 0, required=False)) for name in COUNTS
    )
    if written > short + hour:
        short = written - hour
        notes.add("call", NO_TTL)
    return Usage(fresh, read, short, hour, output)


def _status(at: JsonObject) -> int:
    """The HTTP status of a failed call: as stated, else as its error says."""
    stated = str(at.data.get("status_code") or "")
    is_status = stated.isdecimal() and 400 <= int(stated[:4]) <= 599
    return int(stated) if is_status else status_in(str(at.data.get("error") or ""))


def _agent(at: JsonObject) -> str:
    """The sub-agent or the side task that made a call; "" for the main thread."""
    source = at.text("query_source", "")
    if name := at.text("agent.name", ""):
        return name
    if source in MAIN or source.startswith("repl_main_thread"):
        return ""
    return next((source.removeprefix(prefix) for prefix in AGENTS if source.startswith(prefix)), source)


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
