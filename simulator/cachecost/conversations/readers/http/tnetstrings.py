"""Typed netstrings as mitmproxy writes them: LENGTH:DATA and a byte for the type, one value after another.

Read in November 2026: mitmproxy 12.3, `mitmproxy.io.tnetstring` (a netstring's strings are bytes, `;` adds texts).
Nothing in a file is trusted: no length beyond what is there, no depth beyond `DEEPEST`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from cachecost.base.limits import LINE

MOST_DIGITS = 12
DEEPEST = 40
PIECE = 1 << 20


class DamagedNetstring(ValueError):
    """Bytes that are not a typed netstring, and their position."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(f"{what} at byte {at}")


class TruncatedNetstring(DamagedNetstring):
    """A value whose end is missing."""


def values(stream: BinaryIO) -> Iterator[Any]:
    """The values of a file. Raises DamagedNetstring, or TruncatedNetstring if the file ends within a value."""
    at = 0
    while head := stream.read(1):
        length, digits = _length(stream, head, at)
        most = LINE.value()
        data = _data(stream, min(length, most) + 1)
        if length > most and len(data) > most:
            raise DamagedNetstring(at, str(LINE.error()))
        if len(data) < length + 1:
            raise TruncatedNetstring(at, "an incomplete value")
        start = at + digits + 1
        yield _Parser(data, start).value(0, length, data[length], 0)
        at = start + length + 1


def _length(stream: BinaryIO, head: bytes, at: int) -> tuple[int, int]:
    """(the length before the colon, how many digits it has)."""
    digits = head
    while len(digits) <= MOST_DIGITS and digits.isdigit():
        byte = stream.read(1)
        if byte == b":":
            return int(digits), len(digits)
        if not byte:
            raise TruncatedNetstring(at, "an incomplete length")
        digits += byte
    raise DamagedNetstring(at, "expected a length")


def _data(stream: BinaryIO, length: int) -> bytes:
    """Up to `length` bytes; memory is only taken for bytes that exist."""
    pieces = []
    while length > 0 and (piece := stream.read(min(PIECE, length))):
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


class _Parser:
    """One value that is whole in memory; `offset` is where its data begin in the file."""

    def __init__(self, data: bytes, offset: int) -> None:
        self._data = data
        self._offset = offset

    def value(self, start: int, end: int, kind: int, depth: int) -> Any:
        if depth > DEEPEST:
            raise self._error(start, "nested too deeply")
        if kind in b"]}":
            items = list(self._items(start, end, depth + 1))
            return items if kind == ord("]") else self._mapping(items, start)
        return self._scalar(self._data[start:end], kind, start)

    def _scalar(self, data: bytes, kind: int, start: int) -> Any:
        if kind == ord(","):
            return data
        try:
            if kind == ord(";"):
                return data.decode()
            if kind in b"#^":
                return int(data) if kind == ord("#") else float(data)
            return {b"true!": True, b"false!": False, b"~": None}[data + bytes([kind])]
        except (ValueError, KeyError):
            raise self._error(start, "a value that does not match its type") from None

    def _items(self, start: int, end: int, depth: int) -> Iterator[Any]:
        while start < end:
            colon = self._data.find(b":", start, min(end, start + MOST_DIGITS + 1))
            digits = self._data[start:colon] if colon > start else b""
            if not digits.isdigit():
                raise self._error(start, "expected a length")
            first, last = colon + 1, colon + 1 + int(digits)
            if last >= end:
                raise self._error(start, "a length beyond the end of its value")
            yield self.value(first, last, self._data[last], depth)
            start = last + 1

    def _mapping(self, items: list[Any], start: int) -> dict[str, Any]:
        """Keys are texts; old files have bytes."""
        keys = [key.decode("latin-1") if isinstance(key, bytes) else key for key in items[::2]]
        if len(items) % 2 or not all(isinstance(key, str) for key in keys):
            raise self._error(start, "expected pairs of keys and values")
        return dict(zip(keys, items[1::2], strict=True))

    def _error(self, start: int, what: str) -> DamagedNetstring:
        return DamagedNetstring(self._offset + start, what)
