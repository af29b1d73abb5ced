"""Reads OpenTelemetry traces of model calls: OTLP/JSON (also a line at a time, as the file exporter writes it), the
flat form that Python's and JavaScript's console exporters print, and JavaScript's log records, which are objects in
the notation of Node's `util.inspect`.

Source: the GenAI semantic conventions (semantic-conventions-genai, schema 1.42, 2026; and 1.28 to 1.36), on
OpenLLMetry's and OpenInference's names of 2026. Spans have no order: calls are sorted by their start. On OTLP: the
specification's JSON mapping (1.5: camelCase, ids in hex, 64-bit integers as texts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import is_id, is_number, is_tokens, whole_number
from cachecost.base.times import LATEST, iso, seconds
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, open_input, quiet, read_input
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.apis.formats import status_in
from cachecost.conversations.readers.call_builder import (
    CallBuilder,
    errors_at,
    expect_any,
    first_keys,
    objects,
    parse_json_text,
    sort_by_start,
)
from cachecost.conversations.readers.common.json_values import object_or_empty, objects_in
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.otel import messages
from cachecost.conversations.readers.traces import text_at
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.request import show_found
from cachecost.providers.hosts import host_of_named, host_of_provider, parse_model_name
from cachecost.providers.usage import Usage

ERRORS = (2, "STATUS_CODE_ERROR", "ERROR", "StatusCode.ERROR")
DETAILS = "gen_ai.client.inference.operation.details"
CALLS = ("chat", "generate_content", "text_completion", "completion", "responses", "messages")
"""`gen_ai.operation.name` and `llm.request.type` of a model call."""
NO_CALLS = (
    *("embeddings", "embedding", "execute_tool", "invoke_agent", "create_agent", "invoke_workflow", "retrieval"),
    *("plan", "rerank", "image_generation", "speech", "transcription"),
)
COLOURS = re.compile(rb"\x1b\[[0-9;]*m")
PRINTED = re.compile(r"^(?:\[\w+\] )?(?=\{$)", re.MULTILINE)
END = re.compile(r"^\}", re.MULTILINE)
TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`\\]|\\.)*`)|(?P<left_out>\[[A-Z]\w*\]|\.\.\. [^\n]*)"
    r"|(?P<number>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?n?)|(?P<word>[A-Za-z_$][\w$]*)|(?P<mark>[{}\[\]:,+]))",
    re.DOTALL,
)
WORDS = {"true": True, "false": False, "null": None, "undefined": None}
DEEPEST = 16


@dataclass(slots=True)
class OtelSpan:
    """A span, or its log record where only that was exported. Ids are hex, `start` seconds since the epoch, `events`
    (name, attributes); `at` is the place of the span, for errors."""

    at: JsonObject
    name: str = ""
    trace: str = ""
    id: str = ""
    parent: str = ""
    start: float = 0.0
    failed: bool = False
    error: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    is_record: bool = False


def _spans_in(value: JsonObject) -> Iterator[OtelSpan]:
    if "attributes" in value.data or "context" in value.data:
        is_record = {"attributes", "body"} <= value.data.keys()
        yield _parse_printed_record(value) if is_record else _parse_printed_span(value)
        return
    known = ("resourceSpans", "resourceLogs", "resourceMetrics")
    if not any(value.has(name) for name in known):
        value.fault(known[0], "expected spans (or the attributes of a printed span); got nothing")
    for outer, middle, inner, parse in (
        ("resourceSpans", "scopeSpans", "spans", _parse_otlp_span),
        ("resourceLogs", "scopeLogs", "logRecords", _parse_log_record),
    ):
        for resource in value.objects(outer):
            for scope in resource.objects(middle):
                yield from map(parse, scope.objects(inner))


def _parse_otlp_span(span: JsonObject) -> OtelSpan:
    status = span.mapping("status", required=False)
    name, trace, id_, parent = _texts(span, "name", "traceId", "spanId", "parentSpanId")
    return OtelSpan(
        span,
        name,
        trace,
        id_,
        parent,
        start=_nanoseconds(span, "startTimeUnixNano"),
        failed=status.get("code") in ERRORS,
        error=str(status.get("message") or ""),
        attributes=_attributes(span),
        events=[(event.text("name", ""), _attributes(event)) for event in span.objects("events")],
    )


def _parse_printed_span(span: JsonObject) -> OtelSpan:
    """A span as a console exporter prints it: plain attributes, ISO times."""
    context = span.within(span.mapping("context", required=False), "context")
    status = span.mapping("status", required=False)
    trace, id_ = _texts(context, "trace_id", "span_id")
    return OtelSpan(
        span,
        span.text("name", ""),
        trace,
        id_,
        _texts(span, "parent_id")[0],
        start=span.time("start_time"),
        failed=status.get("status_code") in ERRORS,
        error=str(status.get("description") or ""),
        attributes=span.mapping("attributes", required=False),
        events=[(one.text("name", ""), one.mapping("attributes", required=False)) for one in span.objects("events")],
    )


def _texts(span: JsonObject, *names: str) -> list[str]:
    """The texts under `names`; ids may begin with 0x, where an exporter prints them."""
    return [span.text(name, "").removeprefix("0x") for name in names]


def _parse_log_record(record: JsonObject) -> OtelSpan:
    """A log record, as a span with one event. Its name is `eventName`, before that an attribute."""
    attributes = _attributes(record)
    name = record.text("eventName", "") or str(attributes.get("event.name") or "")
    body = _value(record, "body", record.data["body"]) if record.has("body") else None
    event = {**(body if isinstance(body, dict) else {"body": body}), **attributes}
    start = _nanoseconds(record, "timeUnixNano" if record.has("timeUnixNano") else "observedTimeUnixNano")
    trace, id_ = _texts(record, "traceId", "spanId")
    return OtelSpan(record, name, trace, id_, start=start, events=[(name, event)], is_record=True)


def _parse_printed_record(record: JsonObject) -> OtelSpan:
    """A log record as a console exporter prints it: plain attributes; the time is in microseconds or ISO 8601."""
    attributes = record.mapping("attributes", required=False)
    attribute = str(attributes.get("event.name") or "")
    if record.has("timeUnixNano"):
        start = _nanoseconds(record, "timeUnixNano")
    elif isinstance(record.data.get("timestamp"), str):
        start = record.time("timestamp")
    else:
        expected, most = "microseconds since the epoch", LATEST * 10**6
        start = float(record.get("timestamp", expected, lambda it: _is_count(it) and int(it) < most, 0, False)) / 10**6
    names, traces, ids = (
        _texts(record, *pair) for pair in (("eventName", "event_name"), ("traceId", "trace_id"), ("spanId", "span_id"))
    )
    name, trace, id_ = next(filter(None, names), attribute), next(filter(None, traces), ""), next(filter(None, ids), "")
    events = [(attribute, {"body": record.data.get("body"), **attributes})]
    return OtelSpan(record, name, trace, id_, start=start, events=events, is_record=True)


def _nanoseconds(span: JsonObject, name: str) -> float:
    return int(span.get(name, "nanoseconds since the epoch", _is_count, "0")) / 10**9


def _is_count(value: object) -> bool:
    return whole_number(value) is not None if isinstance(value, str) else is_id(value)


def _attributes(span: JsonObject) -> dict[str, Any]:
    return {pair.text("key"): _value(pair, "value", pair.data.get("value")) for pair in span.objects("attributes")}


def _value(at: JsonObject, name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        at.fault(name, f"expected a value object; got {show_found(value)}")
        return None
    kind, inner = next(iter(value.items()), ("", None))
    place, values = f"{name}.{kind}", object_or_empty(inner).get("values")
    values = values if isinstance(values, list) else []
    if kind in ("stringValue", "boolValue", "bytesValue", "doubleValue", ""):
        return inner
    if kind == "arrayValue":
        return [_value(at, place, one) for one in values]
    if kind == "kvlistValue":
        return {str(one.get("key")): _value(at, place, one.get("value", {})) for one in objects_in(values)}
    if kind != "intValue":
        at.fault(name, f"expected a value type; got {show_found(kind)}")
    elif isinstance(inner, int) and not isinstance(inner, bool):
        return inner
    elif isinstance(inner, str) and whole_number(inner.removeprefix("-")) is not None:
        return int(inner)
    else:
        at.fault(place, f"expected a whole number; got {show_found(inner)}")
    return None


def model_calls(found: Iterable[OtelSpan], notes: ReaderNotes) -> Iterator[OtelSpan]:
    """The spans that are model calls, each once, however many tracers wrote it down. Their log records and events are
    merged into their attributes; a record of a whole call stands for a span that is not there."""
    found = list(found)
    spans = [span for span in found if not span.is_record]
    known = {(span.trace, span.id): span for span in spans if span.id}
    for record in (one for one in found if one.is_record):
        owner = known.get((record.trace, record.id))
        if owner is not None and record.name in (DETAILS, messages.CHOICE, *messages.EVENT_ROLES):
            owner.events += record.events
        elif owner is None and record.name == DETAILS:
            spans.append(record)
        else:
            notes.skip("log record", "not a model call")
    for span in spans:
        for name, attributes in span.events:
            if name in (DETAILS, "gen_ai.content.prompt", "gen_ai.content.completion"):  # the attributes of the call
                span.attributes = {**attributes, **span.attributes}
    known = {(span.trace, span.id): span for span in spans if span.id}
    chosen = [span for span in spans if _is_call(span)]
    outer = {id(above) for span in chosen for above in _outer_duplicates(span, known)}
    notes.skip("span", "not a model call", len(spans) - len(chosen))
    notes.skip("span", "same call as a span inside it", len(outer))
    yield from (span for span in chosen if id(span) not in outer)


def _is_call(span: OtelSpan) -> bool:
    attributes = span.attributes
    kind = attributes.get("openinference.span.kind")
    operation = str(attributes.get("gen_ai.operation.name") or attributes.get("llm.request.type") or "").lower()
    if kind is not None or operation in (*CALLS, *NO_CALLS):
        return kind == "LLM" if kind is not None else operation in CALLS
    has_usage = any(name.startswith(("gen_ai.usage.", "llm.token_count.")) for name in attributes)
    models = ("gen_ai.request.model", "gen_ai.response.model", "llm.model_name", "llm.request.model_name")
    return has_usage and any(attributes.get(name) for name in models)


def _outer_duplicates(span: OtelSpan, known: Mapping[tuple[str, str], OtelSpan]) -> Iterator[OtelSpan]:
    """Calls that a call lies in with no agent or tool between: the same call, seen from further out."""
    kinds = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind")
    between = ("execute_tool", "invoke_agent", "invoke_workflow", "tool", "agent", "chain")
    above, seen = known.get((span.trace, span.parent)), {id(span)}
    while above is not None and id(above) not in seen:
        if any(str(above.attributes.get(name)).lower() in between for name in kinds):
            return
        seen.add(id(above))
        if _is_call(above):
            yield above
        above = known.get((above.trace, above.parent))


class Damaged(Exception):
    """A text that is no printed object."""


def is_printed(head: bytes) -> bool:
    """Whether the first bytes of a file hold printed log records."""
    plain = COLOURS.sub(b"", head).replace(b"\r\n", b"\n")
    starts = (b"\n  instrumentationScope: {", b"\n  body: 'claude_code.", b'\n  body: "claude_code.')
    return any(start in plain for start in starts)


def _printed_records(path: Path, faults: list[Fault]) -> Iterator[JsonObject]:
    text = COLOURS.sub(b"", read_input(path)).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    at, line = 0, 1
    while block := PRINTED.search(text, at):
        end = END.search(text, block.end())
        line += text.count("\n", at, block.start())
        stop = end.end() if end else len(text)
        record = text[block.end() : stop]
        if "\n  attributes: {" in record and "\n  body: " in record:
            try:
                yield JsonObject(_PrintedParser(record).value(), faults, str(path), line)
            except Damaged as error:
                faults.append(Fault(str(path), f"damaged log record: {error}", line))
        line, at = line + text.count("\n", block.start(), stop), stop


class _PrintedParser:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def value(self, depth: int = 0) -> Any:
        kind, token = self._next()
        if kind == "mark" and token in "{[":
            if depth >= DEEPEST:
                raise Damaged(f"objects more than {DEEPEST} levels deep")
            return self._inside(token == "{", depth + 1)
        if kind == "text":
            text = _unescape(token)
            while self._skips("+"):
                kind, token = self._next()
                if kind != "text":
                    raise Damaged("expected a text after +")
                text += _unescape(token)
            return text
        if kind == "number" and len(token) <= 30:
            return float(token) if re.search(r"[.e]", token) else int(token.rstrip("n"))
        if kind == "left_out" or (kind == "word" and token in WORDS):
            return WORDS.get(token)
        raise Damaged(f"expected a value; got {token[:20]!r}")

    def _inside(self, is_object: bool, depth: int) -> Any:
        fields, items = dict[str, Any](), list[Any]()
        while not self._skips("}" if is_object else "]"):
            kind, name = self._next() if is_object else ("", "")
            if is_object and (kind not in ("text", "word", "number") or not self._skips(":")):
                raise Damaged(f"expected a name and a colon; got {name[:20]!r}")
            value = self.value(depth)
            if is_object:
                fields[_unescape(name) if kind == "text" else name] = value
            else:
                items.append(value)
            self._skips(",")
        return fields if is_object else items

    def _next(self) -> tuple[str, str]:
        found = TOKEN.match(self._text, self._at)
        if found is None:
            rest = self._text[self._at :].strip()
            raise Damaged(f"got {rest[:20]!r}" if rest else "cut off")
        self._at = found.end()
        kind = str(found.lastgroup)
        return kind, found[kind]

    def _skips(self, mark: str) -> bool:
        found = TOKEN.match(self._text, self._at)
        if found is None:
            raise Damaged("cut off")
        if found["mark"] != mark:
            return False
        self._at = found.end()
        return True


def _unescape(token: str) -> str:
    escapes = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda found: escapes.get(found[1], found[1]), token[1:-1], flags=re.DOTALL)


USAGE = ("gen_ai.usage.", "llm.token_count.", "llm.usage.", "ai.usage.")
METADATA, AI_WRITTEN = "ai.response.providerMetadata", "ai.usage.inputTokenDetails.cacheWriteTokens"
"""Where the AI SDK has what its own fields lack: version 5 the writes and the provider's usage."""
MODELS = (
    *("gen_ai.request.model", "llm.request.model_name", "llm.model_name"),
    *("gen_ai.response.model", "llm.response.model_name"),
)
PROVIDERS = ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system")
SESSIONS = ("gen_ai.conversation.id", "session.id", "traceloop.association.properties.session_id")

