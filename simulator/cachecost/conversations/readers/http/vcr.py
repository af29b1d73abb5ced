"""VCR cassettes: HTTP exchanges that tests recorded, in YAML or JSON.

Read in November 2026 (source or documentation): vcrpy 9.4 and its older spellings, VCR for Ruby 6, go-vcr 4, php-vcr,
Betamax:

    interactions:                     # Ruby, Betamax: http_interactions; php-vcr: the list itself
    - request: {method, uri or url, headers, body: text, bytes, {string} or {base64_string}}
      response: {status: {code} or code: …, headers, body: as above, duration (go-vcr), curl_info (php-vcr)}
      recorded_at: RFC 2822 or ISO 8601   # Ruby, Betamax

ExVCR writes the list itself, with `request_body` and `status_code`; req_cassette `body_json`, google-genai's replays
`bodySegments` and `statusCode`. pydantic-ai's recorder of September 2026 has `body: {type: json or text, content}`;
opencode's http-recorder writes JSON that begins with `version` and `metadata`. langchain-tests 1.1 writes a list
`requests`, then a list `responses` of the same length. `parsed_body`, which projects write, is a body that is JSON.

YAML is loaded as YAML 1.1, which PyYAML, Psych and go-yaml write, but times stay texts, and a number without a point is
no float. `!!binary` (Psych: `!binary`) is base64; the BytesIO, iterators and tuples that vcrpy leaves in cassettes are
what they hold. Any other tag is passed over.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import DEEPEST, TOO_DEEP, OutOfLimits, whole_number, within_limits
from cachecost.base.yaml_text import compose
from cachecost.conversations.input_files import Warn, read_input
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.call_builder import parse_document
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.http import recorders
from cachecost.conversations.readers.http.exchange import headers_of
from cachecost.prompts.request import show_found

TAG = "tag:yaml.org,2002:"
HELD_IN = {f"{TAG}python/object/new:_io.BytesIO": "state", f"{TAG}python/object/apply:builtins.iter": "args"}
"""Where a body that was no plain value is kept: the first of these."""
INT = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+][0-9]+)?")
"""PyYAML writes no other numbers, and words that are others to YAML 1.2 without quotes."""
TRUE, FALSE = ("true", "yes", "on"), ("false", "no", "off")


def load_yaml(data: bytes, file: str) -> tuple[Any, dict[int, int]]:
    """(the document, the line of each object in it by its `id()`). Raises InputError."""
    from yaml import MarkedYAMLError, YAMLError

    builder = _YamlValues(file)
    try:
        text = data.decode("utf-8-sig")
        node = compose(text, (1, 1))
        return (None if node is None else builder.build(node)), builder.lines
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError([Fault(file, "damaged YAML: not UTF-8", line)]) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context).split())
        raise InputError([Fault(file, f"damaged YAML: {problem}", mark.line + 1 if mark else None)]) from None
    except YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise InputError([Fault(file, "damaged YAML: a character that is not allowed", line)]) from None
    except OutOfLimits as error:
        raise InputError([Fault(file, str(error))]) from None


class _YamlValues:
    def __init__(self, file: str) -> None:
        self.file = file
        self.lines: dict[int, int] = {}
        self._values = 0
        self._open: set[int] = set()

    def build(self, node: Any) -> Any:
        self._values += 1
        if self._values > 20_000_000 or id(node) in self._open:  # aliases can make a small file expand to a huge one
            raise self._fault(node, "recursive aliases, or too many")
        if isinstance(node.value, str):
            tag, text = str(node.tag), node.value
            if tag not in (f"{TAG}binary", "!binary"):
                return text if node.style else _plain(text, tag.removeprefix(TAG))
            try:
                return b64decode("".join(text.split()), validate=True)
            except ValueError:
                raise self._fault(node, "invalid base64") from None
        if len(self._open) >= DEEPEST:
            raise OutOfLimits(*TOO_DEEP)
        self._open.add(id(node))
        from yaml import MappingNode

        value = self._object(node) if isinstance(node, MappingNode) else [self.build(item) for item in node.value]
        self._open.discard(id(node))
        return value

    def _object(self, node: Any) -> Any:
        value = {str(self.build(key)): self.build(item) for key, item in node.value}
        if len(value) < len(node.value):
            raise self._fault(node, "duplicate key")
        name = HELD_IN.get(str(node.tag))
        held = value.get(name) if name else None
        if isinstance(held, list) and held:
            pieces = held[0]
            are_pieces = isinstance(pieces, list) and all(isinstance(one, (str, bytes)) for one in pieces)
            return b"".join(one if isinstance(one, bytes) else one.encode() for one in pieces) if are_pieces else pieces
        self.lines[id(value)] = node.start_mark.line + 1
        return value

    def _fault(self, node: Any, what: str) -> InputError:
        return InputError([Fault(self.file, f"damaged YAML: {what}", node.start_mark.line + 1)])


def _plain(text: str, tag: str) -> Any:
    if tag == "null":
        return None
    if tag == "bool" and text.lower() in TRUE + FALSE:
        return text.lower() in TRUE
    if tag == "int" and INT.fullmatch(text):
        with within_limits():
            return int(text.replace("_", ""))
    return float(text.replace("_", "")) if tag == "float" and FLOAT.fullmatch(text) else text


JSON = re.compile(
    rb'\s*(\{(?:\s*"\w+"\s*:\s*(?:"[^"]*"|\d+|\{[^{}]*\})\s*,)*\s*"(http_)?interactions"\s*:\s*)?\[\s*\{'
    rb'(?:\s*"id"\s*:\s*\d+\s*,)?\s*"(request|response|recorded_at)"\s*:'
)
LIST = re.compile(rb'\s*\[\s*\{\s*"request"\s*:\s*\{\s*"(method|url|body)"')
YAML = re.compile(rb"(?:[^\n{\[]*\n)*?(http_)?interactions:[ \t]*\r?\n[ \t]*- ")
YAML_HALVES = re.compile(rb"requests:[ \t]*\r?\n[ \t]*- (body|headers|method|uri):")
YAML_LIST = re.compile(rb"(?:---[^\n]*\n)?-[ \t]*\r?\n?[ \t]+request:[ \t]*\r?\n[ \t]+(method|url):")
HALF = re.compile(rb"^[ \t]*-?[ \t]*(request|response):[ \t]*\r?$", re.MULTILINE)
UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def sniff(head: bytes) -> str | None:
    text = head.removeprefix(b"\xef\xbb\xbf")
    if text.lstrip()[:1] in (b"{", b"["):
        found = JSON.match(text)
        return "it has interactions of requests and responses" if found and (found[1] or LIST.match(text)) else None
    if (YAML.match(text) and HALF.search(text)) or YAML_LIST.match(text) or YAML_HALVES.match(text):
        return "it has interactions of requests and responses (YAML)"
    return None


def _interactions(path: Path, faults: list[Fault], warn: Warn, notes: ReaderNotes) -> Iterator[JsonObject]:
    data, lines, file = read_input(path), dict[int, int](), str(path)
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"["):
        value = parse_document(path, data)
    else:
        value, lines = load_yaml(data, file)
    if not isinstance(value, dict) or "requests" not in value:
        names = ("interactions", "http_interactions")
        name = next((name for name in names if isinstance(value, dict) and name in value), "")
        yield from recorders.entries_of(value[name] if name else value, name, faults, file, "interactions", lines)
        return
    wrong = [name for name in ("requests", "responses") if not isinstance(value.get(name), list)]
    faults += [Fault(file, f"{name}: expected an array; got {show_found(value.get(name))}") for name in wrong]
    requests, responses = ([], []) if wrong else (value["requests"], value["responses"])
    if len(requests) != len(responses):
        words = f"expected {len(requests):,}, one for each request; got {len(responses):,}"
        faults.append(Fault(file, f"responses: {words}"))
        return
    for number, (request, response) in enumerate(zip(requests, responses, strict=True)):
        pair = {"request": request, "response": response}
        yield JsonObject(pair, faults, file, lines.get(id(request)), f"interactions[{number}].")


def _body(half: JsonObject) -> bytes:
    kept = half.data
    for name in ("parsed_body", "body_json"):  # projects with vcrpy, req_cassette
        if kept.get(name) is not None:
            return recorders.encode_body(half, name, kept[name], is_json=True)
    segments = kept.get("bodySegments", kept.get("body_segments"))
    if isinstance(segments, list) and segments:
        return recorders.encode_body(
            half, "bodySegments", segments[0] if len(segments) == 1 else segments, is_json=True
        )
    value = next((kept[name] for name in ("body", "content", "request_body") if kept.get(name) not in (None, "")), None)
    if isinstance(value, Mapping) and set(value) == {"type", "content"}:
        value = {"string": value["content"]} if value["type"] == "text" else value["content"]
    if isinstance(value, Mapping) and "base64_string" in value:
        return recorders.decode_base64(half, "body.base64_string", value["base64_string"])
    if isinstance(value, Mapping) and "string" not in value:
        return recorders.encode_body(half, "body", value)
    if isinstance(value, Mapping):
        value = value["string"]
    if value is None or isinstance(value, (str, bytes)):
        return recorders.encode_body(half, "body", value)
    half.fault("body", f"expected a text or bytes; got {show_found(value)}")
    return b""


def _status(response: JsonObject) -> int:
    """The HTTP status: `status: {code}`, or a field next to it; php-vcr and go-vcr once wrote "200 OK"."""
    status = response.data.get("status")
    code = status.get("code") if isinstance(status, Mapping) else None
    for stated in (code, *(response.data.get(name) for name in ("code", "status_code", "statusCode")), status):
        number = whole_number(str(stated).partition(" ")[0]) or 0
        if 100 <= number <= 599:
            return number
    response.fault("status", f"expected an HTTP status; got {show_found(code if code is not None else status)}")
    return 0


def _started(interaction: JsonObject, headers: Mapping[str, str]) -> str | None:
    recorded = interaction.data.get("recorded_at")
    started = recorders.parse_moment(headers.get("date", "") if recorded is None else str(recorded))
    if recorded is not None and started is None:
        interaction.fault("recorded_at", f"expected a time; got {show_found(recorded)}")
    return started


def _first_byte(interaction: JsonObject, response: JsonObject) -> float:
    """Seconds to the first byte: go-vcr's duration, or curl's time in php-vcr; 0 if unknown."""
    duration, curl = response.data.get("duration"), response.data.get("curl_info")
    if isinstance(duration, str):
        found = re.findall(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|ns)", duration)  # as Go writes it: 1m2.5s
        return sum(float(number) * UNITS[unit] for number, unit in found)
    if isinstance(duration, int) and not isinstance(duration, bool):
        return max(0, duration) * UNITS["ns"]
    spent = curl.get("starttransfer_time") if isinstance(curl, Mapping) else None
    return float(spent) if isinstance(spent, (int, float)) and spent > 0 else 0.0


VCR = recorders.RecorderForm(
    name="VCR",
    url=lambda request: request.text("uri" if "uri" in request.data else "url"),
    method=lambda request: request.text("method"),
    headers=lambda half: headers_of(half.mapping("headers", required=False)),
    sent=lambda _, half: (_body(half), "body"),
    answered=lambda _, half: (_body(half), "body"),
    status=_status,
    started=_started,
    first_token_s=_first_byte,
    read=_interactions,
)
calls = VCR.calls
