"""Flattens OpenTelemetry spans: OTLP/JSON (also a line at a time, as the file exporter writes it) and the flat form
that the console exporters of Python and JavaScript (console.py) print. Attributes become a plain
dict; reader.py interprets them.

Source: the OTLP specification's JSON mapping (1.5: names in camelCase, ids in hex, 64-bit integers as texts).

Log records as JavaScript's console exporter prints them: objects in the notation of Node's `util.inspect`.

Calls in the telemetry of Claude Code: the events `claude_code.api_request` and `claude_code.api_error`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base import limits
from cachecost.base.errors import Fault
from cachecost.base.limits import whole_number
from cachecost.base.times import LATEST, seconds
from cachecost.conversations.input_files import Warn, open_input, read_input
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.dialects import objects, status_in
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.prompts.request import show_found
from cachecost.providers.hosts import host_of_provider
from cachecost.providers.usage import Usage

MARKS = (b"\n  instrumentationScope: {", b"\n  body: 'claude_code.", b'\n  body: "claude_code.')
COLOURS = re.compile(rb"\x1b\[[0-9;]*m")
BLOCK = re.compile(r"^(?:\[\w+\] )?(?=\{$)", re.MULTILINE)
END = re.compile(r"^\}", re.MULTILINE)
TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`\\]|\\.)*`)|(?P<left_out>\[[A-Z]\w*\]|\.\.\. [^\n]*)"
    r"|(?P<number>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?n?)|(?P<word>[A-Za-z_$][\w$]*)|(?P<mark>[{}\[\]:,+]))",
    re.DOTALL,
)
WORDS = {"true": True, "false": False, "null": None, "undefined": None}
ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
DEEPEST = 16
LONGEST_NUMBER = 30
Token = tuple[str, str]


class Damaged(Exception):
    """A text that is no printed object."""


def is_printed(head: bytes) -> bool:
    """Whether the first bytes of a file hold printed log records."""
    plain = COLOURS.sub(b"", head).replace(b"\r\n", b"\n")
    return any(mark in plain for mark in MARKS)


def printed_records(path: Path, faults: list[Fault]) -> Iterator[JsonObject]:
    """The printed log records of a file, in order. A damaged one becomes a fault."""
    data = COLOURS.sub(b"", read_input(path))
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    at, line = 0, 1
    while block := BLOCK.search(text, at):
        end = END.search(text, block.end())
        line += text.count("\n", at, block.start())
        stop = end.end() if end else len(text)
        yield from _record(text[block.end() : stop], faults, path, line)
        line, at = line + text.count("\n", block.start(), stop), stop


def _record(text: str, faults: list[Fault], path: Path, line: int) -> Iterator[JsonObject]:
    if "\n  attributes: {" not in text or "\n  body: " not in text:
        return
    try:
        value = _Parser(text).value()
    except Damaged as error:
        faults.append(Fault(str(path), f"damaged log record: {error}", line))
        return
    if isinstance(value, dict):
        yield JsonObject(value, faults, str(path), line)


class _Parser:
    """Reads one value of the notation. Raises Damaged."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def value(self) -> Any:
        kind, token = self._next()
        if kind == "mark" and token in "{[":
            return self._nested(self._object if token == "{" else self._array)
        if kind == "text":
            return self._long_text(_unescape(token))
        if kind == "number" and len(token) <= LONGEST_NUMBER:
            return float(token) if re.search(r"[.e]", token) else int(token.rstrip("n"))
        if kind == "left_out":
            return None
        if kind == "word" and token in WORDS:
            return WORDS[token]
        raise Damaged(f"expected a value; got {token[:20]!r}")

    def _nested(self, read: Any) -> Any:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Damaged(f"objects more than {DEEPEST} levels deep")
        value = read()
        self._depth -= 1
        return value

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._takes("}"):
            kind, name = self._next()
            if kind not in ("text", "word", "number") or not self._takes(":"):
                raise Damaged(f"expected a name and a colon; got {name[:20]!r}")
            found[_unescape(name) if kind == "text" else name] = self.value()
            self._takes(",")
        return found

    def _array(self) -> list[Any]:
        found = []
        while not self._takes("]"):
            found.append(self.value())
            self._takes(",")
        return found

    def _long_text(self, text: str) -> str:
        pieces = [text]
        while self._takes("+"):
            kind, token = self._next()
            if kind != "text":
                raise Damaged("expected a text after +")
            pieces.append(_unescape(token))
        return "".join(pieces)

    def _next(self) -> Token:
        found = TOKEN.match(self._text, self._at)
        if found is None:
            rest = self._text[self._at :].strip()
            raise Damaged(f"got {rest[:20]!r}" if rest else "cut off")
        self._at = found.end()
        kind = str(found.lastgroup)
        return kind, found[kind]

    def _takes(self, mark: str) -> bool:
        found = TOKEN.match(self._text, self._at)
        if found is None:
            raise Damaged("cut off")
        if found["mark"] != mark:
            return False
        self._at = found.end()
        return True


def _unescape(token: str) -> str:
    return re.sub(r"\\(.)", lambda escape: ESCAPES.get(escape[1], escape[1]), token[1:-1], flags=re.DOTALL)


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
    values = (
        one.get("value")
        for one in _list(resource.data.get("resource"), "attributes")
        if isinstance(one, Mapping) and one.get("key") == VERSION
    )
    version = next((str(value.get("stringValue") or "") for value in values if isinstance(value, Mapping)), "")
    for span in spans:
        span.version = version
        yield span


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
            has_failed = name == ERROR
            at = one.at.within(one.events[0][1], "attributes")
            moment = at.moment("event.timestamp")
            end = one.start if moment is None else seconds(moment)
            _add(calls, _parse_call(one, at, (end - _number(at, "duration_ms") / 1000, end), has_failed, notes), notes)
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
