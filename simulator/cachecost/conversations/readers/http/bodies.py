"""Decodes recorded HTTP bodies to JSON (one value, or the events of a stream), and finds the API, the host and the
model of a request: the API from its path, the host from its machine.

Read in November 2026: RFC 9110 (content codings), WHATWG HTML (server-sent events), Amazon's pages on event stream
encoding. Recorders disagree whether they keep a body as it came or unpacked, and leave the header as it was: bytes
that are plainly text are taken as unpacked.
"""

from __future__ import annotations

import re
import zlib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from cachecost.base.limits import LINE, OutOfLimits, json_value
from cachecost.conversations.input_files import GZIP
from cachecost.conversations.json_object import JsonObject
from cachecost.prompts.exact_json import out_of_limits
from cachecost.prompts.request import BareWord, NotAMessage, show_found
from cachecost.providers.hosts import host_at, host_names, serving_host

if TYPE_CHECKING:
    from cachecost.conversations.readers.apis.formats import Api
    from cachecost.conversations.readers.apis.streams import Events

DECODERS: Mapping[str, tuple[str, ...]] = {
    "br": ("brotli", "brotlicffi"),
    "zstd": ("compression.zstd", "backports.zstd", "pyzstd"),
}
"""Optional modules with a `decompress` function."""
SENT = (b"event:", b"data:", b"id:", b"retry:", b":")
"""How server-sent events begin."""


class Misplaced(NotAMessage):
    """An error inside a body, with the place of the body."""

    def __init__(self, place: str, error: NotAMessage) -> None:
        Exception.__init__(self, f"{place}.{str(error).removeprefix('response.')}")
        self.path = f"{place}.{error.path.removeprefix('response.')}"


def decode_content(data: bytes, encoding: str, at: str) -> bytes:
    """`data` without its content coding. Raises NotAMessage where it is damaged or cannot be decoded here."""
    if data.lstrip().startswith((b"{", b"[", *SENT)):
        try:
            data.decode()
            return data
        except UnicodeDecodeError:
            pass
    codings = [one.strip().lower() for one in encoding.split(",")]
    if data.startswith(GZIP) and not {"gzip", "x-gzip"} & set(codings):
        codings.append("gzip")
    for coding in reversed(codings):
        if coding in ("gzip", "x-gzip", "deflate"):
            data = _inflate(data, coding, at)
        elif coding in DECODERS:
            data = _decompress(data, coding, at)
    return data


def decode_base64(half: JsonObject, name: str, value: object) -> bytes:
    """The bytes of a base64 text, in which spaces and line breaks are allowed; damage is an error at field `name`."""
    try:
        return b64decode("".join(str(value).split()), validate=True)
    except ValueError:
        half.fault(name, f"expected base64; got {show_found(value)}")
        return b""


def _inflate(data: bytes, coding: str, at: str) -> bytes:
    """A truncated stream is decompressed as far as it goes. Some servers call raw deflate "deflate"."""
    most = LINE.value()
    for window in (47, -15):
        try:
            found = zlib.decompressobj(window).decompress(data, most + 1)
        except zlib.error:
            continue
        if len(found) > most:
            raise out_of_limits(at, LINE.error())
        return found
    raise NotAMessage(at, f"a body in {coding}", BareWord("damaged bytes"))


def _decompress(data: bytes, coding: str, at: str) -> bytes:
    for name in DECODERS[coding]:
        try:
            decompress = import_module(name).decompress
        except ImportError:
            continue
        try:
            return bytes(decompress(data))
        except Exception:
            raise NotAMessage(at, f"a body in {coding}", BareWord("damaged bytes")) from None
    expected = f"a body that can be decompressed ({coding} requires {DECODERS[coding][0]})"
    raise NotAMessage(at, expected, BareWord("bytes"))


def json_object(data: bytes, at: str) -> dict[str, Any]:
    """The object in a body. Raises NotAMessage."""
    value = _value(data, at)
    if not isinstance(value, dict):
        raise NotAMessage(at, "a JSON object", value)
    return value


def _value(data: bytes, at: str) -> Any:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotAMessage(at, "JSON", BareWord("bytes that are not UTF-8")) from None
    try:
        return json_value(text)
    except OutOfLimits as error:
        raise out_of_limits(at, error) from None
    except ValueError:
        raise NotAMessage(at, "JSON", text.strip() or BareWord("nothing")) from None


def answer(data: bytes, content_type: str, at: str) -> dict[str, Any] | Events:
    """What an answer is: an object, or the events of a stream. Raises NotAMessage."""
    if "vnd.amazon.eventstream" in content_type or (len(data) >= 16 and _has_frame_at(data, 0)):
        return list(_frame_events(data, at))
    return list(_sent_events(data, at)) if data.lstrip().startswith(SENT) else json_object(data, at)


def parse_array(data: bytes, at: str) -> Events:
    """The objects of an array: how Gemini streams without server-sent events. Raises NotAMessage."""
    value = _value(data, at)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise NotAMessage(at, "an array of JSON objects", value)
    return value


def _sent_events(data: bytes, at: str) -> Iterator[dict[str, Any]]:
    """Server-sent events that are JSON objects, each up to an empty line. An incomplete last one is dropped."""
    sent: list[bytes] = []
    lines: list[bytes] = []
    for line in [*data.splitlines(), b""]:
        if line.startswith(b"data:"):
            lines.append(line[5:])
        elif not line and lines:
            sent.append(b"\n".join(lines))
            lines = []
    is_whole = data.endswith((b"\n\n", b"\r\n\r\n"))
    for number, one in enumerate(sent, 1):
        if not one.strip().startswith(b"{"):
            continue
        try:
            yield json_object(one, at)
        except NotAMessage:
            if is_whole or number < len(sent):
                raise


