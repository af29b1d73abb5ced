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
                text, {b64}, or `__data__` of an SDK's object; req_llm has the pieces of a stream beside them (`chunks`)

What these files have as a pattern to match (WireMock, Hoverfly, MockServer) is taken for the request, as their
recorders write it so; a pattern that is not the whole body has no model call. None has times but for the answer's
Date header and `captured_at`: calls stand in the order of the file.
"""

from __future__ import annotations

import json
import re
from binascii import unhexlify
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import Warn, quiet, read_input
from cachecost.conversations.json_object import JsonObject, are_texts, parse_json, reason
from cachecost.conversations.readers.common.dialects import objects
from cachecost.conversations.readers.http.bodies import decode_base64
from cachecost.conversations.readers.http.exchange import ExchangeLog, HttpExchange, headers_of
from cachecost.conversations.readers.http.vcr import parse_moment
from cachecost.prompts.request import show_found


@dataclass(frozen=True, slots=True)
class RecorderForm:
    """How a recorder's files begin, where their entries are, and the exchange of an entry.

    `entries` is the path to the array of entries; empty: the value itself, and the only entry where it is an object.
    """

    name: str
    begins: re.Pattern[bytes]
    entries: tuple[str, ...]
    parse: Callable[[JsonObject], HttpExchange]


def sniff(head: bytes) -> str | None:
    """Why the first bytes of a file look like one of these recordings; None if they do not."""
    form = _form_of(head)
    return f"it begins like a recording of {form.name}" if form else None


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
    """The calls in the order of the file. Raises InputError with every error, each with its entry."""
    data = read_input(path)
    form, value = _form_of(data), parse_json(data)
    are_lines = isinstance(value, ValueError) and (
        form is not None and form.parse is _single and str(value).startswith("Extra data")
    )
    if isinstance(value, ValueError) and not are_lines:
        raise InputError([Fault(str(path), reason(value))])
    if form is None:
        known = ", ".join(one.name for one in FORMS)
        raise InputError([Fault(str(path), f"expected a recording of one of {known}; got {show_found(value)}")])
    log = ExchangeLog(path, keep_content)
    for entry in objects(path, log.faults, warn) if are_lines else _entries(form, value, path, log.faults):
        before = len(entry.faults)
        exchange = form.parse(entry)
        if len(entry.faults) == before:
            log.add(exchange)
    yield from log.end(warn, by_time=False)


def _form_of(head: bytes) -> RecorderForm | None:
    text = head.removeprefix(b"\xef\xbb\xbf")
    return next((form for form in FORMS if form.begins.match(text)), None)


def _entries(form: RecorderForm, value: Any, path: Path, faults: list[Fault]) -> Iterator[JsonObject]:
    items, place = value, ".".join(form.entries)
    for name in form.entries:
        items = items.get(name) if isinstance(items, dict) else None
    if not form.entries and isinstance(items, dict):
        yield JsonObject(items, faults, str(path))
        return
    if not isinstance(items, list):
        faults.append(Fault(str(path), f"{place or 'the file'}: expected an array of entries; got {show_found(items)}"))
        return
    for number, item in enumerate(items):
        if isinstance(item, dict):
            yield JsonObject(item, faults, str(path), None, f"{place}[{number}].")
        else:
            faults.append(Fault(str(path), f"{place}[{number}]: expected an object; got {show_found(item)}"))


# ------------------------------------------------------------------------------------------------ values


def _halves(entry: JsonObject, request: str, response: str) -> tuple[JsonObject, JsonObject]:
    return entry.within(entry.mapping(request), request), entry.within(entry.mapping(response), response)


def _status(half: JsonObject, name: str) -> int:
    found: int = half.get(name, "an HTTP status", _is_status, 0)
    return found


def _is_status(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 100 <= value <= 599


def _dump(value: Any) -> bytes:
    """A body: a text as it is, anything else as JSON; nothing where there is none."""
    if value is None:
        return b""
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else json.dumps(value).encode()


def _headers(value: Any) -> dict[str, str]:
    """The headers: by name, or as [name, value, name, value …]. A value may be a list, of which the last counts."""
    if isinstance(value, list):
        value = {str(name): told for name, told in zip(value[::2], value[1::2], strict=False)}
    pairs = value.items() if isinstance(value, Mapping) else ()
    return headers_of((str(name), str(told[-1] if isinstance(told, list) and told else told)) for name, told in pairs)


def _exchange(
    request: JsonObject, response: JsonObject, bodies: tuple[bytes, bytes], status: int, url: str, **names: str
) -> HttpExchange:
    """The exchange of two halves. `names` are the recorder's: `method`, `headers`, `answer_headers`, and where the
    bodies are (`body`, `answer`); `started` is a time."""
    name = names.get("headers", "headers")
    headers = _headers(response.data.get(names.get("answer_headers", name)))
    return HttpExchange(
        url=url,
        method=request.text(names.get("method", "method"), "POST"),
        request_headers=_headers(request.data.get(name)),
        request=bodies[0],
        status=status,
        response_headers=headers,
        response=bodies[1],
        started=parse_moment(names.get("started", "")) or parse_moment(headers.get("date", "")),
        line=request.line or 0,
        request_at=f"{request.place}{names.get('body', 'body')}",
        response_at=f"{response.place}{names.get('answer', 'body')}",
    )


# ------------------------------------------------------------------------------------------------ recorders


def _nock(entry: JsonObject) -> HttpExchange:
    answer = entry.data.get("response")
    if isinstance(answer, list) and answer and all(isinstance(one, str) for one in answer):
        try:
            raw = unhexlify("".join(answer))
        except ValueError:
            entry.fault("response", "expected pieces of bytes in hex; got another text")
            raw = b""
    else:
        raw = _dump(answer)
    url = entry.text("scope") + entry.text("path")
    bodies, status = (_dump(entry.data.get("body")), raw), _status(entry, "status")
    told = "rawHeaders" if "rawHeaders" in entry.data else "headers"
    names = {"headers": "reqheaders", "answer_headers": told, "answer": "response"}
    return _exchange(entry, entry, bodies, status, url, **names)


def _wiremock(entry: JsonObject) -> HttpExchange:
    request, response = _halves(entry, "request", "response")
    patterns = request.objects("bodyPatterns")
    told = next((one.data[name] for one in patterns for name in ("equalToJson", "equalTo") if name in one.data), None)
    coded = response.data.get("base64Body")
    if coded is not None:
        answer = decode_base64(response, "base64Body", coded)
    else:
        answer = _dump(response.data.get("jsonBody", response.data.get("body")))
    url = str(request.data.get("url") or request.data.get("urlPath") or "")
    names = {"body": "bodyPatterns", "answer": "jsonBody" if "jsonBody" in response.data else "body"}
    return _exchange(request, response, (_dump(told), answer), _status(response, "status"), url, **names)


def _mockserver(entry: JsonObject) -> HttpExchange:
    request, response = _halves(entry, "httpRequest", "httpResponse")
    bodies = _body_of_mockserver(request), _body_of_mockserver(response)
    return _exchange(request, response, bodies, _status(response, "statusCode"), request.text("path"))


def _body_of_mockserver(half: JsonObject) -> bytes:
    """A body: the value itself, or {type, json | string | base64Bytes}."""
    body = half.data.get("body")
    if not isinstance(body, Mapping) or "type" not in body or {"json", "string", "base64Bytes"}.isdisjoint(body):
        return _dump(body)
    if "base64Bytes" in body:
        return decode_base64(half, "body.base64Bytes", body["base64Bytes"])
    return _dump(body.get("json", body.get("string")))


def _hoverfly(entry: JsonObject) -> HttpExchange:
    request, response = _halves(entry, "request", "response")
    told = {name: _matched(request, name) for name in ("method", "scheme", "destination", "path", "body")}
    plain = JsonObject({**told, "headers": request.data.get("headers")}, entry.faults, entry.file, None, request.place)
    is_coded = response.flag("encodedBody")
    body = response.text("body", "")
    answer = decode_base64(response, "body", body) if is_coded else _dump(body)
    url = f"{told['scheme'] or 'https'}://{told['destination']}{told['path']}"
    return _exchange(plain, response, (_dump(told["body"]), answer), _status(response, "status"), url)


def _matched(request: JsonObject, name: str) -> str:
    """The value of the first matcher of a field; "" where there is none."""
    matchers = request.objects(name)
    return matchers[0].text("value", "") if matchers else ""


def _httpreplay(entry: JsonObject) -> HttpExchange:
    request, response = _halves(entry, "Request", "Response")
    parts = request.get("BodyParts", "an array of texts", are_texts, [], required=False)
    sent = b"".join(decode_base64(request, f"BodyParts[{n}]", one) for n, one in enumerate(parts))
    answer = decode_base64(response, "Body", response.text("Body", ""))
    names = {"headers": "Header", "method": "Method", "body": "BodyParts", "answer": "Body"}
    return _exchange(request, response, (sent, answer), _status(response, "StatusCode"), request.text("URL"), **names)


def _single(entry: JsonObject) -> HttpExchange:
    request, response = _halves(entry, "request", "response")
    chunks = entry.objects("chunks")
    if chunks:
        answer = b"".join(decode_base64(one, "b64", one.text("b64", "")) for one in chunks)
    else:
        answer = _body_of_single(response)
    status = _status(response, "status") if "status" in response.data else 200
    url = str(request.data.get("url") or request.data.get("uri") or "")
    started = str(entry.data.get("captured_at") or entry.data.get("recorded_at") or "")
    return _exchange(request, response, (_body_of_single(request), answer), status, url, started=started)


def _body_of_single(half: JsonObject) -> bytes:
    """A body: {b64}, the data of an SDK's object or of the events of a stream, JSON or a text."""
    body = half.data.get("body")
    if isinstance(body, Mapping) and set(body) == {"b64"}:
        return decode_base64(half, "body.b64", body["b64"])
    if isinstance(body, list) and body and all(isinstance(one, Mapping) and "__data__" in one for one in body):
        return b"".join(b"data: " + _dump(one["__data__"]) + b"\n\n" for one in body)
    return _dump(body["__data__"] if isinstance(body, Mapping) and "__data__" in body else body)


