"""Files of HTTP recorders: a `RecorderForm` each. Those in JSON without a reader of their own are in `FORMS`.

HAR 1.2 (the specification by Odvarko; the copy at ahmadnassri/har-spec, 2026-11): `log.entries`, each with
`startedDateTime`, `request` (`postData.text`), `response` (`content.text`, base64 where `content.encoding` says so) and
`timings` in milliseconds, -1 where one does not apply; `ssl` is within `connect`.

Read in November 2026 (source or documentation): nock 14's recorder, WireMock 3, MockServer 5, Hoverfly's simulations
(schema 5), httpreplay of google-cloud-go (log version 0.2), req_llm's fixtures, llama-stack's recordings. MSW and
aimock keep no requests.

    nock        [{scope, method, path, body, status, response, rawHeaders}]; bytes are hex, in an array of pieces
    wiremock    {request: {method, url, bodyPatterns: [{equalToJson}]}, response: {status, jsonBody …}}, or `mappings`
    mockserver  [{httpRequest: {method, path, headers, body}, httpResponse: {statusCode, body}}]
    hoverfly    {data: {pairs: [{request: {method: [{matcher, value}], …}, response: {status, body, encodedBody}}]}}
    httpreplay  {Version, Entries: [{Request: {Method, URL, BodyParts}, Response: {StatusCode, Body}}]}, base64
    exchange    {request: {method, url, body …}, response: {status, body …}}, one a file or one a line; bodies are JSON,
                text, {b64}, or `__data__` of an SDK's object; req_llm has the pieces of a stream as `chunks`

What these files have as a pattern to match (WireMock, Hoverfly, MockServer) is taken for the request, as their
recorders write it so; a pattern that is not the whole body has no model call.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from binascii import unhexlify
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.structs import replace
from cachecost.base.times import iso, seconds
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet, read_input
from cachecost.conversations.json_object import JsonObject, are_texts, parse_json, reason
from cachecost.conversations.readers.call_builder import CallBuilder, objects, parse_document
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.http.exchange import HttpExchange, headers_of, read
from cachecost.prompts.request import NotAMessage, show_found


def entries_of(
    items: Any, place: str, faults: list[Fault], file: str, what: str = "entries", lines: dict[int, int] | None = None
) -> Iterator[JsonObject]:
    """The entries of an array at `place`, with their lines by `id()`; what is no array, and an entry that is no object,
    becomes an error."""
    if not isinstance(items, list):
        at = f"{place}: " if place else ""
        faults.append(Fault(file, f"{at}expected an array of {what}; got {show_found(items)}"))
        return
    for number, item in enumerate(items):
        if isinstance(item, dict):
            yield JsonObject(item, faults, file, lines.get(id(item)) if lines else None, f"{place}[{number}].")
        else:
            faults.append(Fault(file, f"{place}[{number}]: expected an object; got {show_found(item)}"))


def parse_moment(text: str) -> str | None:
    """ISO 8601 of a time in RFC 2822 or ISO 8601; None for anything else (headers may be scrubbed)."""
    for parse in (seconds, lambda text: seconds(parsedate_to_datetime(text).isoformat())):
        try:
            return iso(parse(text))
        except (ValueError, TypeError, OverflowError):
            pass
    return None


def decode_base64(half: JsonObject, name: str, value: object) -> bytes:
    """The bytes of a base64 text, in which spaces and line breaks are allowed; damage is an error at field `name`."""
    try:
        return b64decode("".join(str(value).split()), validate=True)
    except ValueError:
        half.fault(name, f"expected base64; got {show_found(value)}")
        return b""


def encode_body(half: JsonObject, name: str, value: Any, is_json: bool = False) -> bytes:
    """The bytes of a body: a text or bytes as they are, anything else, and all with `is_json`, as JSON. Bytes within
    become an error."""
    if not is_json and (value is None or isinstance(value, bytes)):
        return value or b""
    if not is_json and isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return json.dumps(value).encode()
    except TypeError:
        half.fault(name, "expected values of JSON; got bytes")
        return b""


def is_status(value: Any, *others: int) -> bool:
    """Whether it is an HTTP status, or one of `others`, which stand for none."""
    return isinstance(value, int) and not isinstance(value, bool) and (100 <= value <= 599 or value in others)


ReadBody = Callable[[JsonObject, JsonObject], tuple[bytes, str]]
"""Of an entry and one of its halves: (the bytes of the body, the field that has it)."""


def _body(entry: JsonObject, half: JsonObject) -> tuple[bytes, str]:
    """{b64}, MockServer's {type, json | string | base64Bytes}, an SDK's object, events of a stream, JSON or a text."""
    body = half.data.get("body")
    if isinstance(body, list) and body and all(isinstance(one, Mapping) and "__data__" in one for one in body):
        return b"".join(b"data: " + encode_body(half, "body", one["__data__"]) + b"\n\n" for one in body), "body"
    if isinstance(body, Mapping) and ("type" in body or set(body) == {"b64"}):
        coded = next((key for key in ("b64", "base64Bytes") if key in body), None)
        if coded is not None:
            return decode_base64(half, f"body.{coded}", body[coded]), "body"
        if not {"json", "string"}.isdisjoint(body):
            body = body.get("json", body.get("string"))
    if isinstance(body, Mapping) and "__data__" in body:
        body = body["__data__"]
    return encode_body(half, "body", body), "body"


def _chunks_or_body(entry: JsonObject, half: JsonObject) -> tuple[bytes, str]:
    chunks = entry.objects("chunks")
    pieces = b"".join(decode_base64(one, "b64", one.text("b64", "")) for one in chunks)
    return (pieces, "body") if chunks else _body(entry, half)


def _hex_pieces(entry: JsonObject, half: JsonObject) -> tuple[bytes, str]:
    """nock's answer; bytes are hex, in an array of pieces."""
    answer = half.data.get("response")
    if not (isinstance(answer, list) and answer and all(isinstance(one, str) for one in answer)):
        return encode_body(half, "response", answer), "response"
    try:
        return unhexlify("".join(answer)), "response"
    except ValueError:
        half.fault("response", "expected pieces of bytes in hex; got another text")
        return b"", "response"


