"""Flows that mitmproxy, mitmdump and mitmweb save (`-w FILE`): what any client behind the proxy sent.

Read in November 2026: the source of mitmproxy 12.3 (flow format 21) and its migrations of older flows. The fields read
have had the same names since format 4 (2018). Flows are in the order in which they ended; calls are sorted by when the
request came. A flow without an answer (the client hung up) is skipped; bodies that the proxy streamed have no usage.

A file has typed netstrings: LENGTH:DATA and a byte for the type, one value after another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from cachecost.base.errors import Fault
from cachecost.base.limits import LINE
from cachecost.base.times import iso
from cachecost.conversations.input_files import Warn, open_input
from cachecost.conversations.json_object import JsonObject, are_pairs
from cachecost.conversations.readers.common.peek import ReaderNotes
from cachecost.conversations.readers.http.exchange import NO_CALL, HttpExchange, headers_of
from cachecost.conversations.readers.http.recorders import RecorderForm
from cachecost.prompts.request import show_found

FLOW = re.compile(
    rb"\d{2,12}:(?:7:version|4:type|2:id|5:error|11:client_conn|11:server_conn|11:intercepted|9:is_replay|6:marked"
    rb"|8:metadata|7:comment|17:timestamp_created|7:request|8:response|9:websocket|6:backup|4:mode)[;,]"
)
"""The first of a flow's keys, which differs from version to version."""


def sniff(head: bytes) -> str | None:
    return "it begins with a mitmproxy flow" if FLOW.match(head) else None


def _flows(path: Path, faults: list[Fault], warn: Warn, notes: ReaderNotes) -> Iterator[JsonObject]:
    file = str(path)
    try:
        with open_input(path) as stream:
            for number, flow in enumerate(values(stream)):
                if not isinstance(flow, dict):
                    faults.append(Fault(file, f"flows[{number}]: expected an object; got {show_found(flow)}"))
                elif _text(flow.get("type", "http")) != "http":
                    notes.skip("entry", NO_CALL)
                else:
                    yield JsonObject(flow, faults, file, None, f"flows[{number}].")
    except TruncatedNetstring:
        warn(f"{file}: skipped the last flow: incomplete (still being written?)")
    except DamagedNetstring as error:
        faults.append(Fault(file, f"damaged flows: {error}; the rest of the file cannot be read"))


def _exchange(form: RecorderForm, flow: JsonObject, request: JsonObject, response: JsonObject) -> HttpExchange:
    headers = list(_pairs(request))
    start, first = request.epoch("timestamp_start"), response.epoch("timestamp_start")
    name = next((value for key, value in headers if key.lower() == "host"), "")
    name = name or _word(request, "authority", "") or _word(request, "host", "")
    return HttpExchange(
        url=f"{_word(request, 'scheme', 'https')}://{name}{_word(request, 'path', '')}",
        method=_word(request, "method"),
        request_headers=headers_of(headers),
        request=_bytes(request),
        status=response.whole("status_code", None, bool(response.data)),
        response_headers=headers_of(_pairs(response)),
        response=_bytes(response),
        started=None if start is None else iso(start),
        first_token_s=0.0 if start is None or first is None else round(max(0.0, first - start), 6),
        request_at=f"{request.place}content",
        response_at=f"{response.place}content",
    )


def _pairs(half: JsonObject) -> Iterator[tuple[str, str]]:
    for one in half.get("headers", "an array of names and values", are_pairs, [], required=False):
        yield _text(one[0]), _text(one[1])


def _word(half: JsonObject, name: str, default: str | None = None) -> str:
    return _text(
        half.get(name, "a text", lambda value: isinstance(value, (str, bytes)), default or "", default is None)
    )


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _bytes(half: JsonObject) -> bytes:
    value: bytes = half.get("content", "bytes", lambda value: isinstance(value, bytes), b"", required=False)
    return value


MOST_DIGITS = 12
SCALARS: Mapping[bytes, Callable[[bytes], Any]] = {
    b",": bytes,
    b";": bytes.decode,
    b"#": int,
    b"^": float,
    b"!": {b"true": True, b"false": False}.__getitem__,
    b"~": {b"": None}.__getitem__,
}
"""What makes a value of its bytes, by its type."""


class DamagedNetstring(ValueError):
    """Bytes that are not a typed netstring, and their position."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(f"{what} at byte {at}")


class TruncatedNetstring(DamagedNetstring):
    """A value whose end is missing."""


def values(stream: BinaryIO) -> Iterator[Any]:
    """The values of a file. Raises DamagedNetstring, or TruncatedNetstring if the file ends within a value."""
    at = 0
    while digits := stream.read(1):
        while digits.isdigit() and len(digits) <= MOST_DIGITS and (byte := stream.read(1)) != b":":
            if not byte:
                raise TruncatedNetstring(at, "an incomplete length")
            digits += byte
        if not digits.isdigit() or len(digits) > MOST_DIGITS:
            raise DamagedNetstring(at, "expected a length")
        length, most, pieces = int(digits), LINE.value(), []
        missing = min(length, most) + 1
        while missing > 0 and (piece := stream.read(min(1 << 20, missing))):  # memory only for bytes that exist
            pieces.append(piece)
            missing -= len(piece)
        data = b"".join(pieces)
        if length > most and len(data) > most:
            raise DamagedNetstring(at, str(LINE.error()))
        if len(data) < length + 1:
            raise TruncatedNetstring(at, "an incomplete value")
        start = at + len(digits) + 1
        yield _parse(data, 0, length, data[length : length + 1], start)
        at = start + length + 1


def _parse(data: bytes, start: int, end: int, kind: bytes, offset: int, depth: int = 0) -> Any:
    """The value at `start` to `end` of `data`, which are at `offset` in the file."""
    if depth > 40:
        raise DamagedNetstring(offset + start, "nested too deeply")
    if kind not in b"]}":
        try:
            return SCALARS[kind](data[start:end])
        except (ValueError, KeyError):
            raise DamagedNetstring(offset + start, "a value that does not match its type") from None
    items, at = list[Any](), start
    while at < end:
        colon = data.find(b":", at, min(end, at + MOST_DIGITS + 1))
        digits = data[at:colon] if colon > at else b""
        if not digits.isdigit():
            raise DamagedNetstring(offset + at, "expected a length")
        first, last = colon + 1, colon + 1 + int(digits)
        if last >= end:
            raise DamagedNetstring(offset + at, "a length beyond the end of its value")
        items.append(_parse(data, first, last, data[last : last + 1], offset, depth + 1))
        at = last + 1
    if kind == b"]":
        return items
    keys = [key.decode("latin-1") if isinstance(key, bytes) else key for key in items[::2]]  # old files have bytes
    if len(items) % 2 or not all(isinstance(key, str) for key in keys):
        raise DamagedNetstring(offset + start, "expected pairs of keys and values")
    return dict(zip(keys, items[1::2], strict=True))


calls = RecorderForm(name="mitmproxy", read=_flows, exchange=_exchange, needs_answer=False, by_time=True).calls