def _begins(text: str) -> re.Pattern[bytes]:
    return re.compile(text.encode(), re.DOTALL)


SCALAR = r'"(?:[^"\\]|\\.)*"|-?[\d.]+|true|false|null'
FIELDS = rf'(?:"\w+"\s*:\s*(?:{SCALAR})\s*,\s*)*'
"""Fields with plain values, which may come before the one that shows the form."""
PLACE = r'"(?:method|url|uri|urlPath|headers|body)"\s*:'
CHUNKS = r'(?:"chunks"\s*:\s*\[[^\[\]]*\]\s*,\s*)?'
"""The pieces of a stream, which sorted keys put before the request."""

FORMS = (
    RecorderForm("nock", _begins(rf'\s*\[\s*\{{\s*{FIELDS}"(?:scope|rawHeaders|reqheaders)"\s*:'), (), _nock),
    RecorderForm("MockServer", _begins(rf'\s*\[\s*\{{\s*{FIELDS}"(?:httpRequest|httpResponse)"\s*:'), (), _mockserver),
    RecorderForm("WireMock", _begins(r'\s*\{\s*"mappings"\s*:\s*\['), ("mappings",), _wiremock),
    RecorderForm(
        "WireMock",
        _begins(rf'\s*\{{\s*{FIELDS}"request"\s*:\s*\{{(?:(?!"response"\s*:).)*?"bodyPatterns"\s*:'),
        (),
        _wiremock,
    ),
    RecorderForm("Hoverfly", _begins(r'\s*\{\s*"data"\s*:\s*\{\s*"pairs"\s*:\s*\['), ("data", "pairs"), _hoverfly),
    RecorderForm("httpreplay", _begins(rf'\s*\{{\s*{FIELDS}"(?:Converter|Entries)"\s*:'), ("Entries",), _httpreplay),
    RecorderForm(
        "one exchange", _begins(rf'\s*\{{\s*{FIELDS}{CHUNKS}{FIELDS}"request"\s*:\s*\{{\s*{PLACE}'), (), _single
    ),
)
"""In the order in which they are tried: the most specific first."""
