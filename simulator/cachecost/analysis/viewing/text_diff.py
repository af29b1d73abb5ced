"""Two texts as one, with what went and what came: by lines, and inside lines that changed by words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

TextPartKind = Literal["same", "gone", "new"]
TextPart = tuple[TextPartKind, str]
LINE = re.compile(r"(?<=\n)|(?<=\\n)")
"""Between lines; in JSON, their ends are escaped."""
WORD = re.compile(r"\w+|\s+|[^\w\s]")
MOST_PIECES = 2_000
"""Of more changed pieces than this, difflib would take seconds: they are shown as a whole."""


def diff_texts(old: str, new: str) -> list[TextPart]:
    """The parts of both texts in order: the same and new ones make `new`, the same and gone ones `old`."""
    return _joined(_diff_pieces(LINE.split(old), LINE.split(new), is_words=False))


def _diff_pieces(old: Sequence[str], new: Sequence[str], is_words: bool) -> Iterator[TextPart]:
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    yield "same", "".join(old[:head])
    yield from _diff_middle(old[head : len(old) - tail], new[head : len(new) - tail], is_words)
    yield "same", "".join(old[len(old) - tail :])


def _diff_middle(old: Sequence[str], new: Sequence[str], is_words: bool) -> Iterator[TextPart]:
    if max(len(old), len(new)) > MOST_PIECES:
        yield from (("gone", "".join(old)), ("new", "".join(new)))
        return
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        was, now = "".join(old[i:j]), "".join(new[k:m])
        if kind == "equal":
            yield "same", was
        elif kind == "replace" and not is_words:
            yield from _diff_pieces(WORD.findall(was), WORD.findall(now), is_words=True)
        else:
            yield from (("gone", was), ("new", now))


def _shared(old: Sequence[str], new: Sequence[str]) -> int:
    """How many pieces both begin with."""
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _joined(parts: Iterator[TextPart]) -> list[TextPart]:
    """The parts without empty ones, neighbours of one kind as one."""
    filled = [part for part in parts if part[1]]
    return [(kind, "".join(text for _, text in group)) for kind, group in groupby(filled, key=lambda part: part[0])]
