"""Reads OpenTelemetry traces of model calls: OTLP/JSON and printed spans (spans.py).

Source: the GenAI semantic conventions (semantic-conventions-genai, schema 1.42, 2026; and 1.28 to 1.36), on
OpenLLMetry's and OpenInference's names of 2026. Model, usage, time and trace are there; messages only where the
tracer was told to write them, breakpoints only where it wrote down the request itself. Spans have no order: calls
are sorted by their start. It cannot tell 5m from 1h writes (but where the answer's own usage is there), tool choice
or thinking in most conventions, what was cut at the limit of an attribute's length, or content that was stored
elsewhere. The events of Claude Code (claude_events.py) have the bills of its calls and nothing of what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.limits import whole_number
from cachecost.base.times import iso
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.readers.common.dialects import (
    CallBuilder,
    ParsedCall,
    must_hold,
    parse_json_text,
    status_in,
)
from cachecost.conversations.readers.common.json_values import by_start
from cachecost.conversations.readers.common.peek import ReaderNotes, top_keys
from cachecost.conversations.readers.otel.messages import Attributes, answer_of_span, is_cut, model_calls, request_of
from cachecost.conversations.readers.otel.spans import ClaudeCall, OtelSpan, is_printed, spans, split_claude_calls
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.request import NotAMessage
from cachecost.providers.hosts import host_at, host_names, parse_model_name
from cachecost.providers.usage import Usage

EXPECTED = "OpenTelemetry spans"
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
CONTENT = ("gen_ai.input.messages", "gen_ai.prompt", "input.value")


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` holds OpenTelemetry spans; None if it does not."""
    keys = set(top_keys(head.removeprefix(b"\xef\xbb\xbf").lstrip().removeprefix(b"[")))
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


@dataclass(frozen=True, slots=True)
class TelemetryFile:
    """What a file holds: `calls` in the order of their start, `events` those of Claude Code by the id of their call.

    `values` is the number of JSON values in the file.
    """

    calls: list[RecordedCall]
    events: dict[str, ClaudeCall]
    values: int


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
    """The calls in the order of their start. Raises InputError with every error; what spans lack goes to `warn`."""
    faults: list[Fault] = []
    found = read_telemetry(path, faults, warn, keep_content)
    must_hold(path, EXPECTED, found.values, faults)
    yield from found.calls


def read_telemetry(path: Path, faults: list[Fault], warn: Warn = quiet, keep_content: bool = False) -> TelemetryFile:
    """The calls of a file, also of one with errors, which are added to `faults`. Raises InputError if unreadable."""
    notes = ReaderNotes()
    builder = CallBuilder(keep_content)
    values, found = spans(path, faults, warn)
    claude, others = split_claude_calls(found, notes)
    told = []
    each: Iterator[ClaudeCall | OtelSpan] = chain(claude, model_calls(others, notes))
    for one in each:
        try:
            if isinstance(one, ClaudeCall):
                told.append(_claude_call(one, builder))
            else:
                told.append(builder.build(_parse_call(one, notes)))
        except NotAMessage as fault:
            faults.append(Fault(one.at.file, f"{one.at.place}attributes: {fault}", one.at.line))
    notes.report(path, warn)
    return TelemetryFile(by_start(told, {span.trace for span in others}), {one.id: one for one in claude}, values)


def _claude_call(event: ClaudeCall, builder: CallBuilder) -> RecordedCall:
    """The call of an event of Claude Code: its bill, without what was sent."""
    model, host = parse_model_name(event.model, "")
    speed = {"speed": "fast"} if event.is_fast else {}
    parsed = ParsedCall(
        body={"messages": [], "model": model, **speed},
        usage=event.usage,
        timestamp=iso(event.start),
        first_token_s=event.first_token_s,
        host=event.host or host,
        status=event.status,
        source="claude-code",
        session=event.session,
        id=event.id,
        line=event.at.line or 0,
    )
    return replace(builder.build(parsed), agent=event.agent)


def _parse_call(span: OtelSpan, notes: ReaderNotes) -> ParsedCall:
    attributes = span.attributes
    usage = _usage(attributes)
    status = _status(span) if span.failed and usage is None else None
    body = request_of(attributes, span.events)
    if body is None:
        body = {"messages": []}
        cut = any(is_cut(attributes.get(name)) for name in CONTENT)
        notes.add("span", f"{'with truncated' if cut else 'without'} messages: only usage is known")
    model, host = parse_model_name(_first(attributes, MODELS), _first(attributes, PROVIDERS))
    limit = attributes.get("gen_ai.request.max_tokens")
    return ParsedCall(
        body={**({"max_tokens": limit} if limit else {}), **body, "model": model},
        usage=usage,
        answer=answer_of_span(attributes, span.events),
        timestamp=iso(span.start),
        first_token_s=_seconds(attributes),
        host=_host(attributes, model, host),
        status=status,
        session=_first(attributes, SESSIONS) or span.trace,
        id=_first(attributes, ("gen_ai.response.id",)) or f"{span.trace}/{span.id}",
        line=span.at.line or 0,
    )


def _usage(attributes: Attributes) -> Usage | None:
    """The usage of the recorded answer, which splits 5m and 1h writes; else that of the attributes."""
    output = parse_json_text(attributes.get("output.value"))
    own = output.get("usage") if isinstance(output, Mapping) else None
    if isinstance(own, Mapping) and "cache_creation" in own:
        return usage_from(own, "output.value.usage", "anthropic")
    told = {name: _number(value) for name, value in attributes.items() if name.startswith(USAGE)}
    metadata = parse_json_text(attributes.get(METADATA))
    by_provider = metadata.values() if isinstance(metadata, Mapping) else ()
    for one in (found for found in by_provider if isinstance(found, Mapping)):
        raw = one.get("usage")
        if isinstance(raw, Mapping) and "input_tokens" in raw:
            return usage_from(raw, f"{METADATA}.usage", "anthropic")
        written = one.get("cacheCreationInputTokens") or (
            raw.get("cacheWriteInputTokens") if isinstance(raw, Mapping) else 0
        )
        told |= {AI_WRITTEN: written} if written and not told.get(AI_WRITTEN) else {}
    return usage_from(told, "usage", "otel") if told else None


def _number(value: Any) -> Any:
    """A number that a tracer wrote as a text."""
    number = whole_number(value) if isinstance(value, str) else None
    return value if number is None else number


def _status(span: OtelSpan) -> int:
    told = (str(span.attributes.get(name, "")) for name in STATUS)
    errors = [span.error, *(str(event.get("exception.message", "")) for _, event in span.events)]
    numbers = (whole_number(one) or 0 for one in told)
    return next((number for number in numbers if 400 <= number <= 599), status_in(" ".join(errors)))


def _host(attributes: Attributes, model: str, provider: str | None) -> str | None:
    """The host of a span. An instrumentation calls each server of a protocol by the name of its client library."""
    at = host_at(str(attributes.get("server.address") or ""), model)
    return at if at in host_names() or (provider in (None, "openai", "anthropic") and at) else provider


def _seconds(attributes: Attributes) -> float:
    told = next((attributes[name] for name in FIRST_TOKEN if name in attributes), 0.0)
    return float(told) if isinstance(told, (int, float)) and told >= 0 else 0.0


def _first(attributes: Attributes, names: tuple[str, ...]) -> str:
    return next((str(attributes[name]) for name in names if attributes.get(name)), "")
