"""JSON files of other HTTP recorders: a row of `FORMS` each.

Read in November 2026 (source or documentation): nock 14's recorder, WireMock 3, MockServer 5, Hoverfly's simulations
(schema 5), httpreplay of google-cloud-go (log version 0.2), req_llm's fixtures, llama-stack's recordings. MSW and
aimock keep no requests, Polly.js keeps HAR.

    nock        [{scope, method, path, body, status, response, rawHeaders}]; bytes are hex, in an array of pieces
    wiremock    {request: {method, url, bodyPatterns: [{equalToJson}]}, response: {status, jsonBody …}}, or `mappings`
    mockserver  [{httpRequest: {method, path, headers, body}, httpResponse: {statusCode, body}}]
    hoverfly    {data: {pairs: [{request: {method: [{matcher, value}], …}, response: {status, body, encodedBody}}]}}
    httpreplay  {Version, Entries: [{Request: {Method, URL, BodyParts}, Response: {StatusCode, Body}}]}, base64
    exchange    {request: {method, url, body …}, response: {status, body …}}, one a file or one a line; bodies are JSON,
                text, {b64}, or `__data__` of an SDK's object; req_llm has the pieces of a stream as `chunks`

What these files have as a pattern to match (WireMock, Hoverfly, MockServer) is taken for the request, as their
recorders write it so; a pattern that is not the whole body has no model call. None has times but for the answer's
Date header and `captured_at`: calls stand in the order of the file.
"""

from __future__ import annotations

import re
from binascii import unhexlify
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import Warn, quiet, read_input
from cachecost.conversations.json_object import JsonObject, are_texts, parse_json, reason
from cachecost.conversations.readers.call_builder import objects
from cachecost.conversations.readers.http.exchange import (
    ExchangeLog,
    HttpExchange,
    decode_base64,
    encode_body,
    headers_of,
    is_status,
)
from cachecost.conversations.readers.http.vcr import parse_moment
from cachecost.prompts.request import show_found

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderForm:
    """How a recorder's files begin, where their entries are, and where an entry has what.

    `entries` is the path to the array of entries; empty: the value itself, and the only entry where it is an object.
    `halves` are the fields of request and response, "" the entry itself; `url` those of the URL, of which one must be
    there with `needs_url`. `view` is the request under plain names. A missing status is `no_status`; None: an error.
    """

    name: str
    begins: str
    entries: tuple[str, ...] = ()
    halves: tuple[str, str] = ("request", "response")
    view: Callable[[JsonObject], JsonObject] = lambda request: request
    url: tuple[str, ...] = ("url",)
    needs_url: bool = False
    method: str = "method"
    headers: tuple[str, ...] = ("headers",)
    answer_headers: tuple[str, ...] = ("headers",)
    sent: ReadBody = _body
    answered: ReadBody = _body
    status: str = "status"
    no_status: int | None = None
    started: tuple[str, ...] = ()
    may_be_lines: bool = False

    def exchange(self, entry: JsonObject, request: JsonObject, response: JsonObject) -> HttpExchange:
        request = self.view(request)
        (sent, sent_at), (answered, answered_at) = self.sent(entry, request), self.answered(entry, response)
        is_missing = self.no_status is not None and self.status not in response.data
        status = self.no_status if is_missing else response.get(self.status, "an HTTP status", is_status, 0)
        found = next((str(request.data[name]) for name in self.url if request.data.get(name)), "")
        url = request.text(self.url[0]) if self.needs_url else found
        request_headers, headers = _headers(request, self.headers), _headers(response, self.answer_headers)
        times = [str(entry.data[name]) for name in self.started if entry.data.get(name)]
        return HttpExchange(
            url=url,
            method=request.text(self.method, "POST"),
            request_headers=request_headers,
            request=sent,
            status=status,
            response_headers=headers,
            response=answered,
            started=parse_moment(times[0] if times else "") or parse_moment(headers.get("date", "")),
            line=request.line or 0,
            request_at=f"{request.place}{sent_at}",
            response_at=f"{response.place}{answered_at}",
        )


def _headers(half: JsonObject, names: tuple[str, ...]) -> dict[str, str]:
    """The headers: by name, or as [name, value, name, value …]. A value may be a list."""
    value = next((half.data[name] for name in names if name in half.data), None)
    if isinstance(value, list):
        value = {str(name): one for name, one in zip(value[::2], value[1::2], strict=False)}
    return headers_of(value if isinstance(value, Mapping) else {})


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
        headers=("reqheaders",),
        answer_headers=("rawHeaders", "headers"),
        answered=_hex_pieces,
    ),
    RecorderForm(
        name="MockServer",
        begins=rf'\s*\[\s*\{{\s*{FIELDS}"(?:httpRequest|httpResponse)"\s*:',
        halves=("httpRequest", "httpResponse"),
        url=("path",),
        needs_url=True,
        status="statusCode",
    ),
    *(
        RecorderForm(
            name="WireMock",
            begins=begins,
            entries=entries,
            url=("url", "urlPath"),
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
        url=("URL",),
        needs_url=True,
        method="Method",
        headers=("Header",),
        answer_headers=("Header",),
        sent=lambda _, half: (
            b"".join(
                decode_base64(half, f"BodyParts[{number}]", part)
                for number, part in enumerate(half.get("BodyParts", "an array of texts", are_texts, [], required=False))
            ),
            "BodyParts",
        ),
        answered=lambda _, half: (decode_base64(half, "Body", half.text("Body", "")), "Body"),
        status="StatusCode",
    ),
    RecorderForm(
        name="one exchange",
        begins=rf'\s*\{{\s*{FIELDS}{CHUNKS}{FIELDS}"request"\s*:\s*\{{\s*{PLACE}',
        url=("url", "uri"),
        answered=_chunks_or_body,
        no_status=200,
        started=("captured_at", "recorded_at"),
        may_be_lines=True,
    ),
)
"""In the order in which they are tried: the most specific first."""


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like one of these recordings; None if they do not."""
    form = _form_of(head)
    return f"it begins like a recording of {form.name}" if form else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in the order of the file. Raises InputError with every error, each with its entry."""
    data = read_input(path)
    form, value = _form_of(data), parse_json(data)
    log = ExchangeLog(path, keep_content)
    if form is not None and form.may_be_lines and str(value).startswith("Extra data"):
        entries = objects(path, log.faults, warn)
    elif isinstance(value, ValueError):
        raise InputError([Fault(str(path), reason(value))])
    elif form is None:
        known = ", ".join(one.name for one in FORMS)
        raise InputError([Fault(str(path), f"expected a recording of one of {known}; got {show_found(value)}")])
    else:
        for name in form.entries:
            value = value.get(name) if isinstance(value, dict) else None
        is_entry = not form.entries and isinstance(value, dict)
        place = ".".join(form.entries) or ("" if isinstance(value, list) else "the file")
        entries = iter([JsonObject(value, log.faults, str(path))]) if is_entry else log.entries(value, place)
    for entry, request, response in log.halves(entries, form.halves):
        log.add(form.exchange(entry, request, response))
    yield from log.end(warn, by_time=False)


def _form_of(head: bytes) -> RecorderForm | None:
    text = head.removeprefix(b"\xef\xbb\xbf")
    return next((form for form in FORMS if re.match(form.begins.encode(), text, re.DOTALL)), None)
