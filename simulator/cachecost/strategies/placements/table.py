"""Every primitive by the name a scenario gives it."""

from __future__ import annotations

from cachecost.strategies.placements.base import Primitive
from cachecost.strategies.placements.fixed import AtMessage, FirstN, Freeze, OldestOver
from cachecost.strategies.placements.learned import Adaptive, ForkPoint, LongSegments
from cachecost.strategies.placements.moving import (
    Automatic,
    BeforeHuman,
    Hint,
    Lag,
    LastMessage,
    LastN,
    PreviousHuman,
    TurnBoundary,
)
from cachecost.strategies.placements.prefix import LastTool, SegmentEnd, SystemBlock
from cachecost.strategies.placements.stepping import EveryKBlocks, EveryKTokens, EveryKTurns, Sticky

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
