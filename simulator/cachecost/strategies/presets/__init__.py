"""The named strategies: the primitives of each, its source, and the day the source was read.

To add one, list its primitives in order of priority, and name the page or file that documents it.
"""

from cachecost.strategies.agent import Agent
from cachecost.strategies.presets.adaptive import LEARNED
from cachecost.strategies.presets.arms import ARMS, CHEAPER_MODEL
from cachecost.strategies.presets.claude_code import CLAUDE_CODE
from cachecost.strategies.presets.coding import CODING
from cachecost.strategies.presets.frameworks import FRAMEWORKS
from cachecost.strategies.presets.making import BASE
from cachecost.strategies.presets.patterns import PATTERNS
from cachecost.strategies.presets.per_provider import PER_PROVIDER
from cachecost.strategies.presets.seeds import PLANNED, SEEDS

__all__ = ["ARMS", "BASE", "CHEAPER_MODEL", "PLACEMENTS", "PRESETS"]

PLACEMENTS = (*SEEDS, *PLANNED, *CLAUDE_CODE, *CODING, *FRAMEWORKS, *PATTERNS)
"""Strategies that differ in where their breakpoints go."""

PRESETS: dict[str, Agent] = {agent.name: agent for agent in (*PLACEMENTS, *LEARNED, *ARMS, *PER_PROVIDER)}
"""Every built-in strategy by name."""
