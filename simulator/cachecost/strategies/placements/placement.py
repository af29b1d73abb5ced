"""The breakpoints of a request: primitives in order of priority, within a number of slots.

Every primitive by the name a scenario gives it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cachecost.prompts.blocks import Layer
from cachecost.prompts.request import TTL, Breakpoint
from cachecost.strategies.placements.moving import (
    Adaptive,
    AtMessage,
    Automatic,
    BeforeHuman,
    EveryKBlocks,
    EveryKTokens,
    EveryKTurns,
    FirstN,
    ForkPoint,
    Freeze,
    Hint,
    Lag,
    LastMessage,
    LastN,
    LastTool,
    LongSegments,
    OldestOver,
    PreviousHuman,
    Primitive,
    SegmentEnd,
    Spot,
    Sticky,
    SystemBlock,
    TurnBoundary,
    View,
)

PRIMITIVES: dict[str, type[Primitive]] = {
    "adaptive": Adaptive,
    "at_message": AtMessage,
    "automatic": Automatic,
    "before_human": BeforeHuman,
    "every_k_blocks": EveryKBlocks,
    "every_k_tokens": EveryKTokens,
    "every_k_turns": EveryKTurns,
    "first_n": FirstN,
    "fork_point": ForkPoint,
    "freeze": Freeze,
    "hint": Hint,
    "lag": Lag,
    "last_message": LastMessage,
    "last_n": LastN,
    "last_tool": LastTool,
    "long_segments": LongSegments,
    "oldest_over": OldestOver,
    "previous_human": PreviousHuman,
    "segment_end": SegmentEnd,
    "sticky": Sticky,
    "system_block": SystemBlock,
    "turn_boundary": TurnBoundary,
}

NAMES = {primitive: name for name, primitive in PRIMITIVES.items()}

SHORTHANDS: dict[str, Primitive] = {
    "each_system": SystemBlock("each"),
    "first_system": SystemBlock("first"),
    "last_system": SystemBlock("last"),
}
"""Names for a primitive with its option; they take a `ttl` only."""


MAXIMUM_BREAKPOINTS = 4
"""The API's limit, automatic caching included (rule 6)."""
ORDER = {Layer.TOOLS: 0, Layer.SYSTEM: 1, Layer.MESSAGES: 2}


class BreakpointSet(NamedTuple):
    """The breakpoints of a request in prompt order, and the TTL of its top-level `cache_control`."""

    breakpoints: tuple[Breakpoint, ...]
    automatic: TTL | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Primitives in order of priority, and what happens when the slots run out.

    A block that two primitives choose gets one breakpoint, with the TTL of the first. `automatic` keeps
    a slot for itself. Of the rest the first in order stay (`trim` "priority"), or the oldest breakpoints in
    messages go first ("oldest_message"). More than four `slots` is for agents that overflow. A thread of
    fewer than `from_message` messages gets no breakpoints at all.
    """

    primitives: tuple[Primitive, ...] = ()
    ttl: TTL = "5m"
    slots: int = MAXIMUM_BREAKPOINTS
    trim: Literal["priority", "oldest_message"] = "priority"
    from_message: int = 0

    def place(self, view: View) -> BreakpointSet:
        """The breakpoints for one request."""
        if view.thread.length < self.from_message:
            return BreakpointSet((), None)
        found: dict[Spot, Breakpoint] = {}
        for primitive in self.primitives:
            ttl = self.ttl_of(primitive)
            for spot in primitive.spots(view):
                if spot not in found:
                    layer, node, index = spot
                    found[spot] = Breakpoint(layer, index, ttl, node)
        automatic = self.automatic
        kept = self._trim(found.values(), max(self.slots - (automatic is not None), 0))
        return BreakpointSet(tuple(sorted(kept, key=_place_of) if len(kept) > 1 else kept), automatic)

    @property
    def most(self) -> int:
        """How many breakpoints the primitives can choose, as far as they say: more than `slots` are not sent."""
        return sum(each.n if isinstance(each, LastN) else 1 for each in self.primitives)

    @property
    def automatic(self) -> TTL | None:
        for each in self.primitives:
            if isinstance(each, Automatic):
                return self.ttl_of(each)
        return None

    def ttl_of(self, primitive: Primitive) -> TTL:
        return primitive.ttl or self.ttl

    def _trim(self, breakpoints: Iterable[Breakpoint], room: int) -> list[Breakpoint]:
        kept = list(breakpoints)
        if self.trim == "oldest_message" and len(kept) > room:
            inside = sorted((breakpoint for breakpoint in kept if breakpoint.node is not None), key=_place_of)
            oldest = inside[: len(kept) - room]
            kept = [breakpoint for breakpoint in kept if breakpoint not in oldest]
        return kept[:room]

    def ttl_error(self) -> str | None:
        """Why the API would refuse these TTLs on any request; None where it depends on the request."""
        by_rank = sorted(self.primitives, key=lambda each: each.rank)
        for number, before in enumerate(by_rank):
            for after in by_rank[number + 1 :]:
                if fault := self._pair_fault(before, after):
                    return fault
        return None

    def _pair_fault(self, before: Primitive, after: Primitive) -> str | None:
        one, other = self.ttl_of(before), self.ttl_of(after)
        names = f"{NAMES[type(before)]} at {one} and {NAMES[type(after)]} at {other}"
        if before.rank < after.rank and (one, other) == ("5m", "1h"):
            return f"{names}: a 1h breakpoint must not come after a 5m one"
        if _is_tail(before) and _is_tail(after) and one != other:
            return f"{names}: they breakpoint the same block, which can have one TTL only"
        return None


def _is_tail(primitive: Primitive) -> bool:
    return isinstance(primitive, Automatic) or primitive == LastMessage("last", ttl=primitive.ttl)


def _place_of(breakpoint: Breakpoint) -> tuple[int, int, int]:
    return ORDER[breakpoint.layer], breakpoint.node.length if breakpoint.node else 0, breakpoint.index
