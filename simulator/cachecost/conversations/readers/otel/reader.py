"""Reads OpenTelemetry traces of model calls: OTLP/JSON and printed spans (spans.py).

Source: the GenAI semantic conventions (semantic-conventions-genai, schema 1.42, 2026; and 1.28 to 1.36), on
OpenLLMetry's and OpenInference's names of 2026. Model, usage, time and trace are there; messages only where the
tracer was configured to write them, breakpoints only where it wrote the request itself. Spans have no order: calls
are sorted by their start. Not there: whether writes were 5m or 1h (except with the answer's own usage), in most
conventions tool choice and thinking, what was cut at the limit of an attribute's length, and content stored elsewhere.
The events of Claude Code (`claude_code.api_request`, `claude_code.api_error`) have the bills of its calls and nothing
of what was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import is_number, is_tokens, whole_number
from cachecost.base.times import iso, seconds
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.apis.formats import status_in
from cachecost.conversations.readers.call_builder import (
    CallBuilder,
    ErrorsAt,
    first_keys,
    parse_json_text,
    sort_by_start,
)
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.otel.messages import Attributes, answer_of_span, is_cut, request_of
from cachecost.conversations.readers.otel.spans import OtelSpan, is_printed, model_calls, read_spans
from cachecost.conversations.readers.traces import text_at
from cachecost.conversations.usage_shapes import usage_from
from cachecost.providers.hosts import host_at, host_names, host_of_provider, parse_model_name
from cachecost.providers.usage import Usage

USAGE = ("gen_ai.usage.", "llm.token_count.", "llm.usage.", "ai.usage.")
METADATA, AI_WRITTEN = "ai.response.providerMetadata", "ai.usage.inputTokenDetails.cacheWriteTokens"
"""Where the AI SDK has what its own fields lack: version 5 the writes and the provider's usage."""
MODELS = (
    *("gen_ai.request.model", "llm.request.model_name", "llm.model_name"),
    *("gen_ai.response.model", "llm.response.model_name"),
)
PROVIDERS = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
SESSIONS = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")
FIRST_TOKEN = ("gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token")
STATUS = ("http.response.status_code", "http.status_code", "error.type")

