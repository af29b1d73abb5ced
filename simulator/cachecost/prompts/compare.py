"""The comparison of two prompts: what differs first, where (layer, block, character), and what corresponds to what.

In the order of the sizes: two texts, the texts in two blocks, two blocks, two lists of blocks, two prompts in the
tree. Whoever asks how a request differs from another asks here, and adds only words. Open `first_changed_text` for
where a block changed, `pair_in_order` for what corresponds, `unchanged` for what of a changed prompt stayed.
"""

from __future__ import annotations

import re
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from json import dumps
from typing import Any, Literal

import msgspec

from cachecost.prompts.blocks import Block, Layer, Prefix

ALIKE = 0.6
"""The share of two texts, from their ends inwards, that must match for one to be a new version of the other."""
ALIKE_IN_SIZE = 0.02
"""Without content, two blocks of tools or system are versions of one if their sizes differ by at most this share."""
LINE = re.compile(r"(?<=\n)|(?<=\\n)")
"""Between lines; in JSON, their ends are escaped."""
WORD = re.compile(r"\w+|\s+|[^\w\s]")
MOST_PIECES = 2_000
"""Of more changed pieces than this, difflib would take seconds: they are shown as a whole."""


def first_difference(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The index of the first character or item that differs: how many both begin with."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    low, high = 0, length
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle)
    return low


def shared_ends(*texts: str) -> tuple[int, int]:
    """How many characters all texts begin with, and how many of what is left they end with."""
    begin = first_difference(min(texts), max(texts))
    rest = min(map(len, texts)) - begin
    ends = [text[len(text) - rest :][::-1] for text in texts]
    return begin, first_difference(min(ends), max(ends))


Opcode = tuple[Literal["equal", "replace", "insert", "delete"], int, int, int, int]
"""As difflib's: what is done, from and to in the old list, from and to in the new one."""


def opcodes(old: Sequence[Hashable], new: Sequence[Hashable], begin: int = 0) -> Iterator[Opcode]:
    """What makes `new` of `old`, in order. The first `begin` items are known to be equal and cost no work."""
    from difflib import SequenceMatcher  # most replays compare nothing

    if begin:
        yield "equal", 0, begin, 0, begin
    matcher = SequenceMatcher(None, old[begin:], new[begin:], autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        yield kind, i + begin, j + begin, k + begin, m + begin


def pair_in_order(
    old: Sequence[Hashable], new: Sequence[Hashable], begin: int | None = None
) -> Iterator[tuple[int | None, int | None]]:
    """Indices that correspond: of equal keys; between those, in the order they stand. None where one has no more.

    The first `begin` items are equal; by default as many as both begin with.
    """
    begin = first_difference(old, new) if begin is None else begin
    for _, i, j, k, m in opcodes(old, new, begin):
        both = min(j - i, m - k)
        yield from zip(range(i, i + both), range(k, k + both), strict=True)
        yield from ((number, None) for number in range(i + both, j))
        yield from ((None, number) for number in range(k + both, m))


def pair_anywhere(
    old: Sequence[Hashable], new: Sequence[Hashable], known: Mapping[int, int] | None = None
) -> dict[int, int]:
    """Indices of equal keys wherever they stand, the first with the first; old → new, without those `known`."""
    known = known or {}
    places: dict[Hashable, list[int]] = {}
    paired = set(known.values())
    for number, key in enumerate(new):
        if number not in paired:
            places.setdefault(key, []).append(number)
    return {number: places[key].pop(0) for number, key in enumerate(old) if number not in known and places.get(key)}


TextPart = tuple[Literal["same", "gone", "new"], str]


def diff_texts(old: str, new: str) -> list[TextPart]:
    """The parts of both texts in order: the same and new ones make `new`, the same and gone ones `old`.

    By lines, and inside lines that changed by words.
    """
    filled = [part for part in _diff_pieces(LINE.split(old), LINE.split(new), is_words=False) if part[1]]
    return [(kind, "".join(text for _, text in group)) for kind, group in groupby(filled, key=lambda part: part[0])]


def _diff_pieces(old: list[str], new: list[str], is_words: bool) -> Iterator[TextPart]:
    head = first_difference(old, new)
    tail = first_difference(old[head:][::-1], new[head:][::-1])
    yield "same", "".join(old[:head])
    middle, changed = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(middle), len(changed)) > MOST_PIECES:
        yield from (("gone", "".join(middle)), ("new", "".join(changed)))
    else:
        for kind, i, j, k, m in opcodes(middle, changed):
            was, now = "".join(middle[i:j]), "".join(changed[k:m])
            if kind == "equal":
                yield "same", was
            elif kind == "replace" and not is_words:
                yield from _diff_pieces(WORD.findall(was), WORD.findall(now), is_words=True)
            else:
                yield from (("gone", was), ("new", now))
    yield "same", "".join(old[len(old) - tail :])


