"""Reads OpenTelemetry spans and log records, with their attributes as a plain dict, and finds those that are calls of a
model (reader.py interprets them).

Read are OTLP/JSON (also a line at a time, as the file exporter writes it), the flat form that Python's and JavaScript's
console exporters print, and JavaScript's log records, which are objects in the notation of Node's `util.inspect`.
Source: the OTLP specification's JSON mapping (1.5: names in camelCase, ids in hex, 64-bit integers as texts).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.limits import whole_number
from cachecost.base.times import LATEST
from cachecost.conversations.input_files import Warn, open_input, read_input
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.call_builder import expect_any, objects
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.otel.messages import CHOICE, EVENT_ROLES
from cachecost.prompts.request import show_found

ERRORS = (2, "STATUS_CODE_ERROR", "ERROR", "StatusCode.ERROR")
DETAILS = "gen_ai.client.inference.operation.details"
CALLS = ("chat", "generate_content", "text_completion", "completion", "responses", "messages")
"""`gen_ai.operation.name` and `llm.request.type` of a model call."""
NO_CALLS = (
    *("embeddings", "embedding", "execute_tool", "invoke_agent", "create_agent", "invoke_workflow", "retrieval"),
    *("plan", "rerank", "image_generation", "speech", "transcription"),
)
Attributes = dict[str, Any]

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
    """One span, or the log record of one where only that was exported. Ids are hex, `start` seconds since the epoch.

    `events` are (name, attributes); `at` is the place of the span, for errors.
    """

    at: JsonObject
    name: str = ""
    trace: str = ""
    id: str = ""
    parent: str = ""
    start: float = 0.0
    failed: bool = False
    error: str = ""
    attributes: Attributes = field(default_factory=dict)
    events: list[tuple[str, Attributes]] = field(default_factory=list)
    is_record: bool = False


def read_spans(path: Path, faults: list[Fault], warn: Warn, expected: str) -> list[OtelSpan]:
    """The spans and log records in a file. Errors are added to `faults`; that nothing `expected` is there is one."""
    with open_input(path) as stream:
        is_console = is_printed(stream.read(1 << 16))
    values = _printed_records(path, faults) if is_console else objects(path, faults, warn)
    return [span for value in expect_any(values, path, faults, expected) for span in _spans_in(value)]


def _spans_in(value: JsonObject) -> Iterator[OtelSpan]:
    if "attributes" in value.data or "context" in value.data:
        is_record = "attributes" in value.data and "body" in value.data
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
    return OtelSpan(
        span,
        span.text("name", ""),
        span.text("traceId", ""),
        span.text("spanId", ""),
        span.text("parentSpanId", ""),
        _nanoseconds(span, "startTimeUnixNano"),
        status.get("code") in ERRORS,
        str(status.get("message") or ""),
        _attributes(span),
        [(event.text("name", ""), _attributes(event)) for event in span.objects("events")],
    )


def _parse_log_record(record: JsonObject) -> OtelSpan:
    """A log record, as a span with one event. Its name is `eventName`, before that an attribute."""
    attributes = _attributes(record)
    name = record.text("eventName", "") or str(attributes.get("event.name") or "")
    body = _value(record, "body", record.data["body"]) if record.has("body") else None
    event = {**(body if isinstance(body, dict) else {"body": body}), **attributes}
    start = _nanoseconds(record, "timeUnixNano" if record.has("timeUnixNano") else "observedTimeUnixNano")
    trace, id_ = record.text("traceId", ""), record.text("spanId", "")
    return OtelSpan(record, name, trace, id_, start=start, events=[(name, event)], is_record=True)


def _parse_printed_span(span: JsonObject) -> OtelSpan:
    """A span as a console exporter prints it: plain attributes, ISO times, ids that may begin with 0x."""
    context = span.within(span.mapping("context", required=False), "context")
    status = span.mapping("status", required=False)
    events = [(one.text("name", ""), one.mapping("attributes", required=False)) for one in span.objects("events")]
    return OtelSpan(
        span,
        span.text("name", ""),
        _printed_id(context, "trace_id"),
        _printed_id(context, "span_id"),
        _printed_id(span, "parent_id"),
        span.time("start_time"),
        status.get("status_code") in ERRORS,
        str(status.get("description") or ""),
        span.mapping("attributes", required=False),
        events,
    )


def _printed_id(span: JsonObject, name: str) -> str:
    return span.text(name, "").removeprefix("0x")


def _parse_printed_record(record: JsonObject) -> OtelSpan:
    """A log record as a console exporter prints it: plain attributes; the time is in microseconds or ISO 8601."""
    attributes = record.mapping("attributes", required=False)
    name = str(attributes.get("event.name") or "")
    if record.has("timeUnixNano"):
        start = _nanoseconds(record, "timeUnixNano")
    elif isinstance(record.data.get("timestamp"), str):
        start = record.time("timestamp")
    else:
        expected, most = "microseconds since the epoch", LATEST * 10**6
        microseconds = record.get(
            "timestamp", expected, lambda value: _is_count(value) and int(value) < most, 0, required=False
        )
        start = float(microseconds) / 10**6
    return OtelSpan(
        record,
        record.text("eventName", "") or record.text("event_name", "") or name,
        record.text("traceId", "") or _printed_id(record, "trace_id"),
        record.text("spanId", "") or _printed_id(record, "span_id"),
        start=start,
        events=[(name, {"body": record.data.get("body"), **attributes})],
        is_record=True,
    )


def _nanoseconds(span: JsonObject, name: str) -> float:
    return int(span.get(name, "nanoseconds since the epoch", _is_count, "0")) / 10**9


def _is_count(value: object) -> bool:
    if isinstance(value, str):
        return value.isdecimal() and len(value) < 21
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64


def _attributes(span: JsonObject) -> Attributes:
    return {pair.text("key"): _value(pair, "value", pair.data.get("value")) for pair in span.objects("attributes")}


def _value(at: JsonObject, name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        at.fault(name, f"expected a value object; got {show_found(value)}")
        return None
    kind, inner = next(iter(value.items()), ("", None))
    place = f"{name}.{kind}"
    if kind in ("stringValue", "boolValue", "bytesValue", "doubleValue", ""):
        return inner
    if kind == "intValue":
        if isinstance(inner, int) and not isinstance(inner, bool):
            return inner
        if isinstance(inner, str) and whole_number(inner.removeprefix("-")) is not None:
            return int(inner)
        at.fault(place, f"expected a whole number; got {show_found(inner)}")
        return None
    values = object_or_empty(inner).get("values")
    values = values if isinstance(values, list) else []
    if kind == "arrayValue":
        return [_value(at, place, one) for one in values]
    if kind == "kvlistValue":
        pairs = [one for one in values if isinstance(one, Mapping)]
        return {str(one.get("key")): _value(at, place, one.get("value", {})) for one in pairs}
    at.fault(name, f"expected a value type; got {show_found(kind)}")
    return None


def model_calls(found: Iterable[OtelSpan], notes: ReaderNotes) -> Iterator[OtelSpan]:
    """The spans that are model calls, each once, however many tracers wrote it down. Their log records and events are
    merged into their attributes; a record of a whole call stands for a span that is not there."""
    found = list(found)
    spans = [span for span in found if not span.is_record]
    known = {(span.trace, span.id): span for span in spans if span.id}
    for record in (one for one in found if one.is_record):
        owner = known.get((record.trace, record.id))
        if owner is not None and record.name in (DETAILS, CHOICE, *EVENT_ROLES):
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
        self._text = text
        self._at = 0

    def value(self, depth: int = 0) -> Any:
        kind, token = self._next()
        if kind == "mark" and token in "{[":
            if depth >= DEEPEST:
                raise Damaged(f"objects more than {DEEPEST} levels deep")
            return self._fields(depth + 1) if token == "{" else self._items(depth + 1)
        if kind == "text":
            pieces = [_unescape(token)]
            while self._skips("+"):
                kind, token = self._next()
                if kind != "text":
                    raise Damaged("expected a text after +")
                pieces.append(_unescape(token))
            return "".join(pieces)
        if kind == "number" and len(token) <= 30:
            return float(token) if re.search(r"[.e]", token) else int(token.rstrip("n"))
        if kind == "left_out":
            return None
        if kind == "word" and token in WORDS:
            return WORDS[token]
        raise Damaged(f"expected a value; got {token[:20]!r}")

    def _fields(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._skips("}"):
            kind, name = self._next()
            if kind not in ("text", "word", "number") or not self._skips(":"):
                raise Damaged(f"expected a name and a colon; got {name[:20]!r}")
            found[_unescape(name) if kind == "text" else name] = self.value(depth)
            self._skips(",")
        return found

    def _items(self, depth: int) -> list[Any]:
        found = []
        while not self._skips("]"):
            found.append(self.value(depth))
            self._skips(",")
        return found

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
