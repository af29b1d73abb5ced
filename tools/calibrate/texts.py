"""Texts out of any JSON or JSON Lines file (transcripts, events): what agents read and write, whatever the format."""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error
from collections.abc import Iterator
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Any

SHORTEST = 200
PAGE = 6_000
PER_FILE = 100_000
"""Characters: shorter strings say little, longer ones are cut, and no file has more to say than this."""


def texts_in(file: Path) -> list[str]:
    """The long strings of a file, in order; base64 of UTF-8 is decoded. Keys and ids never count."""
    found = [text[:PAGE] for value in _values(file) for text in _strings(value) if _is_text(text)]
    lengths = accumulate(map(len, found))
    return [text for text, _ in takewhile(lambda pair: pair[1] <= PER_FILE, zip(found, lengths, strict=True))]


def _values(file: Path) -> Iterator[Any]:
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        yield json.loads(text)
    except ValueError:
        yield from (json.loads(line) for line in text.splitlines() if line.strip())


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield _decoded(value)
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(inner)


def _decoded(text: str) -> str:
    if " " in text or len(text) % 4:
        return text
    try:
        return b64decode(text, validate=True).decode("utf-8")
    except (Error, ValueError):
        return text


def _is_text(text: str) -> bool:
    """Long enough, and made of words: an id or a signature has no blanks."""
    return len(text) >= SHORTEST and " " in text
