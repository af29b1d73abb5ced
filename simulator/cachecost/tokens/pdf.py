"""The pages of a PDF, their sizes and the text on them: as pypdf reads them, else as far as its bytes show.

A few hundred bytes may have pypdf draw one thing without end, so how much it would go through is looked at first.
"""

from __future__ import annotations

import logging
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import category

from cachecost.tokens.images import Size

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

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
    streams, left = list[tuple[bytes, bytes]](), MOST_INFLATED
    for start in STREAM.finditer(data):
        end = data.find(b"endstream", start.end())
        head = data[max(0, start.start() - LONGEST_HEAD) : start.start()]
        body = data[start.end() : end if end >= 0 else len(data)]
        try:
            body = zlib.decompressobj().decompress(body, left)
        except zlib.error:
            body = body[:left]
        left -= len(body)
        streams.append((head[head.rfind(b"obj") + 1 :], body))  # the dictionary, and what is in the stream
        if left <= 0:
            break
    described = [data, *(body for head, body in streams if b"/ObjStm" in head)]
    shown = (body for head, body in streams if not NO_TEXT.search(head))
    characters = None if b"/Encrypt" in data else sum(map(_characters, shown))
    nodes = (node[0] for text in described for node in DICTIONARY.finditer(text) if PAGE_TREE.search(node[0]))
    counts = [int(count) for node in nodes for count in COUNT.findall(node)]
    pages = max(counts, default=0) or sum(len(PAGE.findall(text)) for text in described)
    boxes = (box for text in described for box in BOX.findall(text))
    sizes = ((_distance(left, right), _distance(bottom, top)) for left, bottom, right, top in boxes)
    return ScannedPdf(pages, next(filter(all, sizes), LETTER), characters) if pages else None


def _distance(one: bytes, other: bytes) -> int:
    try:
        return round(abs(float(other) - float(one)))
    except ValueError:
        return 0


def _characters(stream: bytes) -> int:
    """Characters of the strings in a content stream (with text, BT), and the spaces between them."""
    if not TEXT.search(stream):
        return 0
    number = 0
    for text, digits, step in STRING.findall(stream):
        if step:
            number += int(step) > SHORTEST_SPACE
        else:
            number += len(b"".join(digits.split())) // HEX_DIGITS if digits else len(ESCAPE.sub(b"x", text))
    return number


DRAWN = re.compile(rb"/([^\s/\[\]<>(){}%]+)\s+Do\b")
"""A form or an image that a content stream draws, by its name."""
CHARACTERS = re.compile(rb"<([0-9A-Fa-f]{1,6})>\s*<([0-9A-Fa-f]{1,6})>\s*[<\[]")
"""A range of characters in the table of a font: the first, the last, and what they are."""


def has_more_pages(reader: PdfReader, most: int) -> bool:
    """Whether a file has more pages than that. Of the page tree no more nodes are looked at than such a file has; one
    that stands at several places counts for each."""
    number = 0
    todo: list[Any] = [reader.root_object["/Pages"]]
    while todo and number <= 2 * most:
        number += 1
        kids = todo.pop().get_object().get("/Kids")
        todo += kids.get_object() if kids else ()
    return number > 2 * most or len(reader.pages) > most


def shows_more(reader: PdfReader, most: int) -> bool:
    """Whether the pages show more bytes than that. Stops where it is known; a form that draws itself shows more."""
    sizes: dict[int, int] = {}

    def count_bytes(content: bytes, resources: Any) -> int:
        """Of a content stream, of the fonts at hand, and of what it draws. An unknown name may be any form."""
        if len(content) > most:
            return len(content)
        within, forms, total = resources.get_object() if resources else {}, dict[bytes, int](), len(content)
        for name, form in _in(within, "/XObject"):
            is_form = form.get("/Subtype") == "/Form"
            if is_form and id(form) not in sizes:
                sizes[id(form)] = most + 1
                sizes[id(form)] = count_bytes(form.get_data(), form.get("/Resources"))
            forms[name[1:].encode()] = sizes[id(form)] if is_form else 0
        for _, font in _in(within, "/Font"):  # its table of characters; one more for each of a range
            table = font.get("/ToUnicode")
            found: Any = table.get_object() if table else None
            data = found.get_data() if hasattr(found, "get_data") else b""
            ranges = CHARACTERS.findall(data)
            total += len(data) + sum(max(0, int(last, 16) - int(first, 16)) for first, last in ranges)
        largest = max(forms.values(), default=0)
        return total + sum(forms.get(name, largest) for name in DRAWN.findall(content))

    left = most
    for page in reader.pages:
        content = page.get_contents()
        left -= count_bytes(b"" if content is None else content.get_data(), page.get_inherited("/Resources"))
        if left < 0:
            return True
    return False


def _in(resources: Any, kind: str) -> Iterator[tuple[str, Any]]:
    found = resources.get(kind)
    return ((name, one.get_object()) for name, one in (found.get_object() if found else {}).items())


MOST_PAGES = 600
"""As many as the Claude API takes of a PDF."""
MOST_SHOWN = 5_000_000
"""Bytes of what the pages of a file show whose text is read."""
MOST_ODD = 0.1
"""The share of characters that are none from which a text is none: a font's own codes."""


@dataclass(frozen=True, slots=True)
class Pdf:
    """How many pages of each size in points, their text, and the characters that are drawn and not read (None: it is
    not known how many)."""

    pages: Mapping[Size, int]
    text: str = ""
    unread: int | None = 0


def read_pdf(data: bytes) -> Pdf | None:
    """The PDF in `data`; None if it is not a PDF or its pages cannot be found."""
    if b"%PDF-" not in data[:1024]:
        return None
    read = _read_by_library(data)
    if read is not None and read.unread is not None:
        return read
    scanned = scan_pdf(data)
    pages = read.pages if read else {scanned.size: scanned.pages} if scanned else {}
    return Pdf(pages, "", scanned.characters if scanned else None) if pages else None


def _read_by_library(data: bytes) -> Pdf | None:
    """What pypdf reads, `unread` being None for a text that is too long; None for a file that it cannot read."""
    from pypdf import PdfReader

    logger = logging.getLogger("pypdf")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)  # without the warnings that it logs
    try:
        reader = PdfReader(BytesIO(data))
        if (reader.is_encrypted and not reader.decrypt("")) or has_more_pages(reader, MOST_PAGES):
            return None
        sizes = Counter(map(_pdf_size, reader.pages))
        if not sizes or shows_more(reader, MOST_SHOWN):
            return Pdf(sizes, "", None) if sizes else None
        text = "\n".join(page.extract_text() for page in reader.pages).strip()
    except Exception:  # a damaged file makes any part of it fail, in any way
        return None
    finally:
        logger.setLevel(level)
    # hardly any character of a text is a control code, of private use or unknown
    odd = sum(sign == "\N{REPLACEMENT CHARACTER}" or (category(sign)[0] == "C" and not sign.isspace()) for sign in text)
    return Pdf(sizes, text) if odd <= MOST_ODD * len(text) else Pdf(sizes, "", len(text))


def _pdf_size(page: PageObject) -> Size:
    box = page.get_inherited("/CropBox") or page.get_inherited("/MediaBox")
    left, bottom, right, top = map(float, box.get_object()) if box else (0.0, 0.0, 0.0, 0.0)
    size = round(abs(right - left)), round(abs(top - bottom))
    return size if all(size) else LETTER
