"""How two blocks at the same place of two requests differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cachecost.analysis.lint.excerpts import excerpt, texts
from cachecost.analysis.lint.volatile import KIND_NAMES, kind_of, only_words_changed
from cachecost.caches.alignment import first_difference
from cachecost.prompts.blocks import Block

VOLATILE, CHANGED, KEY_ORDER = "CC530", "CC533", "CC534"


@dataclass(frozen=True, slots=True)
class Difference:
    """How a block differs from the one before it: the code, where in the block, and in words."""

    code: str
    inner: str
    words: str
    offset: int | None = None
    excerpt: str = ""


def difference(old: Block, new: Block) -> Difference:
    """The difference of two blocks whose digests differ. Without content it is only known that they do."""
    if old.content is None or new.content is None:
        return Difference(CHANGED, "", "differs from the previous request")
    if old.content == new.content:
        return _order(old.content, new.content)
    before, after = list(texts(old.content)), list(texts(new.content))
    if [path for path, _ in before] != [path for path, _ in after]:
        return _first(before, after, is_volatile=False)
    changed = [(one, other) for (_, one), (_, other) in zip(before, after, strict=True) if one != other]
    return _first(before, after, bool(changed) and all(only_words_changed(*pair) for pair in changed))


def _first(before: list[tuple[str, str]], after: list[tuple[str, str]], is_volatile: bool) -> Difference:
    """The first text that differs."""
    for (path, old), (other, new) in zip(before, after, strict=False):
        if path == other and old != new:
            return _text_difference(path, old, new, is_volatile)
    return Difference(CHANGED, "", "has other fields than in the previous request")


def _text_difference(path: str, old: str, new: str, is_volatile: bool) -> Difference:
    at = first_difference(old, new)
    shown = excerpt(new, at)
    what = f"{KIND_NAMES[kind_of(new, min(at, len(new) - 1))]} differs" if is_volatile and new else "differs"
    words = f'{what} from the previous request at character {at:,}: "{shown}"'
    return Difference(VOLATILE if is_volatile else CHANGED, path, words, at, shown)


def _order(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    path, before, after = _first_other_order(old, new, "")
    words = f"the same JSON with its keys in another order: {', '.join(after)}; before: {', '.join(before)}"
    return Difference(KEY_ORDER, path, words)


def _first_other_order(old: Any, new: Any, path: str) -> tuple[str, list[str], list[str]]:
    """(path of the first object with another order of keys, the keys before, the keys after)."""
    if isinstance(old, Mapping):
        if list(old) != list(new):
            return path, list(map(str, old)), list(map(str, new))
        pairs = [(f"{path}.{key}".lstrip("."), old[key], new[key]) for key in old]
    elif isinstance(old, list):
        pairs = [
            (f"{path}.{number}".lstrip("."), one, two) for number, (one, two) in enumerate(zip(old, new, strict=True))
        ]
    else:
        pairs = []
    for inner, one, two in pairs:
        found = _first_other_order(one, two, inner)
        if found[1]:
            return found
    return path, [], []
