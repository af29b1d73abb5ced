"""Two prompts beside each other: where they diverge, and how much of the later one was sent before all the same."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps

from cachecost.prompts.blocks import Block, Layer, Prefix

ALIKE = 0.6
"""The share of two texts, from their ends inwards, that must match for one to be a new version of the other."""
ALIKE_IN_SIZE = 0.02
"""Without content, two blocks of tools or system are versions of one if their sizes differ by at most this share."""


def path(end: Prefix, after: int) -> list[Prefix]:
    """The prefixes of `end` that are more than `after` blocks long, in order."""
    nodes: list[Prefix] = []
    node: Prefix | None = end
    while node is not None and node.depth > after:
        if node.block is not None:
            nodes.append(node)
        node = node.parent
    return nodes[::-1]


def ancestor(node: Prefix, depth: int) -> Prefix:
    """The prefix of `node` that is `depth` blocks long. Takes time for the blocks in between."""
    while node.depth > depth or (node.block is None and node.parent is not None):
        assert node.parent is not None
        node = node.parent
    return node


def begins_with(end: Prefix, prefix: Prefix) -> bool:
    """Whether the prompt that ends at `end` has a prefix. Takes time for the blocks after it."""
    return prefix.depth <= end.depth and ancestor(end, prefix.depth) is prefix


def common(one: Prefix, other: Prefix) -> Prefix | None:
    """The longest common prefix; None for prompts of different tokenizers, which share no tree."""
    a: Prefix | None = one
    b: Prefix | None = other
    while a is not b and a is not None and b is not None:
        a_is_deeper = (a.depth, a.block is None) >= (b.depth, b.block is None)
        a, b = (a.parent, b) if a_is_deeper and a.parent else (a, b.parent)
    return a if a is b else None


def unchanged(before: Sequence[Prefix], now: Sequence[Prefix]) -> list[Prefix]:
    """The prefixes of `now` whose last block was sent before, in order: what would be read if nothing had changed.

    Both lists start where the prompts diverge; `before` ends with the last cached prefix. A block counts if it is
    equal, or in the place of another version of itself. In messages a version counts only if an equal block follows, or
    if it is the first difference and the conversation went on: the last message may be a new one that begins alike.
    """
    from difflib import SequenceMatcher  # most replays compare nothing

    kept: list[Prefix] = []
    versions: list[Prefix] = []
    blocks = [node.block.digest if node.block else b"" for node in before]
    others = [node.block.digest if node.block else b"" for node in now]
    for kind, i, j, k, m in SequenceMatcher(None, blocks, others, autojunk=False).get_opcodes():
        if kind == "equal":
            kept += [*versions, *now[k:m]]
            versions = []
        elif kind == "replace":
            for old, new in zip(before[i:j], now[k:m], strict=False):
                if old.layer is new.layer and old.block and new.block and are_versions(old.block, new.block, new.layer):
                    (versions if new.layer is Layer.MESSAGES else kept).append(new)
    went_on = any(node.block and node.block.role == "assistant" for node in now)
    if versions and versions[0] is now[0] and went_on:
        kept.append(versions[0])
    return kept


def are_versions(old: Block, new: Block, layer: Layer) -> bool:
    """Whether one block is another version of the other: most of its text, or without content about its size."""
    if (old.kind, old.role) != (new.kind, new.role):
        return False
    if old.digest == new.digest:
        return True
    if old.content is None or new.content is None:
        return layer is not Layer.MESSAGES and abs(old.size - new.size) <= ALIKE_IN_SIZE * max(old.size, new.size)
    return share_alike(old, new) >= ALIKE


def share_alike(old: Block, new: Block) -> float:
    """The share of the longer of two texts that both have at their beginning and at their end."""
    one, other = text_of(old), text_of(new)
    return alike(one, other) / max(1, len(one), len(other))


def text_of(block: Block) -> str:
    """The text of a text block, or the JSON of any other block as sent."""
    content = block.content or {}
    text = content.get("text")
    return text if block.kind == "text" and isinstance(text, str) else dumps(content, ensure_ascii=False)


def first_difference(one: str, other: str) -> int:
    """The index of the first character that differs."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    low, high = 0, length
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle)
    return low


def alike(one: str, other: str) -> int:
    """The number of characters that two texts share at their beginning and at their end."""
    begin = first_difference(one, other)
    rest = min(len(one), len(other)) - begin
    return begin + first_difference(one[::-1][:rest], other[::-1][:rest])
