"""What differs between two versions of a call, and the call that lies between them, with some of it changed.

Two versions of a list stand beside each other: which items correspond, which came, which went, whether the order
changed. Tools correspond by their names, system blocks and messages by their order. Blocks without content are the same
where kind, role and size are: recordings made under different keys share no digest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from cachecost.base.structs import replace
from cachecost.changes.steps import PartPool
from cachecost.prompts.blocks import Block, Layer, Message, Part, Thread
from cachecost.prompts.compare import (
    are_versions,
    first_changed_block,
    first_changed_text,
    pair_anywhere,
    pair_in_order,
)
from cachecost.prompts.request import Breakpoint, Request

Item = TypeVar("Item")
CONTEXT = 12
"""Characters before a difference that tell whether it is the same in two messages, numbers left out."""
DIGITS = re.compile(r"\d+")
ChangeKind = Literal[
    "added", "removed", "changed", "reordered", "breakpoint_moved", "parameter_changed", "model_changed"
]


@dataclass(eq=False, slots=True)
class Slot(Generic[Item]):
    """An item before and now; None where a version has none. `edit` names the change of it; None: there is none."""

    old: Item | None
    new: Item | None
    edit: Hashable = None

    def item(self, made: Collection[Hashable]) -> Item | None:
        """The item after the changes `made`; None where it is not there (yet)."""
        return self.new if self.edit is None or self.edit in made else self.old


@dataclass(eq=False, slots=True)
class SlotList(Generic[Item]):
    """The slots of two versions, in the order of each. `moved` names the change of the order; None: there is none."""

    old: Sequence[Slot[Item]]
    new: Sequence[Slot[Item]]
    moved: Hashable = None

    @property
    def all(self) -> list[Slot[Item]]:
        """Every slot once, in the new order; what went stands where it stood."""
        return _merge(self.new, self.old)

    def edits(self) -> Iterable[Hashable]:
        return [edit for edit in (*(slot.edit for slot in self.all), self.moved) if edit is not None]

    def between(self, made: Collection[Hashable]) -> list[tuple[Slot[Item], Item]]:
        """The slots and items after the changes `made`, in order."""
        is_new_order = self.moved is None or self.moved in made
        slots = _merge(self.new, self.old) if is_new_order else _merge(self.old, self.new)
        return [(slot, item) for slot in slots if (item := slot.item(made)) is not None]


def _merge(base: Sequence[Slot[Item]], extra: Sequence[Slot[Item]]) -> list[Slot[Item]]:
    """`base`, and each slot that only `extra` has behind the one that it follows there."""
    merged, known = list(base), set(map(id, base))
    if len(known | set(map(id, extra))) == len(known):
        return merged
    at = 0
    for slot in extra:
        if id(slot) in known:
            at = next(number for number, one in enumerate(merged) if one is slot) + 1
        else:
            merged.insert(at, slot)
            at += 1
    return merged


Places = Mapping[Layer, Sequence[tuple[Slot[Any], Any]]]
"""The slots and items of each layer, in the order of a request."""


@dataclass(frozen=True, slots=True)
class SlotBreakpoint:
    """A breakpoint by the slot it is on. `index` is that of the block in its message, 0 in other layers; `from_end`
    counts the items behind it, and the blocks behind it in its message."""

    layer: Layer
    ttl: Any
    slot: Slot[Any]
    index: int
    from_end: tuple[int, int]

    def stayed(self, other: SlotBreakpoint) -> bool:
        return (self.layer, self.ttl) == (other.layer, other.ttl) and (
            self.from_end == other.from_end or (self.slot is other.slot and self.index == other.index)
        )


@dataclass(frozen=True, slots=True)
class BreakpointEdits:
    """The breakpoints before and now. `kept` pairs those that stayed."""

    old: Sequence[SlotBreakpoint]
    new: Sequence[SlotBreakpoint]
    kept: Sequence[tuple[SlotBreakpoint, SlotBreakpoint]]
    has_moved: bool

    @classmethod
    def of(cls, old: Request, new: Request, slots: Mapping[Layer, SlotList[Any]]) -> BreakpointEdits:
        before = [_anchor(old, one, slots[one.layer].old) for one in old.breakpoints]
        now = [_anchor(new, one, slots[one.layer].new) for one in new.breakpoints]
        kept, free = list[tuple[SlotBreakpoint, SlotBreakpoint]](), list(now)
        for one in before:
            alike = [other for other in free if one.stayed(other)]
            if alike:
                found = next((other for other in alike if other.slot is one.slot), alike[0])
                free.remove(found)
                kept.append((one, found))
        is_same = len(kept) == len(before) == len(now) and old.automatic == new.automatic
        return cls(before, now, kept, not is_same)

    def gone(self) -> list[SlotBreakpoint]:
        return [one for one in self.old if all(one is not old for old, _ in self.kept)]

    def come(self) -> list[SlotBreakpoint]:
        return [one for one in self.new if all(one is not new for _, new in self.kept)]

    def between(self, places: Places, nodes: Sequence[Thread], is_moved: bool) -> tuple[Breakpoint, ...]:
        """The breakpoints of a request with these items, in prompt order; `nodes` are those of its messages."""
        wanted = [[new, old] for old, new in self.kept] + [[one] for one in (self.come() if is_moved else self.gone())]
        by_place: dict[object, Breakpoint] = {}
        for anchors in wanted:  # on the first of these blocks that is there
            found = (
                (anchor, number, item)
                for anchor in anchors
                for number, (slot, item) in enumerate(places[anchor.layer])
                if slot is anchor.slot
            )
            if (first := next(found, None)) is not None:
                anchor, number, item = first
                made = Breakpoint(anchor.layer, number, anchor.ttl)
                if anchor.layer is Layer.MESSAGES:
                    index = min(anchor.index, len(item.blocks) - 1)
                    made = Breakpoint(anchor.layer, index, anchor.ttl, nodes[number])
                by_place[made.block_key] = made
        return tuple(sorted(by_place.values(), key=lambda one: one.prompt_order))


def _anchor(request: Request, one: Breakpoint, slots: Sequence[Slot[Any]]) -> SlotBreakpoint:
    if one.node is None or one.node.message is None:
        part = request.tools if one.layer is Layer.TOOLS else request.system
        return SlotBreakpoint(one.layer, one.ttl, slots[one.index], 0, (len(part.blocks) - one.index, 0))
    behind = request.thread.length - one.node.length, len(one.node.message.blocks) - one.index
    return SlotBreakpoint(one.layer, one.ttl, slots[one.node.length - 1], one.index, behind)


class Edit(NamedTuple):
    """The name of a change: the same in every call that has it. `name` says what of the layer, as far as it matters."""

    layer: str
    kind: ChangeKind
    name: Hashable = ""


MODEL = Edit("model", "model_changed")
BREAKPOINTS = Edit("breakpoints", "breakpoint_moved")
REORDERED = {layer: Edit(str(layer), "reordered") for layer in Layer}
BlockKey = Callable[[Block], Hashable]


def key_by_digest(block: Block) -> Hashable:
    """What a block is."""
    return block.digest


def key_by_shape(block: Block) -> Hashable:
    """What is known of a block whose digest was made under another key."""
    return block.kind, block.role, block.size


@dataclass(frozen=True, slots=True)
class RequestPair:
    """A request before and now, and the slots of its layers."""

    old: Request
    new: Request
    tools: SlotList[Block]
    system: SlotList[Block]
    messages: SlotList[Message]
    parameters: Mapping[str, Edit]
    """The change of each parameter that differs."""
    breakpoints: BreakpointEdits

    def edits(self) -> Iterator[Edit]:
        if self.old.model != self.new.model:
            yield MODEL
        for slots in (self.tools, self.system):
            yield from slots.edits()  # type: ignore[misc]
        yield from self.parameters.values()
        yield from self.messages.edits()  # type: ignore[misc]
        if self.breakpoints.has_moved:
            yield BREAKPOINTS


def pair_requests(old: Request, new: Request, key: BlockKey) -> RequestPair:
    """Both versions of a request beside each other."""
    was, now = old.tools.blocks, new.tools.blocks
    pairs = pair_anywhere(list(map(key, was)), list(map(key, now)))
    pairs |= _pair_rest(was, now, pairs, lambda one, other: name_of(one) == name_of(other) != "")
    pairs |= _pair_rest(was, now, pairs, lambda one, other: are_versions(one, other, Layer.TOOLS))
    tools = _slots(was, now, pairs, Layer.TOOLS, key, lambda slot, number: name_of(slot.new or slot.old) or number)
    was, now = old.system.blocks, new.system.blocks
    pairs = pair_anywhere(list(map(key, was)), list(map(key, now)))
    pairs |= _pair_rest(was, now, pairs, lambda one, other: are_versions(one, other, Layer.SYSTEM))
    if len(was) == len(now):
        pairs |= _pair_rest(was, now, pairs, lambda one, other: (one.kind, one.role) == (other.kind, other.role))
    system = _slots(was, now, pairs, Layer.SYSTEM, key, lambda slot, number: number)

    def message_key(message: Message) -> Hashable:
        return message.role, tuple(map(key, message.blocks))

    before, after = old.thread.messages(), new.thread.messages()
    pairs = {
        one: other
        for one, other in pair_in_order(list(map(message_key, before)), list(map(message_key, after)))
        if one is not None and other is not None and before[one].role == after[other].role
    }
    messages = _slots(before, after, pairs, Layer.MESSAGES, message_key, _message_name)
    names = dict.fromkeys([*old.params, *new.params])
    changed = [name for name in names if dumps(old.params.get(name)) != dumps(new.params.get(name))]
    return RequestPair(
        old,
        new,
        tools,
        system,
        messages,
        {name: Edit("parameters", "parameter_changed", name) for name in changed},
        BreakpointEdits.of(old, new, {Layer.TOOLS: tools, Layer.SYSTEM: system, Layer.MESSAGES: messages}),
    )


def _pair_rest(
    old: Sequence[Block], new: Sequence[Block], pairs: Mapping[int, int], matches: Callable[[Block, Block], bool]
) -> dict[int, int]:
    """Of the items without a counterpart, each with the first that matches it."""
    free = [number for number in range(len(new)) if number not in pairs.values()]
    found: dict[int, int] = {}
    for number in (number for number in range(len(old)) if number not in pairs):
        match = next((at for at in free if matches(old[number], new[at])), None)
        if match is not None:
            free.remove(match)
            found[number] = match
    return found


def _slots(
    old: Sequence[Any],
    new: Sequence[Any],
    pairs: Mapping[int, int],
    layer: Layer,
    key: Callable[[Any], Hashable],
    name: Callable[[Slot[Any], int], Hashable],
) -> SlotList[Any]:
    by_old = {one: Slot(old[one], new[other]) for one, other in pairs.items()}
    by_new = {pairs[one]: slot for one, slot in by_old.items()}
    before = [by_old.get(number) or Slot(item, None) for number, item in enumerate(old)]
    now = [by_new.get(number) or Slot(None, item) for number, item in enumerate(new)]
    for slots, is_new in ((now, True), (before, False)):
        for number, slot in enumerate(slots):
            kind: ChangeKind | None = "changed"
            if slot.old is None or slot.new is None:
                kind = "added" if slot.old is None else "removed"
            elif not is_new or key(slot.old) == key(slot.new):
                kind = None
            if kind:
                slot.edit = Edit(str(layer), kind, name(slot, number))
    order = [pairs[number] for number in sorted(pairs)]
    return SlotList(before, now, REORDERED[layer] if order != sorted(order) else None)


def name_of(item: object) -> str:
    """The name of a block; "" of anything else."""
    name = (item.content or {}).get("name") if isinstance(item, Block) else None
    return name if isinstance(name, str) else ""


def _message_name(slot: Slot[Message], number: int) -> Hashable:
    """One name for messages that change in the same place of the same text, such as a time in each of them."""
    if slot.old is None or slot.new is None:
        return "messages"
    blocks, others = slot.old.blocks, slot.new.blocks
    at = first_changed_block(blocks, others)
    found = first_changed_text(blocks[at], others[at]) if at < min(len(blocks), len(others)) else None
    if found is None:
        return slot.new.role, number
    return slot.new.role, found.path, DIGITS.sub("", found.now[max(0, found.at - CONTEXT) : found.at])


@dataclass(slots=True)
class EditedRequestBuilder:
    """Builds the requests between two versions; what they share is one object, as the simulation expects."""

    _parts: PartPool = field(default_factory=PartPool)
    _root: Thread = field(default_factory=Thread)

    def between(self, pair: RequestPair, made: Collection[Edit]) -> Request:
        """The request after the changes `made`."""
        messages = pair.messages.between(made)
        node, nodes = self._root, list[Thread]()
        for _, message in messages:
            node = node.then(message)
            nodes.append(node)
        tools, system = pair.tools.between(made), pair.system.between(made)
        layers: Places = {Layer.TOOLS: tools, Layer.SYSTEM: system, Layer.MESSAGES: messages}
        is_moved = BREAKPOINTS in made
        lead = pair.new if is_moved or not pair.breakpoints.has_moved else pair.old
        params = pair.new.params
        if waiting := [name for name, edit in pair.parameters.items() if edit not in made]:
            params = {name: value for name, value in params.items() if name not in waiting}
            params |= {name: pair.old.params[name] for name in waiting if name in pair.old.params}
        return replace(
            pair.new,
            model=pair.new.model if MODEL in made else pair.old.model,
            thread=node,
            tools=self._part([block for _, block in tools], pair.new.tools),
            system=self._part([block for _, block in system], pair.new.system),
            breakpoints=pair.breakpoints.between(layers, nodes, is_moved),
            automatic=lead.automatic,
            fault=lead.fault,
            params=params,
        )

    def _part(self, blocks: Sequence[Block], new: Part) -> Part:
        """The part of these blocks; that of the new request where it has the same."""
        is_new = b"".join(block.digest for block in blocks) == new.digest
        return new if is_new else self._parts.of(blocks)
