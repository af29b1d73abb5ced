"""What the bytes of a PDF tell where pypdf cannot read it: pages, the size of the first, characters drawn.

Characters are counted in the strings of its content streams, in any encoding: enough to estimate tokens. A scan has
none; of an encrypted file only the pages are known.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LETTER = (612, 792)
"""The size assumed for a page without one, in points (1/72 inch)."""
MOST_INFLATED = 64_000_000
"""Bytes that the streams of a file may inflate to; what is beyond is not looked at."""
SHORTEST_SPACE = 200
"""A step back by more than this between two strings (thousandths of the font's size, or points) is a space."""
HEX_DIGITS = 4
"""Of a character in a hexadecimal string: what writes those uses fonts of two bytes a character."""
PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
PAGE_TREE = re.compile(rb"/Type\s*/Pages(?![A-Za-z])")
DICTIONARY = re.compile(rb"<<[^<>]*>>")
"""One without others in it."""
COUNT = re.compile(rb"/Count\s+(\d{1,6})")
BOX = re.compile(rb"/MediaBox\s*\[\s*(-?\d[\d.]*)\s+(-?\d[\d.]*)\s+(-?\d[\d.]*)\s+(-?\d[\d.]*)\s*\]")
STREAM = re.compile(rb"(?<!end)stream\r?\n")
LONGEST_HEAD = 2_000
"""Bytes before a stream in which its dictionary begins."""
NO_TEXT = re.compile(rb"/Image|/Length1|/Type1C|/CIDFontType0C|/OpenType|/ObjStm|/XRef")
"""In the dictionary of a stream that is no page: an image, a font, a table."""
TEXT = re.compile(rb"(?:^|\s)BT\s")
STRING = re.compile(rb"\(((?:[^\\()]|\\.)*)\)|<([0-9A-Fa-f\s]+)>|-(\d{1,9})", re.DOTALL)
ESCAPE = re.compile(rb"\\(?:[0-7]{1,3}|.)", re.DOTALL)


class ScannedPdf(NamedTuple):
    """Pages, their size in points (of the first page that states it), characters drawn (None: unreadable)."""

    pages: int
    size: tuple[int, int]
    characters: int | None


def scan_pdf(data: bytes) -> ScannedPdf | None:
    """What is found of a PDF in `data`; None if its pages are not."""
    streams = list(_streams(data))
    described = [data, *(body for head, body in streams if b"/ObjStm" in head)]
    shown = (body for head, body in streams if not NO_TEXT.search(head))
    characters = None if b"/Encrypt" in data else sum(map(_characters, shown))
    pages = _pages(described)
    return ScannedPdf(pages, _size(described), characters) if pages else None


def _streams(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(dictionary, content) of each stream; the content inflated where possible."""
    left = MOST_INFLATED
    for start in STREAM.finditer(data):
        end = data.find(b"endstream", start.end())
        head = data[max(0, start.start() - LONGEST_HEAD) : start.start()]
        body = _inflate(data[start.end() : end if end >= 0 else len(data)], left)
        left -= len(body)
        yield head[head.rfind(b"obj") + 1 :], body
        if left <= 0:
            return


def _inflate(raw: bytes, most: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(raw, most)
    except zlib.error:
        return raw[:most]


def _pages(described: Sequence[bytes]) -> int:
    """The number in the root of the page tree; if it cannot be read, the pages are counted."""
    nodes = (node[0] for text in described for node in DICTIONARY.finditer(text) if PAGE_TREE.search(node[0]))
    counts = [int(count) for node in nodes for count in COUNT.findall(node)]
    return max(counts, default=0) or sum(len(PAGE.findall(text)) for text in described)


def _size(described: Sequence[bytes]) -> tuple[int, int]:
    boxes = (box for text in described for box in BOX.findall(text))
    for left, bottom, right, top in boxes:
        width, height = _distance(left, right), _distance(bottom, top)
        if width and height:
            return width, height
    return LETTER


def _distance(one: bytes, other: bytes) -> int:
    try:
        return round(abs(float(other) - float(one)))
    except ValueError:
        return 0


def _characters(stream: bytes) -> int:
    """Characters of the strings in a content stream (with text, BT), and the spaces between them."""
    return sum(map(_drawn_length, STRING.finditer(stream))) if TEXT.search(stream) else 0


def _drawn_length(found: re.Match[bytes]) -> int:
    text, digits, step = found.groups()
    if step:
        return int(int(step) > SHORTEST_SPACE)
    return len(b"".join(digits.split())) // HEX_DIGITS if digits else len(ESCAPE.sub(b"x", text))
