"""Where two values of a request first differ, and what kind of text differs there."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cachecost.budgets.source_lines import search_texts
from cachecost.caches.alignment import first_difference

Kind = Literal["time", "id", "order", "random number", "unknown"]
AROUND = 24
"""Characters that an excerpt shows on each side."""
WORD = re.compile(r"[^\s,;'\"\[\](){}]+")
PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("id", re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)),  # a UUID (RFC 9562)
    (
        "time",
        re.compile(
            r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"  # ISO 8601
            r"|\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?"
            r"|\b(?i:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:jan|febr)uary|march|april|may|june|july|august"
            r"|(?:septem|octo|novem|decem)ber|(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|jun|jul|aug|sep|oct|nov|dec))\b"
            r"|(?<![\w.])[12]\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?(?!\w)"  # since 1970, in s, ms, µs or ns
        ),
    ),
    ("id", re.compile(r"\btmp\w{8}\b|\btmp\.\w{10}\b")),  # as mkdtemp and mktemp name files
    ("id", re.compile(r"\b0x[0-9a-f]+\b|\b(?=[0-9a-f]*\d)[0-9a-f]{8,}\b", re.IGNORECASE)),
    ("id", re.compile(r"\b[a-z]+[_-](?=\w*\d)\w{8,}\b|\b(?=\w*\d)(?=\w*[a-zA-Z])\w{16,}\b")),
    ("random number", re.compile(r"\d+(?:\.\d+)?")),
)
"""What a text that differs is, the first that fits; a pattern fits where it covers the difference in both texts."""


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """The first difference of two values: the path to it, the character from 0, and the text around it in each.

    `kind` is what differs; "order" is the same parts in another order. `search` are texts to find its source line by.
    """

    path: tuple[str | int, ...]
    kind: Kind
    character: int
    first: str
    second: str
    search: tuple[str, ...] = ()


def find_difference(first: Any, second: Any) -> ValueDifference | None:
    """The first difference of two JSON values; None if they are the same, the order of keys included."""
    return next(_differences(first, second, ()), None)


def _differences(first: Any, second: Any, path: tuple[str | int, ...]) -> Iterator[ValueDifference]:
    if isinstance(first, Mapping) and isinstance(second, Mapping) and list(first) == list(second):
        for key in first:
            yield from _differences(first[key], second[key], (*path, key))
    elif _are_lists(first, second) and len(first) == len(second) and not _same_parts(first, second):
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _differences(one, other, (*path, number))
    elif _text(first) != _text(second):
        yield _text_difference(first, second, path)


def _are_lists(first: Any, second: Any) -> bool:
    return isinstance(first, list | tuple) and isinstance(second, list | tuple)


def _text_difference(first: Any, second: Any, path: tuple[str | int, ...]) -> ValueDifference:
    one, other = _text(first), _text(second)
    at = first_difference(one, other)
    kind = "order" if _is_reordered(first, second) else kind_of(one, other, at)
    return ValueDifference(path, kind, at, excerpt(one, at), excerpt(other, at), search_texts(one, other, at))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_reordered(first: Any, second: Any) -> bool:
    """Whether both have the same parts: entries of a mapping, items of a list, words of a text."""
    if isinstance(first, str) and isinstance(second, str):
        return Counter(WORD.findall(first)) == Counter(WORD.findall(second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return dict(first) == dict(second)
    return _are_lists(first, second) and _same_parts(first, second)


def _same_parts(first: Sequence[Any], second: Sequence[Any]) -> bool:
    """Whether two different lists have the same items."""
    ones, others = list(map(_text, first)), list(map(_text, second))
    return ones != others and Counter(ones) == Counter(others)


def kind_of(first: str, second: str, at: int) -> Kind:
    """What differs between two texts at the character `at`, their first difference."""
    for kind, pattern in PATTERNS:
        if all(any(found.start() <= at <= found.end() for found in pattern.finditer(text)) for text in (first, second)):
            return kind
    return "unknown"


def excerpt(text: str, at: int) -> str:
    """The text around the character `at`, with an ellipsis where it is cut."""
    begin, end = max(0, at - AROUND), at + AROUND
    return f"{'…' if begin else ''}{text[begin:end]}{'…' if end < len(text) else ''}"