def _body_pattern(entry: JsonObject, half: JsonObject) -> tuple[bytes, str]:
    patterns = half.objects("bodyPatterns")
    equal = [one.data[name] for one in patterns for name in ("equalToJson", "equalTo") if name in one.data]
    return encode_body(half, "bodyPatterns", equal[0] if equal else None), "bodyPatterns"


def _json_body(entry: JsonObject, half: JsonObject) -> tuple[bytes, str]:
    name = "jsonBody" if "jsonBody" in half.data else "body"
    coded = half.data.get("base64Body")
    if coded is not None:
        return decode_base64(half, "base64Body", coded), name
    return encode_body(half, name, half.data.get(name)), name


def _first(*names: str) -> Callable[[JsonObject], str]:
    return lambda half: next((str(half.data[name]) for name in names if half.data.get(name)), "")


def _text(name: str) -> Callable[[JsonObject], str]:
    return lambda half: half.text(name)


def _status(name: str, missing: int | None = None) -> Callable[[JsonObject], int]:
    """The status; `missing` where there is no such field."""
    return lambda half: (
        missing if missing and name not in half.data else int(half.get(name, "an HTTP status", is_status, 0))
    )


def headers_in(*names: str) -> Callable[[JsonObject], dict[str, str]]:
    """The headers: by name, or as [name, value, name, value …]. A value may be a list."""

    def headers(half: JsonObject) -> dict[str, str]:
        value = next((half.data[name] for name in names if name in half.data), None)
        if isinstance(value, list):
            value = {str(name): one for name, one in zip(value[::2], value[1::2], strict=False)}
        return headers_of(value if isinstance(value, Mapping) else {})

    return headers


