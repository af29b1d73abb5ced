"""The differences between two recordings, call by call (in conversations: event by event).

Calls are aligned by their requests, so an additional call in the middle is one difference. A call that differs is shown
with its first different block and every different field: times, parameters, breakpoints, usage. Names and sources of
the recordings are not compared. Recordings that share no block (content-free under different keys, or only one with
content) are compared by kind, role and size of their blocks; text is not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import chain, takewhile, zip_longest
from json import dumps
from pathlib import Path
from typing import Any

from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.editing.diff_items import (
    DiffItem,
    Identity,
    ItemBuilder,
    PlacedBlock,
    by_shape,
    place_name,
)
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.model import Conversation
from cachecost.conversations.readers.detect import CONVERSATIONS, detect, read_calls, read_conversation
from cachecost.prompts.blocks import Block

BY_SHAPE = "they share no block (different keys?): blocks are compared by kind, role and size; text is not compared"


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A call that differs, or that only one recording has.

    `a` and `b` are its numbers (None: missing). `place` is the first different block (None: none differs), `was` and
    `now` the two blocks there (None: no block); `fields` are the different fields, in both.
    """

    a: int | None
    b: int | None
    place: str | None = None
    was: Block | None = None
    now: Block | None = None
    fields: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    description: str = ""
    """Describes a call that is only in one recording."""


@dataclass(frozen=True, slots=True)
class Diff:
    """`kind` is "call" or "event"; `calls` how many each recording has; `equal` how many are equal in all."""

    kind: str
    calls: tuple[int, int]
    equal: int
    changes: list[ItemChange]
    notes: list[str]

    @property
    def is_equal(self) -> bool:
        return not self.changes


def diff_files(a: Path, b: Path, format_: str = "auto", warn: Warn = quiet) -> Diff:
    """The differences between two files of one kind. Raises InputError."""
    if detect(a, format_, "request-log")[0] in CONVERSATIONS:
        return diff_conversations(read_conversation(a, format_, warn), read_conversation(b, format_, warn))
    return diff_calls(list(read_calls(a, format_, warn)), list(read_calls(b, format_, warn)))


def diff_calls(a: Sequence[RecordedCall], b: Sequence[RecordedCall]) -> Diff:
    """The differences between the calls of two recordings."""
    items, notes = _items(_blocks_of_calls(a), _blocks_of_calls(b))
    return _diff("call", items.of_calls(a), items.of_calls(b), notes, items.identity)


def diff_conversations(a: Conversation, b: Conversation) -> Diff:
    """The differences between two conversations: their heads (event 0) and events."""
    items, notes = _items(_blocks_of_conversation(a), _blocks_of_conversation(b))
    return _diff("event", items.of_conversation(a), items.of_conversation(b), notes, items.identity)


def _items(a: Iterable[Block], b: Iterable[Block]) -> tuple[ItemBuilder, list[str]]:
    ours, theirs = ({block.digest: block for block in blocks} for blocks in (a, b))
    bare = any(block.content is None for block in chain(ours.values(), theirs.values()))
    if bare and ours and theirs and ours.keys().isdisjoint(theirs):
        return ItemBuilder(by_shape, words=False), [BY_SHAPE]
    return ItemBuilder(), []


def _blocks_of_calls(calls: Iterable[RecordedCall]) -> Iterator[Block]:
    seen: set[Any] = set()
    for call in calls:
        new = list(takewhile(lambda node: node not in seen, call.request.thread.back()))
        seen.update(new)
        messages = (node.message.blocks for node in new if node.message)
        yield from chain(call.request.tools.blocks, call.request.system.blocks, *messages, call.response)


def _blocks_of_conversation(conversation: Conversation) -> Iterator[Block]:
    return (spot.block for item in ItemBuilder().of_conversation(conversation) for spot in item.blocks())


def _diff(kind: str, a: list[DiffItem], b: list[DiffItem], notes: list[str], identity: Identity) -> Diff:
    pairs = [(one, other, _change(one, other, identity)) for one, other in _pairs(a, b)]
    equal = sum(change is None and one is not None and one.number > 0 for one, _, change in pairs)
    changes = [change for _, _, change in pairs if change]
    return Diff(kind, (_count_numbered(a), _count_numbered(b)), equal, changes, notes)


def _count_numbered(items: list[DiffItem]) -> int:
    return sum(item.number > 0 for item in items)


def _pairs(a: list[DiffItem], b: list[DiffItem]) -> Iterator[tuple[DiffItem | None, DiffItem | None]]:
    """Items that belong together: equal keys first; between those, in order."""
    ours, theirs = [item.key for item in a], [item.key for item in b]
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs, strict=False)))
    left = min(len(a), len(b)) - head
    back = zip(reversed(ours), reversed(theirs), strict=False)
    tail = min(left, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], back)))
    yield from zip(a[:head], b[:head], strict=True)
    inner_a, inner_b = a[head : len(a) - tail], b[head : len(b) - tail]
    matcher = SequenceMatcher(None, [one.key for one in inner_a], [one.key for one in inner_b], autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        yield from zip_longest(inner_a[start:end], inner_b[other_start:other_end])
    yield from zip(a[len(a) - tail :], b[len(b) - tail :], strict=True)


def _change(a: DiffItem | None, b: DiffItem | None, identity: Identity) -> ItemChange | None:
    if a is None or b is None:
        return ItemChange(a.number if a else None, b.number if b else None, description=_describe(a or b))
    fields = {
        name: (a.fields.get(name), b.fields.get(name))
        for name in dict.fromkeys([*a.fields, *b.fields])
        if dumps(a.fields.get(name)) != dumps(b.fields.get(name))
    }
    if a.key == b.key and a.answer == b.answer:
        return ItemChange(a.number, b.number, fields=fields) if fields else None
    return ItemChange(a.number, b.number, *_first_difference(a.blocks(), b.blocks(), identity), fields)


def _first_difference(
    a: Iterator[PlacedBlock], b: Iterator[PlacedBlock], identity: Identity
) -> tuple[str | None, Block | None, Block | None]:
    for one, other in zip_longest(a, b):
        if other is None or (one is not None and one.place < other.place):
            return place_name(one.place), one.block, None
        if one is None or other.place < one.place:
            return place_name(other.place), None, other.block
        if identity(one.block) != identity(other.block):
            return place_name(one.place), one.block, other.block
    return None, None, None


def _describe(item: DiffItem | None) -> str:
    fields = item.fields if item else {}
    messages = fields.get("messages")
    parts = (fields.get("event"), fields.get("model"), f"{messages} messages" if messages is not None else None)
    return ", ".join(str(one) for one in parts if one)
