"""The text drawn on the pages of a PDF, as far as its strings are plain: literal strings in a Latin encoding.

Fonts cut down to a subset often have an encoding of their own, and those of two bytes a character write hexadecimal
strings: what they draw is counted by its characters only (`pdf.py`).
"""

from __future__ import annotations

import re

from cachecost.tokens.pdf import NO_TEXT, SHORTEST_SPACE, TEXT, streams_in

MARK = re.compile(rb"\(((?:[^\\()]|\\.)*)\)|<[0-9A-Fa-f\s]+>|-(\d{1,9})|(T[*dDmLJj]?(?=\s)|\bET\b|')", re.DOTALL)
"""A literal string, one in hexadecimal, a step back, an operator."""
NEW_LINE = (b"T*", b"Td", b"TD", b"Tm", b"ET", b"'")
ESCAPE = re.compile(rb"\\([0-7]{1,3}|.)", re.DOTALL)
ESCAPED = {b"n": b"\n", b"r": b"\n", b"t": b"\t", b"b": b"", b"f": b"", b"\n": b""}
LEAST_WORDS = 0.9
"""The share of letters, digits, spaces and common punctuation from which a text is one."""
PLAIN = re.compile(r"[\w\s.,;:!?()'\"%&/+\-–—=$€§]")


def drawn_text(data: bytes) -> str:
    """The text of a PDF's plain strings, a line for each that the file positions; "" where they make no text."""
    shown = (body for head, body in streams_in(data) if TEXT.search(body) and not NO_TEXT.search(head))
    text = "\n".join(filter(None, map(_text_of, shown)))
    plain = len(PLAIN.findall(text))
    return text if text and plain >= LEAST_WORDS * len(text) else ""


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
