"""Versions of a block: the same thing sent with other words, and how much of it is other words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import ceil

from cachecost.caches.alignment import ALIKE, ALIKE_IN_SIZE, alike, text_of
from cachecost.prompts.blocks import Block

Versions = tuple[Block | None, Block | None]
"""A block as sent before and now; None: it was added, or is gone."""
CountBlock = Callable[[Block], int]
"""Tokens of a block."""


def are_versions(old: Block, new: Block) -> bool:
    """Whether one block is the other with other words: most of the text, or all of it in another order of keys."""
    if (old.kind, old.role) != (new.kind, new.role):
        return False
    if old.content is None or new.content is None:
        return abs(old.size - new.size) <= ALIKE_IN_SIZE * max(old.size, new.size)
    if old.content == new.content or _name(old) == _name(new) is not None:
        return True
    one, other = text_of(old), text_of(new)
    return alike(one, other) >= ALIKE * max(len(one), len(other))


def _name(block: Block) -> object:
    """The name of a tool definition."""
    return (block.content or {}).get("name") if block.kind == "tool" else None


def align(was: Sequence[Block], now: Sequence[Block]) -> Iterator[Versions]:
    """The blocks of `now` in order, each beside what it was, wherever that stood; then the blocks that are gone."""
    left = list(was)
    for block in now:
        old = next((one for one in left if one.digest == block.digest), None)
        old = old or next((one for one in left if are_versions(one, block)), None)
        if old is not None:
            left.remove(old)
        yield old, block
    yield from ((old, None) for old in left)


def changed_tokens(pairs: Iterable[Versions], count: CountBlock) -> int:
    """Tokens that are sent now and were not sent before."""
    return sum(_changed(old, new, count) for old, new in pairs if new is not None)


def _changed(old: Block | None, new: Block, count: CountBlock) -> int:
    if old is None:
        return count(new)
    if old.digest == new.digest or old.content == new.content is not None:
        return 0
    if old.content is None or new.content is None:
        return count(new)
    one, other = text_of(old), text_of(new)
    share = 1 - alike(one, other) / max(1, len(other))
    return ceil(count(new) * share)
