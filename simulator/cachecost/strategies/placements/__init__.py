"""Where breakpoints go: primitives that compose into placements.

A primitive says which blocks of a request it would breakpoint, best first; a `Placement` puts several in
order of priority, within a budget of slots. Nothing here counts tokens (a few go by an agent's own estimate)
or knows a provider, and no primitive walks further back than it must: `ThreadIndex` remembers what was walked before.
"""

from cachecost.strategies.placements.base import (
    ELIGIBLE,
    BlockChoice,
    Primitive,
    Spot,
    blocks_back,
    markable_blocks,
    within,
)
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
from cachecost.strategies.placements.placement import MAXIMUM_BREAKPOINTS, ORDER, BreakpointSet, Placement
from cachecost.strategies.placements.prefix import LastTool, SegmentEnd, SystemBlock
from cachecost.strategies.placements.stepping import EveryKBlocks, EveryKTokens, EveryKTurns, Sticky
from cachecost.strategies.placements.table import NAMES, PRIMITIVES, SHORTHANDS
from cachecost.strategies.placements.thread_index import ROLES, LatestMessage, Role, ThreadIndex, View

__all__ = [
    "ELIGIBLE",
    "MAXIMUM_BREAKPOINTS",
    "NAMES",
    "ORDER",
    "PRIMITIVES",
    "ROLES",
    "SHORTHANDS",
    "Adaptive",
    "AtMessage",
    "Automatic",
    "BeforeHuman",
    "BlockChoice",
    "BreakpointSet",
    "EveryKBlocks",
    "EveryKTokens",
    "EveryKTurns",
    "FirstN",
    "ForkPoint",
    "Freeze",
    "Hint",
    "Lag",
    "LastMessage",
    "LastN",
    "LastTool",
    "LatestMessage",
    "LongSegments",
    "OldestOver",
    "Placement",
    "PreviousHuman",
    "Primitive",
    "Role",
    "SegmentEnd",
    "Spot",
    "Sticky",
    "SystemBlock",
    "ThreadIndex",
    "TurnBoundary",
    "View",
    "blocks_back",
    "markable_blocks",
    "within",
]
