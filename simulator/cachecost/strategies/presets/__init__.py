"""The named strategies: the primitives of each, its source, and the day the source was read.

To add one, list its primitives in order of priority, and name the page or file that documents it.
"""

from cachecost.strategies.agent import Agent
from cachecost.strategies.presets.frameworks import CODING, FRAMEWORKS
from cachecost.strategies.presets.making import (
    ARMS,
    BASE,
    CHEAPER_MODEL,
    CLAUDE_CODE,
    LEARNED,
    PATTERNS,
    PER_PROVIDER,
    PLANNED,
    SEEDS,
)

__all__ = ["ARMS", "BASE", "CHEAPER_MODEL", "PLACEMENTS", "PRESETS"]

PLACEMENTS = (*SEEDS, *PLANNED, *CLAUDE_CODE, *CODING, *FRAMEWORKS, *PATTERNS)
"""Strategies that differ in where their breakpoints go."""

PRESETS: dict[str, Agent] = {agent.name: agent for agent in (*PLACEMENTS, *LEARNED, *ARMS, *PER_PROVIDER)}
"""Every built-in strategy by name."""
