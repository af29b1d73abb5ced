"""The future use of a call's blocks: which later calls contain them, and where those diverge from this one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cachecost.analysis.optimum.tree import BlockNode, BlockTree, CallPass, Tail
from cachecost.prompts.blocks import Prefix

FAR = 400
"""The number of calls to examine for the next one that diverges at a block."""


@dataclass(frozen=True, slots=True)
class BlockRange:
    """Blocks of a call that the same later calls contain: from just after `start` (None: the first) down to `end`.

    `later` are those calls. `parting_s` is the start of the next call that shares these and no more (None: none does).
    """

    end: BlockNode
    start: BlockNode | None
    later: Tail | None
    parting_s: float | None


class FutureUse:
    """Finds the later calls of each block, once for all plans. Costs least where calls are asked for in their order.

    `events` are the first passes of all calls.
    """

    def __init__(self, tree: BlockTree) -> None:
        self.events = {event.sent: event for event in reversed(tree.events)}
        self._stops: dict[Prefix, BlockNode | None] = {}
        self._cursors: dict[Prefix, tuple[int, Tail | None]] = {}
        self._known: dict[CallPass, list[BlockRange]] = {}
        self._tree = tree
        for node in tree.nodes.values():
            self._stops[node.prefix] = self._stop(node.parent)

    def _stop(self, node: BlockNode | None) -> BlockNode | None:
        """The next block up where calls diverge: several blocks follow it, or a later call ends there."""
        if node is None or self._is_stop(node):
            return node
        return self._stops[node.prefix]

    def _is_stop(self, node: BlockNode) -> bool:
        if len(node.children) > 1:
            return True
        first = node.children[0].above if node.children else None
        return bool(node.ends) and first is not None and node.ends[-1].number > first.event.number

    def ranges(self, event: CallPass) -> list[BlockRange]:
        """The blocks of a call that can be cached, from the deepest up."""
        known = self._known.get(event)
        if known is None:
            known = self._known[event] = list(self._iter_ranges(event))
        return known

    def _iter_ranges(self, event: CallPass) -> Iterator[BlockRange]:
        node = self._tree.node(event.deepest)
        below: Tail | None = None
        while node is not None:
            later = self._after(node, event.number)
            start = self._stops[node.prefix]
            yield BlockRange(node, start, later, _parting(later, below))
            node, below = start, later

    def _after(self, node: BlockNode, number: int) -> Tail | None:
        """The calls through `node` after the `number`-th."""
        asked, tail = self._cursors.get(node.prefix, (-1, node.above))
        if number < asked:
            tail = node.above
        while tail is not None and tail.event.number <= number:
            tail = tail.next
        self._cursors[node.prefix] = number, tail
        return tail


def _parting(mine: Tail | None, below: Tail | None) -> float | None:
    """The start of the first call that does not contain the blocks below."""
    for _ in range(FAR):
        if mine is None:
            return None
        if mine is below:
            return None
        if below is None or mine.event.number != below.event.number:
            return mine.event.start
        mine, below = mine.next, below.next
    return None
