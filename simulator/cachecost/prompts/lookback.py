"""The lookback of a breakpoint (rule 9)."""

from __future__ import annotations

from cachecost.prompts.blocks import Prefix
from cachecost.providers.rules import ModelRules


def lookback_steps(mark: Prefix, node: Prefix, rules: ModelRules) -> int:
    """Positions from the breakpoint `mark` back to `node` (0 for its own); negative where `node` comes after it."""
    return mark.position - node.position if rules.collapses_runs else mark.depth - node.depth
