"""Reads OpenTelemetry traces of model calls: OTLP/JSON and printed spans (spans.py).

Source: the GenAI semantic conventions (semantic-conventions-genai, schema 1.42, 2026; and 1.28 to 1.36), on
OpenLLMetry's and OpenInference's names of 2026. Model, usage, time and trace are there; messages only where the
tracer was told to write them, breakpoints only where it wrote down the request itself. Spans have no order: calls
are sorted by their start. It cannot tell 5m from 1h writes (but where the answer's own usage is there), tool choice
or thinking in most conventions, what was cut at the limit of an attribute's length, or content that was stored
elsewhere. The events of Claude Code (claude_code.py) have the bills of its calls and nothing of what was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.limits import whole_number
from cachecost.base.structs import replace
from cachecost.base.times import iso
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.readers.apis.formats import status_in
from cachecost.conversations.readers.common.json_values import by_start
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.otel.claude_code import claude_calls, event_name
from cachecost.conversations.readers.otel.messages import Attributes, answer_of_span, is_cut, request_of
from cachecost.conversations.readers.otel.printed import is_printed
from cachecost.conversations.readers.otel.spans import OtelSpan, model_calls, read_spans
from cachecost.conversations.readers.parsed_calls import CallBuilder, ParsedCall, first_keys, must_hold, parse_json_text
from cachecost.conversations.readers.traces import text_at
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
    values, found = read_spans(path, faults, warn)
    others = [span for span in found if event_name(span) is None]
    calls = []
    for span, parsed, agent in (
        *claude_calls((span for span in found if event_name(span) is not None), notes),
        *((span, None, "") for span in model_calls(others, notes)),
    ):
        try:
            call = builder.build(parsed or _parse_call(span, notes))
            calls.append(replace(call, agent=agent) if agent else call)
        except NotAMessage as fault:
            faults.append(Fault(span.at.file, f"{span.at.place}attributes: {fault}", span.at.line))
    notes.report(path, warn)
    must_hold(path, EXPECTED, values, faults)
    yield from by_start(calls, {span.trace for span in others})


def _parse_call(span: OtelSpan, notes: ReaderNotes) -> ParsedCall:
    attributes = span.attributes
    usage = _usage(attributes)
    status = _status(span) if span.failed and usage is None else None
    body = request_of(attributes, span.events)
    if body is None:
        body = {"messages": []}
        cut = any(is_cut(attributes.get(name)) for name in CONTENT)
        notes.add("span", f"{'with truncated' if cut else 'without'} messages: only usage is known")
    model, host = parse_model_name(text_at(attributes, MODELS), text_at(attributes, PROVIDERS))
    limit = attributes.get("gen_ai.request.max_tokens")
    return ParsedCall(
        body={**({"max_tokens": limit} if limit else {}), **body, "model": model},
        usage=usage,
        answer=answer_of_span(attributes, span.events),
        timestamp=iso(span.start),
        first_token_s=_seconds(attributes),
        host=_host(attributes, model, host),
        status=status,
        session=text_at(attributes, SESSIONS) or span.trace,
        id=text_at(attributes, ("gen_ai.response.id",)) or f"{span.trace}/{span.id}",
        line=span.at.line or 0,
    )


def _usage(attributes: Attributes) -> Usage | None:
    """The usage of the recorded answer, which splits 5m and 1h writes; else that of the attributes."""
    output = parse_json_text(attributes.get("output.value"))
    own = output.get("usage") if isinstance(output, Mapping) else None
    if isinstance(own, Mapping) and "cache_creation" in own:
        return usage_from(own, "output.value.usage", "anthropic")
    counts = {name: _number(value) for name, value in attributes.items() if name.startswith(USAGE)}
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


def _number(value: Any) -> Any:
    """A number that a tracer wrote as a text."""
    number = whole_number(value) if isinstance(value, str) else None
    return value if number is None else number


def _status(span: OtelSpan) -> int:
    errors = [span.error, *(str(event.get("exception.message", "")) for _, event in span.events)]
    numbers = (whole_number(str(span.attributes.get(name, ""))) or 0 for name in STATUS)
    return next((number for number in numbers if 400 <= number <= 599), status_in(" ".join(errors)))


def _host(attributes: Attributes, model: str, provider: str | None) -> str | None:
    """The host of a span. An instrumentation calls each server of a protocol by the name of its client library."""
    at = host_at(str(attributes.get("server.address") or ""), model)
    return at if at in host_names() or (provider in (None, "openai", "anthropic") and at) else provider


def _seconds(attributes: Attributes) -> float:
    first = next((attributes[name] for name in FIRST_TOKEN if name in attributes), 0.0)
    return float(first) if isinstance(first, (int, float)) and first >= 0 else 0.0
