"""The lookback of a breakpoint (rule 9)."""

from __future__ import annotations

from collections.abc import Iterator

from cachecost.prompts.blocks import Prefix
from cachecost.providers.rules import ModelRules


def lookback_steps(mark: Prefix, node: Prefix, rules: ModelRules) -> int:
    """Positions from the breakpoint `mark` back to `node` (0 for its own); negative where `node` comes after it."""
    return mark.position - node.position if rules.collapses_runs else mark.depth - node.depth


def is_within_lookback(mark: Prefix, node: Prefix, rules: ModelRules) -> bool:
    """Whether a breakpoint at `mark` finds an entry at `node`, a prefix of the same prompt."""
    return 0 <= lookback_steps(mark, node, rules) < rules.lookback_positions


def lookback_window(mark: Prefix, rules: ModelRules) -> Iterator[Prefix]:
    """The prefixes at which a breakpoint looks for an entry, from its own position backwards."""
    node: Prefix | None = mark
    while node is not None and lookback_steps(mark, node, rules) < rules.lookback_positions:
        if node.block:
            yield node
        node = node.parent
