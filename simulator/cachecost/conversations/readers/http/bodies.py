"""Decodes recorded HTTP bodies to JSON: one value, or the events of a stream.

Read in November 2026: RFC 9110 (content codings), WHATWG HTML (server-sent events), Amazon's pages on event stream
encoding. Recorders disagree whether they keep a body as it came or unpacked, and leave the header as it was: bytes
that are plainly text are taken as unpacked.
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from cachecost.base.limits import LINE, OutOfLimits, json_value
from cachecost.conversations.input_files import GZIP
from cachecost.conversations.json_object import JsonObject
from cachecost.prompts.exact_json import out_of_limits
from cachecost.prompts.wire import BareWord, NotAMessage, show_found

DECODERS: Mapping[str, tuple[str, ...]] = {
    "br": ("brotli", "brotlicffi"),
    "zstd": ("compression.zstd", "backports.zstd", "pyzstd"),
}
"""Optional modules with a `decompress` function."""
SENT = (b"event:", b"data:", b"id:", b"retry:", b":")
"""How server-sent events begin."""
FRAMES = "vnd.amazon.eventstream"
Events = list[dict[str, Any]]


class Misplaced(NotAMessage):
    """An error inside a body, with the place of the body."""

    def __init__(self, place: str, error: NotAMessage) -> None:
        Exception.__init__(self, f"{place}.{str(error).removeprefix('response.')}")
        self.path = f"{place}.{error.path.removeprefix('response.')}"


def decode_content(data: bytes, encoding: str, at: str) -> bytes:
    """`data` without its content coding. Raises NotAMessage where it is damaged or cannot be decoded here."""
    if _is_text(data):
        return data
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


def _is_text(data: bytes) -> bool:
    if not data.lstrip().startswith((b"{", b"[", *SENT)):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


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
    if FRAMES in content_type or _begins_with_a_frame(data):
        return list(_frame_events(data, at))
    if data.lstrip().startswith(SENT):
        return list(_sent_events(data, at))
    return json_object(data, at)


def parse_array(data: bytes, at: str) -> Events:
    """The objects of an array: how Gemini streams without server-sent events. Raises NotAMessage."""
    value = _value(data, at)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise NotAMessage(at, "an array of JSON objects", value)
    return value


def _sent_events(data: bytes, at: str) -> Iterator[dict[str, Any]]:
    """Server-sent events that are JSON objects. An incomplete last one is dropped."""
    sent = list(_sent_data(data))
    is_whole = data.endswith((b"\n\n", b"\r\n\r\n"))
    for number, one in enumerate(sent, 1):
        if not one.strip().startswith(b"{"):
            continue
        try:
            yield json_object(one, at)
        except NotAMessage:
            if is_whole or number < len(sent):
                raise


def _sent_data(data: bytes) -> Iterator[bytes]:
    """The data of each event: its lines, up to the empty line that ends it."""
    lines: list[bytes] = []
    for line in [*data.splitlines(), b""]:
        if line.startswith(b"data:"):
            lines.append(line[5:])
        elif not line and lines:
            yield b"\n".join(lines)
            lines = []


# -------------------------------------------------------------------------------------- Amazon's event streams


def _begins_with_a_frame(data: bytes) -> bool:
    return len(data) >= 16 and zlib.crc32(data[:8]) == int.from_bytes(data[8:12], "big")


def _frame_events(data: bytes, at: str) -> Iterator[dict[str, Any]]:
    """The payloads of the frames; InvokeModel packs the model's own event into each. The last may be cut off."""
    start = 0
    while start + 16 <= len(data):
        whole = int.from_bytes(data[start : start + 4], "big")
        headers = int.from_bytes(data[start + 4 : start + 8], "big")
        if zlib.crc32(data[start : start + 8]) != int.from_bytes(data[start + 8 : start + 12], "big"):
            raise NotAMessage(at, "an event stream", BareWord(f"a damaged frame at byte {start}"))
        if start + whole > len(data):
            return
        frame = data[start : start + whole]
        if whole < headers + 16 or zlib.crc32(frame[:-4]) != int.from_bytes(frame[-4:], "big"):
            raise NotAMessage(at, "an event stream", BareWord(f"a damaged frame at byte {start}"))
        yield _payload(frame[12 + headers : -4], at)
        start += whole


def _payload(data: bytes, at: str) -> dict[str, Any]:
    payload = json_object(data, at) if data else {}
    packed = payload.get("bytes")
    if not isinstance(packed, str):
        return payload
    try:
        return json_object(b64decode(packed, validate=True), at)
    except ValueError:
        raise NotAMessage(at, "base64 in a frame", packed) from None