def _exchange(form: RecorderForm, entry: JsonObject, request: JsonObject, response: JsonObject) -> HttpExchange:
    request = form.view(request)
    headers, url, method = (form.answer_headers or form.headers)(response), form.url(request), form.method(request)
    (sent, sent_at), status = form.sent(entry, request), form.status(response)
    answered, answered_at = form.answered(entry, response)
    return HttpExchange(
        url=url,
        method=method,
        request_headers=form.headers(request),
        request=sent,
        status=status,
        response_headers=headers,
        response=answered,
        started=form.started(entry, headers),
        first_token_s=form.first_token_s(entry, response),
        line=request.line or 0,
        request_at=f"{request.place}{sent_at}",
        response_at=f"{response.place}{answered_at}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderForm:
    """How a recorder's files begin, where their entries are, and where an entry has what.

    `entries` is the path to the array of entries; empty: the value itself, and the only entry where it is an object.
    `halves` are the fields of request and response, "" the entry itself; `view` is the request under plain names.
    `started` takes the entry and the headers of its answer, `first_token_s` the entry and its response. Where that is
    not enough, `read` yields the entries of a file and adds its errors, `exchange` makes one of entry and halves.
    """

    name: str
    begins: str = ""
    reason: str = ""
    entries: tuple[str, ...] = ()
    halves: tuple[str, str] = ("request", "response")
    view: Callable[[JsonObject], JsonObject] = lambda request: request
    url: Callable[[JsonObject], str] = _first("url")
    method: Callable[[JsonObject], str] = lambda request: request.text("method", "POST")
    headers: Callable[[JsonObject], dict[str, str]] = headers_in("headers")
    answer_headers: Callable[[JsonObject], dict[str, str]] | None = None
    sent: ReadBody = _body
    answered: ReadBody = _body
    status: Callable[[JsonObject], int | None] = _status("status")
    started: Callable[[JsonObject, Mapping[str, str]], str | None] = lambda _, headers: parse_moment(
        headers.get("date", "")
    )
    first_token_s: Callable[[JsonObject, JsonObject], float] = lambda entry, response: 0.0
    may_be_lines: bool = False
    by_time: bool = False
    needs_answer: bool = True
    read: Callable[[Path, list[Fault], Warn, ReaderNotes], Iterable[JsonObject]] = lambda *_: []
    exchange: Callable[[RecorderForm, JsonObject, JsonObject, JsonObject], HttpExchange] = _exchange

    def calls(self, path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
        faults, notes, builder, calls = list[Fault](), ReaderNotes(), CallBuilder(keep_content), list[Call]()
        for entry in self.read(path, faults, warn, notes):
            before = len(faults)
            request, response = (
                entry.within(entry.mapping(name, required), name) if name else entry
                for name, required in zip(self.halves, (True, self.needs_answer), strict=True)
            )
            one = self.exchange(self, entry, request, response) if len(faults) == before else None
            if one is None or len(faults) > before:
                continue
            try:
                found = read(one, builder.build)
            except NotAMessage as error:
                if (one.status or 0) < 400:
                    faults.append(Fault(str(path), str(error), one.line or None))
                    continue
                found = "refused by the API, and not a valid request"
            if isinstance(found, str):
                notes.skip("entry", found)
            else:
                calls.append(found)
        if faults:
            raise InputError(faults)
        unbilled = sum(call.billed is None and not call.has_failed for call in calls)
        notes.add("call", "whose answer has no usage", unbilled)
        notes.report(path, warn)
        yield from sorted(calls, key=attrgetter("start")) if self.by_time else calls

    def sniff(self, head: bytes) -> str | None:
        """Why the first bytes of a file look like such a recording; None if they do not."""
        is_one = re.match(self.begins.encode(), head.removeprefix(b"\xef\xbb\xbf"), re.DOTALL)
        return self.reason or f"it begins like a recording of {self.name}" if is_one else None


def _first_matchers(request: JsonObject) -> JsonObject:
    """Hoverfly's request: the value of the first matcher of each field; "" where there is none."""
    found = {name: request.objects(name)[:1] for name in ("method", "scheme", "destination", "path", "body")}
    plain: dict[str, Any] = {name: one[0].text("value", "") if one else "" for name, one in found.items()}
    plain["url"] = f"{plain['scheme'] or 'https'}://{plain['destination']}{plain['path']}"
    plain["headers"] = request.data.get("headers")
    return JsonObject(plain, request.faults, request.file, None, request.place)


SCALAR = r'"(?:[^"\\]|\\.)*"|-?[\d.]+|true|false|null'
FIELDS = rf'(?:"\w+"\s*:\s*(?:{SCALAR})\s*,\s*)*'
"""Fields with plain values, which may come before the one that shows the form."""
PLACE = r'"(?:method|url|uri|urlPath|headers|body)"\s*:'
CHUNKS = r'(?:"chunks"\s*:\s*\[[^\[\]]*\]\s*,\s*)?'
"""The pieces of a stream, which sorted keys put before the request."""

FORMS = (
    RecorderForm(
        name="nock",
        begins=rf'\s*\[\s*\{{\s*{FIELDS}"(?:scope|rawHeaders|reqheaders)"\s*:',
        halves=("", ""),
        view=lambda entry: JsonObject(  # the URL is in two parts
            {**entry.data, "url": entry.text("scope") + entry.text("path")},
            *(entry.faults, entry.file, entry.line, entry.place),
        ),
        headers=headers_in("reqheaders"),
        answer_headers=headers_in("rawHeaders", "headers"),
        answered=_hex_pieces,
    ),
    RecorderForm(
        name="MockServer",
        begins=rf'\s*\[\s*\{{\s*{FIELDS}"(?:httpRequest|httpResponse)"\s*:',
        halves=("httpRequest", "httpResponse"),
        url=_text("path"),
        status=_status("statusCode"),
    ),
    *(
        RecorderForm(
            name="WireMock",
            begins=begins,
            entries=entries,
            url=_first("url", "urlPath"),
            sent=_body_pattern,
            answered=_json_body,
        )
        for begins, entries in (
            (r'\s*\{\s*"mappings"\s*:\s*\[', ("mappings",)),
            (rf'\s*\{{\s*{FIELDS}"request"\s*:\s*\{{(?:(?!"response"\s*:).)*?"bodyPatterns"\s*:', ()),
        )
    ),
    RecorderForm(
        name="Hoverfly",
        begins=r'\s*\{\s*"data"\s*:\s*\{\s*"pairs"\s*:\s*\[',
        entries=("data", "pairs"),
        view=_first_matchers,
        answered=lambda _, half: (
            (decode_base64 if half.flag("encodedBody") else encode_body)(half, "body", half.text("body", "")),
            "body",
        ),
    ),
    RecorderForm(
        name="httpreplay",
        begins=rf'\s*\{{\s*{FIELDS}"(?:Converter|Entries)"\s*:',
        entries=("Entries",),
        halves=("Request", "Response"),
        url=_text("URL"),
        method=lambda request: request.text("Method", "POST"),
        headers=headers_in("Header"),
        sent=lambda _, half: (
            b"".join(
                decode_base64(half, f"BodyParts[{number}]", part)
                for number, part in enumerate(half.get("BodyParts", "an array of texts", are_texts, [], required=False))
            ),
            "BodyParts",
        ),
        answered=lambda _, half: (decode_base64(half, "Body", half.text("Body", "")), "Body"),
        status=_status("StatusCode"),
    ),
    RecorderForm(
        name="one exchange",
        begins=rf'\s*\{{\s*{FIELDS}{CHUNKS}{FIELDS}"request"\s*:\s*\{{\s*{PLACE}',
        url=_first("url", "uri"),
        answered=_chunks_or_body,
        status=_status("status", missing=200),
        started=lambda entry, headers: (
            parse_moment(_first("captured_at", "recorded_at")(entry)) or parse_moment(headers.get("date", ""))
        ),
        may_be_lines=True,
    ),
)
"""In the order in which they are tried: the most specific first."""


def sniff(head: bytes) -> str | None:
    form = _form_of(head)
    return form.sniff(head) if form else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    data, file = read_input(path), str(path)
    form, value = _form_of(data), parse_json(data)
    are_lines = form is not None and form.may_be_lines and str(value).startswith("Extra data")
    if isinstance(value, ValueError) and not are_lines:
        raise InputError([Fault(file, reason(value))])
    if form is None:
        known = ", ".join(one.name for one in FORMS)
        raise InputError([Fault(file, f"expected a recording of one of {known}; got {show_found(value)}")])
    for name in () if are_lines else form.entries:
        value = value.get(name) if isinstance(value, dict) else None

    def entries(_: Path, faults: list[Fault], warn: Warn, notes: ReaderNotes) -> Iterable[JsonObject]:
        if are_lines:
            return objects(path, faults, warn)
        if not form.entries and isinstance(value, dict):
            return [JsonObject(value, faults, file)]
        place = ".".join(form.entries) or ("" if isinstance(value, list) else "the file")
        return entries_of(value, place, faults, file)

    return replace(form, read=entries).calls(path, warn, keep_content)


def _form_of(head: bytes) -> RecorderForm | None:
    return next((form for form in FORMS if form.sniff(head)), None)


def _har_entries(path: Path, faults: list[Fault], warn: Warn, notes: ReaderNotes) -> list[JsonObject]:
    value = parse_document(path, read_input(path))
    if not isinstance(value, dict):
        raise InputError([Fault(str(path), f"expected an object; got {show_found(value)}")])
    whole = JsonObject(value, faults, str(path))
    archive = whole.within(whole.mapping("log"), "log")
    archive.get("entries", "an array", lambda entries: isinstance(entries, list), [])
    return archive.objects("entries")


def _har_body(name: str) -> ReadBody:
    def read_body(entry: JsonObject, half: JsonObject) -> tuple[bytes, str]:
        body = half.within(half.mapping(name, required=False), name)
        text, is_coded = body.text("text", ""), body.text("encoding", "") == "base64"
        return (decode_base64 if is_coded else encode_body)(body, "text", text), f"{name}.text"

    return read_body


def _har_first_byte(entry: JsonObject, response: JsonObject) -> float:
    timings = entry.mapping("timings", required=False)
    spent = [timings.get(name) for name in ("blocked", "dns", "connect", "send", "wait")]
    return sum(float(one) for one in spent if isinstance(one, (int, float)) and one > 0) / 1000


HAR = RecorderForm(
    name="HAR",
    reason='it begins with the "log" of a HAR archive',
    begins=r'\s*\{\s*"log"\s*:\s*\{\s*"(version|creator|browser|pages|entries|comment|_\w+)"\s*:',
    read=_har_entries,
    url=_text("url"),
    method=_text("method"),
    headers=lambda half: headers_of(
        (str(one.data.get("name")), str(one.data.get("value"))) for one in half.objects("headers")
    ),
    sent=_har_body("postData"),
    answered=_har_body("content"),
    status=lambda half: max(0, half.get("status", "an HTTP status", lambda it: is_status(it, 0, -1), 0)) or None,
    started=lambda entry, headers: iso(entry.time("startedDateTime")),
    first_token_s=_har_first_byte,
    by_time=True,
)
