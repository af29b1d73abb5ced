"""Flattens OpenTelemetry spans: OTLP/JSON (also a line at a time, as the file exporter writes it) and the flat form
that the console exporters of Python and JavaScript (console.py) print. Attributes become a plain
dict; reader.py interprets them.

Source: the OTLP specification's JSON mapping (1.5: names in camelCase, ids in hex, 64-bit integers as texts).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault
from cachecost.base.limits import whole_number
from cachecost.base.times import LATEST
from cachecost.conversations.input_files import Warn, open_input
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.json_documents import objects
from cachecost.conversations.readers.otel.console import is_printed, printed_records
from cachecost.prompts.wire import show_found

HEAD_BYTES = 1 << 16
NANOSECONDS = 10**9
ERRORS = (2, "STATUS_CODE_ERROR", "ERROR", "StatusCode.ERROR")
TEXTS = ("stringValue", "boolValue", "bytesValue")
VERSION = "service.version"
Attributes = dict[str, Any]


@dataclass(slots=True)
class OtelSpan:
    """One span, or the log record of one where only that was exported. Ids are hex, `start` seconds since the epoch.

    `events` are (name, attributes); `at` is the place of the span, for errors; `version` is that of the program that
    was traced ("": unknown).
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
    version: str = ""


def spans(path: Path, faults: list[Fault], warn: Warn) -> tuple[int, list[OtelSpan]]:
    """(number of values in the file, the spans and log records in them). Errors are added to `faults`."""
    values, found = 0, list[OtelSpan]()
    for value in printed_records(path, faults) if _is_console(path) else objects(path, faults, warn):
        values += 1
        found += _spans_of(value)
    return values, found


def _is_console(path: Path) -> bool:
    with open_input(path) as stream:
        return is_printed(stream.read(HEAD_BYTES))


def _spans_of(value: JsonObject) -> Iterator[OtelSpan]:
    if "attributes" in value.data and "body" in value.data:
        yield _parse_printed_record(value)
        return
    if "attributes" in value.data or "context" in value.data:
        yield _parse_printed_span(value)
        return
    known = ("resourceSpans", "resourceLogs", "resourceMetrics")
    if not any(value.has(name) for name in known):
        value.fault(known[0], "expected spans (or the attributes of a printed span); got nothing")
    for resource in value.objects("resourceSpans"):
        for scope in resource.objects("scopeSpans"):
            yield from _with_version(resource, map(_parse_otlp_span, scope.objects("spans")))
    for resource in value.objects("resourceLogs"):
        for scope in resource.objects("scopeLogs"):
            yield from _with_version(resource, map(_parse_log_record, scope.objects("logRecords")))


def _with_version(resource: JsonObject, spans: Iterable[OtelSpan]) -> Iterator[OtelSpan]:
    """The spans of a resource, with the version that it states."""
    version = _version(_list(resource.data.get("resource"), "attributes"))
    for span in spans:
        span.version = version
        yield span


def _version(pairs: list[Any]) -> str:
    values = (one.get("value") for one in pairs if isinstance(one, Mapping) and one.get("key") == VERSION)
    return next((str(value.get("stringValue") or "") for value in values if isinstance(value, Mapping)), "")


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
        _attributes(span, "attributes"),
        [(event.text("name", ""), _attributes(event, "attributes")) for event in span.objects("events")],
    )


def _parse_log_record(record: JsonObject) -> OtelSpan:
    """A log record, as a span with one event. Its name is `eventName`, before that an attribute."""
    attributes = _attributes(record, "attributes")
    name = record.text("eventName", "") or str(attributes.get("event.name") or "")
    body = _value(record, "body", record.data["body"]) if record.has("body") else None
    event = {**(body if isinstance(body, dict) else {"body": body}), **attributes}
    start = "timeUnixNano" if record.has("timeUnixNano") else "observedTimeUnixNano"
    return OtelSpan(
        record,
        name,
        record.text("traceId", ""),
        record.text("spanId", ""),
        start=_nanoseconds(record, start),
        events=[(name, event)],
        is_record=True,
    )