PREFIX = "claude_code."
REQUEST, ERROR, SPAN = "api_request", "api_error", "llm_request"
EVENT_COUNTS = ("cache_creation", "cache_creation_1h", "cache_creation_5m", "input", "cache_read", "output")


def sniff(head: bytes) -> str | None:
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
    faults: list[Fault] = []
    notes, builder = ReaderNotes(), CallBuilder(keep_content)
    with open_input(path) as stream:
        is_console = is_printed(stream.read(1 << 16))
    values = _printed_records(path, faults) if is_console else objects(path, faults, warn)
    values = expect_any(values, path, faults, "OpenTelemetry spans")
    found = [span for value in values for span in _spans_in(value)]
    others = [span for span in found if event_name(span) is None]
    calls = list[Call]()
    for span, parsed in (
        *claude_calls((span for span in found if event_name(span) is not None), notes),
        *((span, None) for span in model_calls(others, notes)),
    ):
        with errors_at(span.at, "attributes: "):
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
        names = ("http.response.status_code", "http.status_code", "error.type")
        numbers = (whole_number(str(attributes.get(name, ""))) or 0 for name in names)
        status = next((number for number in numbers if 400 <= number <= 599), status_in(" ".join(errors)))
    body = messages.request_of(attributes, span.events)
    if body is None:
        body = {"messages": []}
        cut = any(
            messages.is_cut(attributes.get(name)) for name in ("gen_ai.input.messages", "gen_ai.prompt", "input.value")
        )
        notes.add("span", f"{'with truncated' if cut else 'without'} messages: only usage is known")
    model, host = parse_model_name(text_at(attributes, MODELS), text_at(attributes, PROVIDERS))
    limit = attributes.get("gen_ai.request.max_tokens")
    times = ("gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token")
    first = next((attributes[name] for name in times if name in attributes), 0.0)
    return {
        "body": {**({"max_tokens": limit} if limit else {}), **body, "model": model},
        "usage": usage,
        "answer": messages.answer_of_span(attributes, span.events),
        "timestamp": iso(span.start),
        "first_token_s": float(first) if isinstance(first, (int, float)) and first >= 0 else 0.0,
        "host": host_of_named(host, str(attributes.get("server.address") or ""), model),
        "status": status,
        "session": text_at(attributes, SESSIONS) or span.trace,
        "id": text_at(attributes, ("gen_ai.response.id",)) or f"{span.trace}/{span.id}",
        "line": span.at.line or 0,
    }


def _usage(attributes: messages.Attributes) -> Usage | None:
    """The usage of the recorded answer, which splits 5m and 1h writes; else that of the attributes."""
    output = parse_json_text(attributes.get("output.value"))
    own = object_or_empty(object_or_empty(output).get("usage"))
    if "cache_creation" in own:
        return usage_from(own, "output.value.usage", "anthropic")
    counts = {name: value for name, value in attributes.items() if name.startswith(USAGE)}
    texts = {name: whole_number(value) for name, value in counts.items() if isinstance(value, str)}
    counts |= {name: number for name, number in texts.items() if number is not None}
    metadata = parse_json_text(attributes.get(METADATA))
    for one in objects_in(list(object_or_empty(metadata).values())):
        raw = object_or_empty(one.get("usage"))
        if "input_tokens" in raw:
            return usage_from(raw, f"{METADATA}.usage", "anthropic")
        written = one.get("cacheCreationInputTokens") or raw.get("cacheWriteInputTokens")
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
    return is_tokens(whole_number(value) if isinstance(value, str) and len(value) < 16 else value)


def _is_number(value: Any) -> bool:
    is_text = isinstance(value, str)
    return value.replace(".", "", 1).isdecimal() and len(value) < 20 if is_text else is_number(value)
