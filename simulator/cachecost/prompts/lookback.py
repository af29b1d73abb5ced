"""The lookback of a breakpoint (rule 9)."""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.prompts.blocks import Prefix
from cachecost.providers.rules import ModelRules


def lookback_steps(breakpoint: Prefix, node: Prefix, rules: ModelRules) -> int:
    """Positions from the breakpoint `breakpoint` back to `node` (0 for its own); negative where `node` comes after
    it.
    """
    return breakpoint.position - node.position if rules.collapses_runs else breakpoint.depth - node.depth


def is_within_lookback(breakpoint: Prefix, node: Prefix, rules: ModelRules) -> bool:
    """Whether a breakpoint at `breakpoint` finds an entry at `node`, a prefix of the same prompt."""
    return 0 <= lookback_steps(breakpoint, node, rules) < rules.lookback_positions


def lookback_window(breakpoint: Prefix, rules: ModelRules) -> Iterator[Prefix]:
    """The prefixes at which a breakpoint looks for an entry, from its own position backwards."""
    node: Prefix | None = breakpoint
    while node is not None and lookback_steps(breakpoint, node, rules) < rules.lookback_positions:
        if node.block:
            yield node
        node = node.parent
