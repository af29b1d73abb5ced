"""Where prompts part inside a block: what follows one prefix, sorted by text, so that the nearest is found at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container

from cachecost.prompts.blocks import Block, Prefix
from cachecost.prompts.compare import first_difference, text_of
from cachecost.prompts.exact_json import has_content

BlockKind = tuple[str, str]
"""Role and kind: blocks of others are put in another frame by the template, and share nothing."""
SharedTokens = Callable[[Block, Block], int]
"""The tokens that two blocks both begin with."""


def shared_characters(one: Block | None, other: Block | None) -> int:
    """The characters that the texts of two blocks both begin with. -1 if a template puts them in different frames."""
    if one is None or other is None or (one.role, one.kind) != (other.role, other.kind):
        return -1
    return first_difference(text_of(one), text_of(other))


class BlockStarts:
    """The blocks after prefixes at which prompts part. `known` are the prefixes that were sent.

    A new block costs a search among those that follow the same prefix, whose texts are not kept a second time.
    """

    def __init__(self, known: Container[Prefix]) -> None:
        self._known = known
        self._after: dict[Prefix, dict[BlockKind, list[Prefix]]] = {}

    def add(self, new: Prefix, shared: SharedTokens) -> tuple[int, Prefix] | None:
        """Add a prefix whose last block is new after a known one.

        Returns how many tokens of it another one begins with, and which shares most of its block; None where none
        shares a token.
        """
        node = new.parent
        if node is None or new.block is None:
            return None
        if node not in self._after:
            earlier = [one for one in node.children() if one in self._known]
            if not earlier:
                return None
            self._after[node] = {}
            for one in earlier:
                self._sort_in(node, one)
        place, beside = self._sort_in(node, new)
        around = (*beside[max(0, place - 1) : place], *beside[place + 1 : place + 2])
        neighbours = [(one.block, one) for one in around if one.block is not None]
        if not neighbours:
            return None
        block, nearest = max(neighbours, key=lambda pair: shared_characters(new.block, pair[0]))
        tokens = min(shared(block, new.block), new.tokens - node.tokens, nearest.tokens - node.tokens)
        return (node.tokens + tokens, nearest) if tokens > 0 else None

    def _sort_in(self, node: Prefix, child: Prefix) -> tuple[int, list[Prefix]]:
        block = child.block
        if block is None or not has_content(block):
            return 0, []
        beside = self._after[node].setdefault((block.role, block.kind), [])
        place = bisect_left(beside, text_of(block), key=lambda one: text_of(one.block) if one.block else "")
        beside.insert(place, child)
        return place, beside
