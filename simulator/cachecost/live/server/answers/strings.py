"""Strings that satisfy the limits, format and pattern of a JSON schema, the most likely first.

A pattern comes from a client, and Python's `re` may take forever on one: a string is tried only where it is short
enough for the pattern's number of repetitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
WORD = "cachecost"
FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "PT1S",
    "email": "nobody@example.com",
    "hostname": "example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
CANDIDATES = (
    WORD,
    *FORMATS.values(),
    "a1",
    "A1",
    "A-1",
    "a-1",
    "#000000",
    "1.0",
    "1.0.0",
    "/",
    "a/b",
    "+10000000000",
    "$1",
)
"""Candidates for a pattern; runs of one letter or digit follow."""
LONGEST_RUN = 40
MOST_STEPS = 10**6
"""Of one match: with N repetitions, a string of length L takes up to L to the power of N + 1."""
MOST_NESTED = 10
"""Characters of a string that is tried on a pattern that repeats a group: it may take 2 to the power of that."""
REPETITION = re.compile(r"[*+?]|\{\d*,\d*\}")
REPEATED_GROUP = re.compile(r"\)[*+?{]")


def strings_of(schema: Schema, wanted: Any) -> Iterator[str]:
    """Strings that satisfy the schema, the most likely first."""
    least, most = whole_number(schema.get("minLength")), schema.get("maxLength")
    pattern = _compile_pattern(schema.get("pattern"))
    longest = _longest_tried(pattern.pattern) if pattern else 0
    for tried in _candidates(schema, wanted):
        fitted = tried.ljust(least, "x")
        fitted = fitted[:most] if isinstance(most, int) else fitted
        if pattern is None or (len(fitted) <= longest and pattern.search(fitted)):
            yield fitted


def _candidates(schema: Schema, wanted: Any) -> Iterator[str]:
    if isinstance(form := FORMATS.get(str(schema.get("format"))), str):
        yield form
    if isinstance(wanted, str):
        yield wanted
    yield from CANDIDATES
    for length in range(LONGEST_RUN):
        yield from ("0" * length, "a" * length, "A" * length)


def _compile_pattern(pattern: Any) -> re.Pattern[str] | None:
    """None for a pattern that Python does not support: the value is a guess anyway."""
    try:
        return re.compile(pattern) if isinstance(pattern, str) else None
    except re.error:
        return None


def _longest_tried(pattern: str) -> int:
    """Characters of the longest string for which a match is quick. What is no repetition may count as one."""
    repetitions = len(REPETITION.findall(pattern.replace("(?", "(")))
    longest = int(MOST_STEPS ** (1 / (repetitions + 1)))
    return min(longest, MOST_NESTED) if REPEATED_GROUP.search(pattern) else longest


def whole_number(value: Any) -> int:
    """A limit of a schema that counts something; 0 where it is not a number."""
    return int(value) if isinstance(value, int | float) and value > 0 else 0