PREFIX = "claude_code."
REQUEST, ERROR, SPAN = "api_request", "api_error", "llm_request"
EVENT_COUNTS = ("cache_creation", "cache_creation_1h", "cache_creation_5m", "input", "cache_read", "output")


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` holds OpenTelemetry spans; None if it does not."""
    keys = first_keys(head)
    for name in ("resourceSpans", "resourceLogs"):
        if name in keys:
            return f'its first object has "{name}"'
        if "resourceMetrics" in keys and f'"{name}"'.encode() in head:
            return f'it has "resourceMetrics", then "{name}"'
    if {"context", "attributes", "start_time"} <= keys and b'"trace_id"' in head:
        return 'its first object has a "context" with a "trace_id"'
    if {"body", "attributes"} <= keys and b'"claude_code.' in head:
        return "its first object is an event of Claude Code"
    return "it has printed log records" if is_printed(head) else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in the order of their start. Raises InputError with every error; what spans lack goes to `warn`."""
    faults: list[Fault] = []
    notes, builder = ReaderNotes(), CallBuilder(keep_content)
    found = read_spans(path, faults, warn, "OpenTelemetry spans")
    others = [span for span in found if event_name(span) is None]
    calls = list[Call]()
    for span, parsed in (
        *claude_calls((span for span in found if event_name(span) is not None), notes),
        *((span, None) for span in model_calls(others, notes)),
    ):
        with ErrorsAt(span.at, "attributes: "):
            calls.append(builder.build(**(parsed or _parse_call(span, notes))))
    notes.report(path, warn)
    if faults:
        raise InputError(faults)
    yield from sort_by_start(calls, {span.trace for span in others})


def _parse_call(span: OtelSpan, notes: ReaderNotes) -> dict[str, Any]:
    attributes = span.attributes
    usage, status = _usage(attributes), None
    if span.failed and usage is None:
        errors = [span.error, *(str(event.get("exception.message", "")) for _, event in span.events)]
        numbers = (whole_number(str(attributes.get(name, ""))) or 0 for name in STATUS)
        status = next((number for number in numbers if 400 <= number <= 599), status_in(" ".join(errors)))
    body = request_of(attributes, span.events)
    if body is None:
        body = {"messages": []}
        cut = any(is_cut(attributes.get(name)) for name in ("gen_ai.input.messages", "gen_ai.prompt", "input.value"))
        notes.add("span", f"{'with truncated' if cut else 'without'} messages: only usage is known")
    model, host = parse_model_name(text_at(attributes, MODELS), text_at(attributes, PROVIDERS))
    # an instrumentation calls each server of a protocol by the name of its client library
    at = host_at(str(attributes.get("server.address") or ""), model)
    is_sure = at in host_names() or (host in (None, "openai", "anthropic") and at)
    limit = attributes.get("gen_ai.request.max_tokens")
    first = next((attributes[name] for name in FIRST_TOKEN if name in attributes), 0.0)
    return {
        "body": {**({"max_tokens": limit} if limit else {}), **body, "model": model},
        "usage": usage,
        "answer": answer_of_span(attributes, span.events),
        "timestamp": iso(span.start),
        "first_token_s": float(first) if isinstance(first, (int, float)) and first >= 0 else 0.0,
        "host": at if is_sure else host,
        "status": status,
        "session": text_at(attributes, SESSIONS) or span.trace,
        "id": text_at(attributes, ("gen_ai.response.id",)) or f"{span.trace}/{span.id}",
        "line": span.at.line or 0,
    }


def _usage(attributes: Attributes) -> Usage | None:
    """The usage of the recorded answer, which splits 5m and 1h writes; else that of the attributes."""
    output = parse_json_text(attributes.get("output.value"))
    own = output.get("usage") if isinstance(output, Mapping) else None
    if isinstance(own, Mapping) and "cache_creation" in own:
        return usage_from(own, "output.value.usage", "anthropic")
    counts = {name: value for name, value in attributes.items() if name.startswith(USAGE)}
    texts = {name: whole_number(value) for name, value in counts.items() if isinstance(value, str)}
    counts |= {name: number for name, number in texts.items() if number is not None}
    metadata = parse_json_text(attributes.get(METADATA))
    by_provider = metadata.values() if isinstance(metadata, Mapping) else ()
    for one in (found for found in by_provider if isinstance(found, Mapping)):
        raw = one.get("usage")
        if isinstance(raw, Mapping) and "input_tokens" in raw:
            return usage_from(raw, f"{METADATA}.usage", "anthropic")
        written = one.get("cacheCreationInputTokens") or (
            raw.get("cacheWriteInputTokens") if isinstance(raw, Mapping) else 0
        )
        counts |= {AI_WRITTEN: written} if written and not counts.get(AI_WRITTEN) else {}
    return usage_from(counts, "usage", "otel") if counts else None


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
            start, has_failed = end - _event_number(at, "duration_ms") / 1000, name == ERROR
        else:
            start, has_failed = span.start, span.failed or at.data.get("success") in (False, "false")
            end = start + _event_number(at, "duration_ms") / 1000
        call = _parse_event(at, max(0.0, start), has_failed, notes)
        key = call["id"] or f"{call['session']} {max(0.0, end)} {len(calls)}"
        if key in calls:
            notes.skip("record", "same call as one before it")
        calls.setdefault(key, (span, call))
    return calls.values()


def _parse_event(at: JsonObject, start: float, has_failed: bool, notes: ReaderNotes) -> dict[str, Any]:
    """What `CallBuilder.build` takes; the agent is the sub-agent or the side task, "" for the main thread."""
    model, host = parse_model_name(at.text("model", "") or at.text("gen_ai.request.model", ""), "")
    speed = {"speed": "fast"} if at.data.get("speed") == "fast" else {}
    usage = None
    if not has_failed:
        written, hour, short, fresh, read, output = (
            int(at.get(f"{name}_tokens", "a number of tokens", _are_tokens, 0, required=False)) for name in EVENT_COUNTS
        )
        if written > short + hour:
            short = written - hour
            notes.add("call", "with writes that are not split by TTL: taken as 5m")
        usage = Usage(fresh, read, short, hour, output)
    stated, error = str(at.data.get("status_code") or ""), str(at.data.get("error") or "")
    is_status = stated.isdecimal() and 400 <= int(stated[:4]) <= 599
    call = {
        "body": {"messages": [], "model": model, **speed},
        "usage": usage,
        "timestamp": iso(start),
        "first_token_s": _event_number(at, "ttft_ms") / 1000,
        "host": host_of_provider(at.text("anthropic.provider", "")) or host,
        "status": (int(stated) if is_status else status_in(error)) if has_failed else None,
        "source": "claude-code",
        "session": at.text("session.id", ""),
        "id": at.text("request_id", "") or at.text("client_request_id", ""),
        "line": at.line or 0,
    }
    source = at.text("query_source", "")
    agent = source.removeprefix("agent:builtin:" if source.startswith("agent:builtin:") else "agent:")
    is_main = source in ("sdk", "main") or source.startswith("repl_main_thread")
    return {**call, "agent": at.text("agent.name", "") or ("" if is_main else agent)}


def _event_number(at: JsonObject, name: str) -> float:
    return float(at.get(name, "a number from 0", _is_number, 0.0, required=False))


def _are_tokens(value: Any) -> bool:
    if isinstance(value, str):
        return value.isdecimal() and len(value) < 16 and is_tokens(int(value))
    return is_tokens(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.replace(".", "", 1).isdecimal() and len(value) < 20
    return is_number(value)
