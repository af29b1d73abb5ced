"""What a plan in the making has cached, as the planner keeps it beside the cache."""

from __future__ import annotations

from collections.abc import Iterable

from cachecost.analysis.optimum.plan_evaluator import Sent, can_mark
from cachecost.analysis.optimum.tree import Event
from cachecost.analysis.optimum.ttls import Held, is_ready, lifetime
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.lookback import is_within_lookback


class Entries:
    """What the plan has written so far: lifetimes and last touches, as the cache has them."""

    def __init__(self) -> None:
        self.held: dict[Prefix, Held] = {}

    def alive(self, prefix: Prefix, sent: Sent) -> Held | None:
        held = self.held.get(prefix)
        if held is None or not is_ready(held, sent.start):
            return None
        return held if sent.start - held.touched < lifetime(sent, held.ttl) else None


def markable(prefix: Prefix) -> Prefix | None:
    """The block, or the nearest before it that may carry a mark."""
    node: Prefix | None = prefix
    while node is not None and not can_mark(node):
        node = node.parent
    return node


def reaches(event: Event, marks: Iterable[Prefix], hit: Prefix) -> bool:
    """Whether the lookback from one of the marks finds the hit (rule 9)."""
    return any(is_within_lookback(mark, hit, event.sent.rules) for mark in marks)