def _has_frame_at(data: bytes, start: int) -> bool:
    """Whether a frame of one of Amazon's event streams begins here, by the checksum of its lengths."""
    return zlib.crc32(data[start : start + 8]) == int.from_bytes(data[start + 8 : start + 12], "big")


def _frame_events(data: bytes, at: str) -> Iterator[dict[str, Any]]:
    """The payloads of the frames; InvokeModel packs the model's own event into each. The last may be cut off."""
    start = 0
    while start + 16 <= len(data):
        whole, headers = (int.from_bytes(data[place : place + 4], "big") for place in (start, start + 4))
        frame, is_known = data[start : start + whole], _has_frame_at(data, start)
        if is_known and start + whole > len(data):
            return
        if not is_known or whole < headers + 16 or zlib.crc32(frame[:-4]) != int.from_bytes(frame[-4:], "big"):
            raise NotAMessage(at, "an event stream", BareWord(f"a damaged frame at byte {start}"))
        payload = json_object(frame[12 + headers : -4], at) if whole > headers + 16 else {}
        packed = payload.get("bytes")
        if isinstance(packed, str):
            try:
                payload = json_object(b64decode(packed, validate=True), at)
            except ValueError:
                raise NotAMessage(at, "base64 in a frame", packed) from None
        yield payload
        start += whole


NO_CALL = "not a model call"
UNREAD = "unsupported model API"

URL = re.compile(r"(?:[a-z][a-z0-9+.-]*://(?P<name>[^/?#]*))?(?P<path>[^?#]*)", re.IGNORECASE)
"""A scrubbed address is not a valid URL (`https://[KEY]/…`), so this is not stricter."""
LEFT_OUT = {
    "token counting": re.compile(r".*/(count[_-]tokens|input_tokens)|.*/count-tokens(@\w+)?:rawPredict|.*:countTokens"),
    "batch API": re.compile(r".*/(messages/batches|v1/batches|model-invocation-job)(/.*)?|.*:batchGenerateContent"),
    UNREAD: re.compile(
        r".*/publishers/(?!anthropic/).*:(rawPredict|streamRawPredict)"
        r"|.*/v1/(complete|completions|interactions)|.*/api/(chat|generate)|.*/v2/chat|.*/responses/compact"
    ),
}
CLOUD = r"(?P<model>(?:locations/[^/]+/)?publishers/anthropic/models/[^/:]+):(?:rawPredict|streamRawPredict)"
CALLS: tuple[tuple[Api, str | None, re.Pattern[str]], ...] = (
    ("messages", None, re.compile(r".*/v1/messages")),
    ("messages", "bedrock", re.compile(r".*/model/(?P<model>.+)/invoke(?:-with-response-stream)?")),
    ("messages", "google-cloud", re.compile(rf".*?{CLOUD}")),
    ("converse", "bedrock", re.compile(r".*/model/(?P<model>.+)/converse(?:-stream)?")),
    ("chat", None, re.compile(r"(?:.*/deployments/(?P<model>[^/]+)|.*)/chat/completions")),
    ("responses", None, re.compile(r".*/responses")),
    ("gemini", None, re.compile(r".*/(?P<model>[^/:]+):(?:generateContent|streamGenerateContent)")),
)
"""(API, host if the path shows it, path) of model calls."""


ANSWERS: tuple[tuple[Api, re.Pattern[bytes]], ...] = (
    ("messages", re.compile(rb'event: message_start|"type": ?"message"')),
    ("chat", re.compile(rb'"object": ?"chat\.completion')),
    ("responses", re.compile(rb'"object": ?"response"')),
)
"""(API, what the beginning of its answers has)."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a model call went. `model` is "" if it is not in the URL.

    `host` is the one that the path or a known machine shows, None where neither does; `machine` is the name in the URL.
    """

    api: Api
    host: str | None
    model: str = ""
    machine: str = ""

    def host_for(self, model: str, prefix: str | None = None) -> str | None:
        """The host of a call of `model`, whose name may have a host's `prefix`; an unknown machine has its own name."""
        if self.host is not None:
            return serving_host(self.host, model) or self.machine
        return prefix or host_at(self.machine, model)


def route_of(method: str, url: str) -> Route | str:
    """The route of a model call; for any other request, why it is skipped."""
    found = URL.match(url)
    path = found["path"].rstrip("/") if found else ""
    if found is None or method.upper() != "POST":
        return NO_CALL
    for kind, pattern in LEFT_OUT.items():
        if pattern.fullmatch(path):
            return kind
    for api, host, pattern in CALLS:
        if match := pattern.fullmatch(path):
            machine = found["name"] or ""
            at = host_at(machine)
            return Route(
                api, at if at in host_names() else host, unquote(match.groupdict().get("model") or ""), machine
            )
    return NO_CALL


def route_of_answer(url: str, answer: bytes) -> Route | None:
    """The route of a model call whose address a recorder has removed, by the answer. Its host is unknown."""
    if "/" in url:
        return None
    return next((Route(api, None) for api, pattern in ANSWERS if pattern.search(answer, 0, 4096)), None)
