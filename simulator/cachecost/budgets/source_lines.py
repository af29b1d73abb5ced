"""The line of the project's source code that a changed text comes from, where exactly one line can be it.

A text that is sent is rarely in the source as it is: parts of it are put in, and long strings are split over lines.
So pieces of it are searched, the longest around the change first; one that is in several lines says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cachecost.prompts.compare import shared_ends

SHORTEST = 8
"""Characters of a piece that is distinctive enough."""
QUOTATION_MARKS = ('"', "'", "`")
LONGEST = 120
SIZES = (80, 48, 32, 20, 12)
"""Characters of the pieces before and behind a change, as far as its line goes."""
VARYING = re.compile(r"\S*\d\S*|\n")
"""Words with digits in a text that came: most are put in when the program runs."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of a file, from 1, and the column where the text begins."""

    file: str
    line: int
    column: int


def search_texts(old: str, new: str, at: int = 0) -> tuple[str, ...]:
    """Texts to search for, best first, of a text that differs from character `at` on: what came, the line it is in,
    what stands before it and behind it."""
    _, same = shared_ends(old[at:], new[at:])
    come = new[at : len(new) - same]
    found = [line.strip() for line in come.splitlines() if len(line) <= LONGEST]
    pieces = sorted((piece.strip() for piece in VARYING.split(come[:LONGEST])), key=len, reverse=True)
    found += [*pieces, *(f"{mark}{piece}" for piece in pieces for mark in QUOTATION_MARKS if piece)]
    found += [come[:size].split("\n")[0].strip() for size in SIZES]
    start, end = new.rfind("\n", 0, at) + 1, len(new) - same
    stop = new.find("\n", at)
    line_end = len(new) if stop < 0 else stop
    found.append(new[start:line_end].strip()[:LONGEST])
    for size in SIZES:
        found.append(new[max(start, at - size) : at].strip())
        found.append(new[end : min(end + size, line_end if line_end > end else end + size)].strip())
    fixed = [piece.strip() for piece in VARYING.split(new[start:at][-LONGEST:])]
    found += sorted(fixed, key=len, reverse=True)
    found += [f"{mark}{piece}" for piece in fixed for mark in QUOTATION_MARKS if piece]
    # as SHORTEST, of a piece with the mark of quotation that begins its literal
    least = [5 if text.startswith(QUOTATION_MARKS) else SHORTEST for text in found]
    long = (text for text, size in zip(found, least, strict=True) if len(text) >= size and "\n" not in text)
    return tuple(dict.fromkeys(long))


def find_source_line(search: Sequence[str], files: Mapping[str, str]) -> SourceLine | None:
    """The only line of `files` (text by name) that has one of the texts; the first text that decides it counts."""
    for text in search:
        found = list[SourceLine]()
        for name, content in files.items():
            at = content.find(text)
            while at >= 0 and len(found) < 2:
                start = content.rfind("\n", 0, at) + 1
                found.append(SourceLine(name, content.count("\n", 0, at) + 1, at - start + 1))
                at = content.find(text, at + len(text))
        if len(found) == 1:
            return found[0]
    return None
