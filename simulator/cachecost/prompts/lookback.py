"""How far back a breakpoint looks (rule 9)."""

from __future__ import annotations

from cachecost.prompts.blocks import Prefix
from cachecost.providers.rules import ModelRules


def lookback_steps(mark: Prefix, node: Prefix, rules: ModelRules) -> int:
    """Positions from `mark` back to `node`, the mark's own being 0 away; below 0 where `node` comes after it."""
    return mark.position - node.position if rules.collapses_runs else mark.depth - node.depth
