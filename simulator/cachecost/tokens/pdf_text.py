"""The text drawn on the pages of a PDF.

Most files have plain strings, in a Latin encoding: those are read here, fast. Fonts cut down to a subset often have an
encoding of their own, or two bytes a character, and say what they draw in a table: pypdf reads those. What neither can
read is counted by its characters only (`pdf.py`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

from cachecost.tokens.pdf import NO_TEXT, SHORTEST_SPACE, TEXT, Pdf, streams_in
from cachecost.tokens.pdf_work import is_too_long

MARK = re.compile(rb"\(((?:[^\\()]|\\.)*)\)|<[0-9A-Fa-f\s]+>|-(\d{1,9})|(T[*dDmLJj]?(?=\s)|\bET\b|')", re.DOTALL)
"""A literal string, one in hexadecimal, a step back, an operator."""
NEW_LINE = (b"T*", b"Td", b"TD", b"Tm", b"ET", b"'")
ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
ESCAPED = {b"n": b"\n", b"r": b"\n", b"t": b"\t", b"b": b"", b"f": b"", b"\n": b""}
LEAST_WORDS = 0.9
"""The share of letters, digits, spaces and common punctuation from which a text is one; and of plain strings in it."""
PLAIN = re.compile(r"[\w\s.,;:!?()'\"%&/+\-–—=$€§]")
MOST_PAGES = 200
MOST_SHOWN = 5_000_000
"""Pages, and bytes of what they show, of a file that pypdf reads: it takes some 20 ms a page."""


def text_of(data: bytes, pdf: Pdf) -> tuple[str, int]:
    """(the text of a PDF, how many more characters are drawn that cannot be read).

    Its plain strings are enough where they are most of the text. Of an encrypted file no characters are known.
    """
    characters = pdf.characters or 0
    plain = drawn_text(data) if pdf.characters is not None else ""
    left = max(0, characters - len(plain.replace("\n", "")))
    if pdf.characters is not None and left <= (1 - LEAST_WORDS) * characters:
        return plain, left
    read = _library_text(data) if pdf.pages <= MOST_PAGES else ""
    return (read, 0) if len(read) > len(plain) else (plain, left)


def _library_text(data: bytes) -> str:
    """What pypdf reads; "" for a file that is too long for it, that it cannot read, or that is no text to it either."""
    with _silent("pypdf"):
        try:
            from pypdf import PdfReader

            reader = PdfReader(BytesIO(data))
            if is_too_long(reader, MOST_PAGES, MOST_SHOWN):
                return ""
            text = "\n".join(page.extract_text() for page in reader.pages).strip()
        except Exception:  # a damaged file makes any part of it fail, in any way
            return ""
    return text if _is_text(text) else ""


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


def _is_text(text: str) -> bool:
    """Mostly letters, digits, spaces and common punctuation."""
    return bool(text) and len(PLAIN.findall(text)) >= LEAST_WORDS * len(text)


def drawn_text(data: bytes) -> str:
    """The text of a PDF's plain strings, a line for each that the file positions; "" where they make no text."""
    shown = (body for head, body in streams_in(data) if TEXT.search(body) and not NO_TEXT.search(head))
    text = "\n".join(filter(None, map(_text_of, shown)))
    return text if _is_text(text) else ""


def _text_of(stream: bytes) -> str:
    parts: list[bytes] = []
    for found in MARK.finditer(stream):
        literal, step, operator = found.groups()
        if literal is not None:
            parts.append(ESCAPE.sub(_unescaped, literal))
        elif step is not None:
            parts.append(b" " if int(step) > SHORTEST_SPACE else b"")
        elif operator in NEW_LINE and parts and parts[-1] != b"\n":
            parts.append(b"\n")
    return b"".join(parts).decode("cp1252", "replace").strip()


def _unescaped(found: re.Match[bytes]) -> bytes:
    escaped = found[1]
    if escaped.isdigit() and escaped < b"8":
        return bytes([int(escaped, 8) & 0xFF])
    return ESCAPED.get(escaped, escaped)
