"""The breakpoints of two versions of a request: which stayed where they were, and where they stand in between.

A breakpoint stayed if it is on the same block, or as many blocks from the end of its layer: one on the last tool stays
there when a tool is added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachecost.budgets.slots import Slot, SlotList
from cachecost.prompts.blocks import Layer, Thread
from cachecost.prompts.request import Breakpoint, Request

Places = Mapping[Layer, Sequence[tuple[Slot[Any], Any]]]
"""The slots and items of each layer, in the order of a request."""


@dataclass(frozen=True, slots=True)
class SlotBreakpoint:
    """A breakpoint by the slot it is on. `index` is that of the block in its message, 0 in other layers; `from_end`
    counts the items behind it, and the blocks behind it in its message.
    """

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
        kept = list(_pairs(before, now))
        is_same = len(kept) == len(before) == len(now) and old.automatic == new.automatic
        return cls(before, now, kept, not is_same)

    def gone(self) -> list[SlotBreakpoint]:
        """Those that are no longer there."""
        return [one for one in self.old if all(one is not old for old, _ in self.kept)]

    def come(self) -> list[SlotBreakpoint]:
        """Those that were not there."""
        return [one for one in self.new if all(one is not new for _, new in self.kept)]

    def between(self, places: Places, nodes: Sequence[Thread], is_moved: bool) -> tuple[Breakpoint, ...]:
        """The breakpoints of a request with these items, in prompt order; `nodes` are those of its messages."""
        wanted = [[new, old] for old, new in self.kept] + [[one] for one in (self.come() if is_moved else self.gone())]
        found = (_place(anchors, places, nodes) for anchors in wanted)
        by_place = {one.block_key: one for one in found if one is not None}
        return tuple(sorted(by_place.values(), key=lambda one: one.prompt_order))


def _anchor(request: Request, one: Breakpoint, slots: Sequence[Slot[Any]]) -> SlotBreakpoint:
    if one.node is None or one.node.message is None:
        part = request.tools if one.layer is Layer.TOOLS else request.system
        return SlotBreakpoint(one.layer, one.ttl, slots[one.index], 0, (len(part.blocks) - one.index, 0))
    behind = request.thread.length - one.node.length, len(one.node.message.blocks) - one.index
    return SlotBreakpoint(one.layer, one.ttl, slots[one.node.length - 1], one.index, behind)


def _pairs(
    before: Sequence[SlotBreakpoint], now: Sequence[SlotBreakpoint]
) -> Iterator[tuple[SlotBreakpoint, SlotBreakpoint]]:
    free = list(now)
    for one in before:
        same = next((other for other in free if other.slot is one.slot and one.stayed(other)), None)
        found = same or next((other for other in free if one.stayed(other)), None)
        if found is not None:
            free.remove(found)
            yield one, found


def _place(anchors: Sequence[SlotBreakpoint], places: Places, nodes: Sequence[Thread]) -> Breakpoint | None:
    """A breakpoint on the first of these blocks that is there; None where none is."""
    for anchor in anchors:
        for number, (slot, item) in enumerate(places[anchor.layer]):
            if slot is anchor.slot:
                if anchor.layer is not Layer.MESSAGES:
                    return Breakpoint(anchor.layer, number, anchor.ttl)
                last = len(item.blocks) - 1
                return Breakpoint(anchor.layer, min(anchor.index, last), anchor.ttl, nodes[number])
    return None