def texts(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(path within, text) of every text in a block, in order; its type and names of keys are none."""
    for key, inner in content.items():
        if key not in ("type", "cache_control"):
            yield from _texts(key, inner)


def _texts(path: str, inner: object) -> Iterator[tuple[str, str]]:
    if isinstance(inner, str):
        yield path, inner
    elif isinstance(inner, Mapping | list):
        for key, item in inner.items() if isinstance(inner, Mapping) else enumerate(inner):
            yield from _texts(f"{path}.{key}", item)


def text_of(block: Block) -> str:
    """The text of a text block, or the JSON of any other block as sent."""
    content = block.content or {}
    text = content.get("text")
    return text if block.kind == "text" and isinstance(text, str) else dumps(content, ensure_ascii=False)


def value_text(content: Any) -> str:
    """A string as it is, any other value as JSON."""
    return content if isinstance(content, str) else dumps(content, ensure_ascii=False)


class ChangedText(msgspec.Struct, frozen=True):
    """Where two texts first differ: at the character `at`, from 0. `path` is that of the text in its block."""

    path: str
    was: str
    now: str
    at: int

    @classmethod
    def find(cls, was: str, now: str, path: str = "") -> ChangedText:
        """The difference of two texts."""
        return cls(path, was, now, first_difference(was, now))


def first_changed_text(old: Block, new: Block) -> ChangedText | None:
    """The first text of a block that is another one than at its path before; None: none is, or none is known."""
    known = dict(texts(old.content or {}))
    changed = ((path, known[path], text) for path, text in texts(new.content or {}) if known.get(path, text) != text)
    return next((ChangedText.find(was, now, path) for path, was, now in changed), None)


def first_changed_block(old: Sequence[Block], new: Sequence[Block]) -> int:
    """The index of the first block that differs: how many both begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((at for at, (one, other) in pairs if one.digest != other.digest), min(len(old), len(new)))


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
    return sum(shared_ends(one, other)) / max(1, len(one), len(other))


def path(end: Prefix, after: int) -> list[Prefix]:
    """The prefixes of `end` that are more than `after` blocks long, in order."""
    nodes: list[Prefix] = []
    node: Prefix | None = end
    while node is not None and node.depth > after:
        if node.block is not None:
            nodes.append(node)
        node = node.parent
    return nodes[::-1]


def prefixes_back(end: Prefix) -> Iterator[Prefix]:
    """A prefix and all before it, the longest first; the root and the nodes of cache keys are among them."""
    node: Prefix | None = end
    while node is not None:
        yield node
        node = node.parent


def new_prefixes(end: Prefix, known: Container[Prefix]) -> tuple[list[Prefix], Prefix | None]:
    """The prefixes of `end` that are longer than all that are `known`, the longest first, and the longest known one."""
    new: list[Prefix] = []
    node: Prefix | None = end
    while node is not None and node not in known:
        new.append(node)
        node = node.parent
    return new, node


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
    kept: list[Prefix] = []
    versions: list[Prefix] = []
    blocks = [node.block.digest if node.block else b"" for node in before]
    others = [node.block.digest if node.block else b"" for node in now]
    for i, k in pair_in_order(blocks, others, 0):
        if i is None or k is None:
            continue
        old, new = before[i], now[k]
        if blocks[i] == others[k]:
            kept += [*versions, new]
            versions = []
        elif old.layer is new.layer and old.block and new.block and are_versions(old.block, new.block, new.layer):
            (versions if new.layer is Layer.MESSAGES else kept).append(new)
    went_on = any(node.block and node.block.role == "assistant" for node in now)
    if versions and versions[0] is now[0] and went_on:
        kept.append(versions[0])
    return kept
