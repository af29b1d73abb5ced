"""A short piece of a text around a character, fit to be shown: one line, no keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.analysis.lint.keys import keys_in

BEFORE, AFTER = 32, 48
KEY_LENGTH = 256
HERE = "▮"
"""Stands where the text goes on: for the first character that differs, or after the word that is meant."""
CUT = "…"


def excerpt(text: str, at: int, length: int = 0) -> str:
    """What stands before character `at`, in one line, ending in ▮; what looks like a key is hidden.

    The last `length` characters are the word that is meant: the excerpt begins before it.
    """
    start = _word_start(text, max(0, at - length - BEFORE), at - length)
    shown = "".join(_without_keys(text, start, at))
    before = CUT if start else ""
    after = CUT if at < len(text) else ""
    return f"{before}{' '.join(shown.split())}{HERE}{after}"


def excerpt_around(text: str, at: int, before: int = BEFORE, after: int = AFTER) -> str:
    """What stands around character `at`, in one line, "…" where the text goes on; what looks like a key is hidden."""
    start = _word_start(text, max(0, at - before), at)
    end = min(len(text), at + after)
    shown = "".join(_without_keys(text, start, end))
    return f"{CUT if start else ''}{' '.join(shown.split())}{CUT if end < len(text) else ''}"


def first_changed_text(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """(path within, text before, text now) of the first text of two blocks that is another one; None: none is."""
    known = dict(texts(old))
    found = ((path, known[path], text) for path, text in texts(new) if known.get(path, text) != text)
    return next(found, None)


def _word_start(text: str, start: int, end: int) -> int:
    """Where the first whole word from `start` on begins; `start` itself where none begins before `end`."""
    if start == 0 or text[start - 1].isspace():
        return start
    return next((number + 1 for number in range(start, end - 1) if text[number].isspace()), start)


def _without_keys(text: str, start: int, end: int) -> Iterator[str]:
    """The characters from `start` to `end`; a key may begin before them and go on after them."""
    shift = max(0, start - KEY_LENGTH)
    spans = [(one + shift, other + shift) for one, other in keys_in(text[shift : end + KEY_LENGTH])]
    for number in range(start, end):
        yield "*" if any(one <= number < other for one, other in spans) else text[number]


def texts(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path within, text) of every text in a block, in order; its type and names of keys are none."""
    for key, value in content.items():
        if key not in ("type", "cache_control"):
            yield from _texts(key, value)


def _texts(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(f"{path}.{key}", inner)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _texts(f"{path}.{number}", inner)
