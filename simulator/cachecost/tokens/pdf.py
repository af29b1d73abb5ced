"""The pages of a PDF, their sizes and the text on them: as pypdf reads them, else as far as its bytes show.

pypdf takes some 20 ms a page, and a small file may have it draw one thing without end: `pdf_work` sets limits.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING
from unicodedata import category

from cachecost.tokens.pdf_scan import LETTER, scan_pdf
from cachecost.tokens.pdf_work import has_more_pages, shows_more

if TYPE_CHECKING:
    from pypdf import PageObject

MOST_PAGES = 600
"""As many as the Claude API takes of a PDF."""
MOST_SHOWN = 5_000_000
"""Bytes of what the pages of a file show whose text is read."""
MOST_ODD = 0.1
"""The share of characters that are none from which a text is none: a font's own codes."""
Size = tuple[int, int]


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

    with _silent("pypdf"):
        try:
            reader = PdfReader(BytesIO(data))
            if (reader.is_encrypted and not reader.decrypt("")) or has_more_pages(reader, MOST_PAGES):
                return None
            sizes = Counter(map(_size, reader.pages))
            if not sizes or shows_more(reader, MOST_SHOWN):
                return Pdf(sizes, "", None) if sizes else None
            text = "\n".join(page.extract_text() for page in reader.pages).strip()
        except Exception:  # a damaged file makes any part of it fail, in any way
            return None
    return Pdf(sizes, text) if _is_text(text) else Pdf(sizes, "", len(text))


def _size(page: PageObject) -> Size:
    """The size of what is shown of a page; that of a letter where it states none."""
    box = page.get_inherited("/CropBox") or page.get_inherited("/MediaBox")
    left, bottom, right, top = map(float, box.get_object()) if box else (0.0, 0.0, 0.0, 0.0)
    size = round(abs(right - left)), round(abs(top - bottom))
    return size if all(size) else LETTER


def _is_text(text: str) -> bool:
    """Whether hardly any character is a control code, of private use or unknown."""
    odd = sum(sign == "\N{REPLACEMENT CHARACTER}" or (category(sign)[0] == "C" and not sign.isspace()) for sign in text)
    return odd <= MOST_ODD * len(text)


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Without the warnings that a library logs."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)