def _parse_printed_span(span: JsonObject) -> OtelSpan:
    """A span as a console exporter prints it: plain attributes, ISO times, ids that may begin with 0x."""
    context = span.within(span.mapping("context", required=False), "context")
    status = span.mapping("status", required=False)
    events = [(one.text("name", ""), one.mapping("attributes", required=False)) for one in span.objects("events")]
    return OtelSpan(
        span,
        span.text("name", ""),
        _hex(context.text("trace_id", "")),
        _hex(context.text("span_id", "")),
        _hex(span.text("parent_id", "")),
        span.time("start_time"),
        status.get("status_code") in ERRORS,
        str(status.get("description") or ""),
        span.mapping("attributes", required=False),
        events,
    )


def _parse_printed_record(record: JsonObject) -> OtelSpan:
    """A log record as a console exporter prints it: plain attributes; the time is in microseconds or ISO 8601."""
    attributes = record.mapping("attributes", required=False)
    name = str(attributes.get("event.name") or "")
    return OtelSpan(
        record,
        record.text("eventName", "") or record.text("event_name", "") or name,
        record.text("traceId", "") or _hex(record.text("trace_id", "")),
        record.text("spanId", "") or _hex(record.text("span_id", "")),
        start=_printed_time(record),
        events=[(name, {"body": record.data.get("body"), **attributes})],
        is_record=True,
        version=_printed_version(record.data.get("resource")),
    )


def _printed_version(resource: Any) -> str:
    attributes = resource.get("attributes") if isinstance(resource, Mapping) else None
    return str(attributes.get(VERSION) or "") if isinstance(attributes, Mapping) else ""


def _printed_time(record: JsonObject) -> float:
    if record.has("timeUnixNano"):
        return _nanoseconds(record, "timeUnixNano")
    if isinstance(record.data.get("timestamp"), str):
        return record.time("timestamp")
    return float(record.get("timestamp", "microseconds since the epoch", _are_microseconds, 0, required=False)) / 10**6


def _hex(text: str) -> str:
    return text.removeprefix("0x")


def _nanoseconds(span: JsonObject, name: str) -> float:
    """Seconds of a time in nanoseconds, a number or a text of digits."""
    value = span.get(name, "nanoseconds since the epoch", _is_count, "0")
    return int(value) / NANOSECONDS


def _is_count(value: object) -> bool:
    if isinstance(value, str):
        return value.isdecimal() and len(value) < 21
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64


def _are_microseconds(value: object) -> bool:
    return _is_count(value) and int(str(value)) < LATEST * 10**6


def _attributes(span: JsonObject, name: str) -> Attributes:
    """Key/value pairs as a dict."""
    found: Attributes = {}
    for pair in span.objects(name):
        found[pair.text("key")] = _value(pair, "value", pair.data.get("value"))
    return found


def _value(at: JsonObject, name: str, value: Any) -> Any:
    """The plain value of an AnyValue; None if it is empty."""
    if not isinstance(value, Mapping):
        at.fault(name, f"expected a value object; got {show_found(value)}")
        return None
    kind, inner = next(iter(value.items()), ("", None))
    if kind in TEXTS or not kind:
        return inner
    if kind == "intValue":
        return _integer(at, f"{name}.{kind}", inner)
    if kind == "doubleValue":
        return inner
    if kind == "arrayValue":
        return [_value(at, f"{name}.{kind}", one) for one in _list(inner, "values")]
    if kind == "kvlistValue":
        pairs = [one for one in _list(inner, "values") if isinstance(one, Mapping)]
        return {str(one.get("key")): _value(at, f"{name}.{kind}", one.get("value", {})) for one in pairs}
    at.fault(name, f"expected a value type; got {show_found(kind)}")
    return None


def _integer(at: JsonObject, name: str, value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and whole_number(value.removeprefix("-")) is not None:
        return int(value)
    at.fault(name, f"expected a whole number; got {show_found(value)}")
    return None


def _list(value: Any, name: str) -> list[Any]:
    inner = value.get(name) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, list) else []
