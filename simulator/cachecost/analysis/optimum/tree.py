"""Which calls contain a block with its prefix, as lists that share their ends, and where later calls diverge.

A `Tail` is a list of calls in time order, built from its end and interned: equal lists are one object, and the list of
a block is mostly the rest of its parent's. So what is worked out for one block serves all blocks with the same future.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import Literal, NamedTuple

from cachecost.analysis.optimum.plan_evaluator import BareCall, deepest
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.passes import pass_times
from cachecost.prompts.request import TTL


@dataclass(frozen=True, slots=True, eq=False)
class CallPass:
    """A pass of a call: when it starts and first answers, and the deepest block of it that can be cached (None: none).

    `known` is the deepest block of it that an earlier pass has, too; `number` counts passes from 0 in the order made.
    """

    number: int
    sent: BareCall
    index: int
    start: float
    first_token_s: float
    deepest: Prefix | None
    known: Prefix | None

    def tokens(self, prefix: Prefix) -> int:
        """Tokens up to and with `prefix`, as this pass is billed."""
        return self.sent.passes[self.index].sizes.of(prefix)


class BlockInCall(NamedTuple):
    """What sets a call apart from the others that contain a block.

    `tokens` are those of the block there, 1 where it is as long in every call, and `least` the fewest in any call or
    ping. `warm` is the TTL of what was cached of it before the recording began and this call sent it first (None:
    nothing was). `held` is what a bill does to it there: it may be "read", whatever a plan cached, or what was cached
    is "lost" to this call.
    """

    tokens: int = 1
    least: int = 1
    warm: TTL | None = None
    held: Literal["read", "lost"] | None = None


ANY_CALL = BlockInCall()


class Tail:
    """A call that contains the block, then the later ones, and what the call can do for the block:

    `may_extend`: something deeper can be cached in the same call, so that a 1h breakpoint there makes the block
    live an hour without being paid for again. `may_be_extended`: the same for a ping before it, which repeats what
    was sent. `times` is what one token is in the later calls, where they are shared with blocks of other lengths.
    """

    __slots__ = ("block", "event", "may_be_extended", "may_extend", "next", "times")

    def __init__(
        self,
        event: CallPass,
        may_extend: bool,
        may_be_extended: bool,
        following: Tail | None,
        block: BlockInCall = ANY_CALL,
        times: int = 1,
    ) -> None:
        self.event = event
        self.may_extend = may_extend
        self.may_be_extended = may_be_extended
        self.next = following
        self.block = block
        self.times = times

    def __iter__(self) -> Iterator[Tail]:
        node: Tail | None = self
        while node is not None:
            yield node
            node = node.next


@dataclass(slots=True, eq=False)
class BlockNode:
    """A block that some call can cache, in the tree of such blocks.

    `above` is the list of calls through it as blocks before it see them, `own` as itself does.
    """

    prefix: Prefix
    parent: BlockNode | None
    children: list[BlockNode] = field(default_factory=list)
    ends: list[CallPass] = field(default_factory=list)
    begins: list[CallPass] = field(default_factory=list)
    above: Tail | None = None
    own: Tail | None = None


class BlockTree:
    """The blocks that can be cached, and the calls through each."""

    def __init__(self, sent: Sequence[BareCall]) -> None:
        self.nodes: dict[Prefix, BlockNode] = {}
        self.events: list[CallPass] = []
        self._interned: dict[tuple[int, bool, bool, int], Tail] = {}
        for one in sent:
            for index, moment in enumerate(pass_times(one.start, one.call.ready_s, len(one.passes))):
                self._enter(one, index, *moment)
        for node in reversed(list(self.nodes.values())):
            lists = [child.above for child in node.children if child.above is not None]
            own: Tail | None = None
            for event in reversed(node.ends):
                own = self._tail(event, True, True, own)
            node.above = self._merge_tails([*lists, own] if own is not None else lists)
            node.own = self._patch_tail(node, node.above)
        self._interned.clear()

    def node(self, prefix: Prefix | None) -> BlockNode | None:
        return self.nodes.get(prefix) if prefix is not None else None

    def _enter(self, sent: BareCall, index: int, start: float, first_token_s: float) -> None:
        last = deepest(sent.passes[index], sent.rules)
        new: list[Prefix] = []
        node = last
        while node is not None and node not in self.nodes:
            new.append(node)
            node = node.parent
        event = CallPass(len(self.events), sent, index, start, first_token_s, last, node if new else last)
        self.events.append(event)
        for prefix in reversed(new):
            parent = self.node(prefix.parent)
            made = self.nodes[prefix] = BlockNode(prefix, parent)
            if parent is not None:
                parent.children.append(made)
        if last is not None:
            self.nodes[last].ends.append(event)
        if node is not None:
            self.nodes[node].begins.append(event)

    def _tail(self, event: CallPass, may_extend: bool, may_be_extended: bool, following: Tail | None) -> Tail:
        key = (event.number, may_extend, may_be_extended, id(following))
        found = self._interned.get(key)
        if found is None:
            found = self._interned[key] = Tail(event, may_extend, may_be_extended, following)
        return found

    def _merge_tails(self, lists: list[Tail]) -> Tail | None:
        """All lists in time order; the rest of the one that is left last is shared."""
        waiting = [(one.event.number, one) for one in lists]  # no event is in two lists: tails are never compared
        heapify(waiting)
        taken: list[Tail] = []
        while len(waiting) > 1:
            first = waiting[0][1]
            taken.append(first)
            if first.next is None:
                heappop(waiting)
            else:
                heapreplace(waiting, (first.next.event.number, first.next))
        rest = waiting[0][1] if waiting else None
        for tail in reversed(taken):
            rest = self._tail(tail.event, tail.may_extend, tail.may_be_extended, rest)
        return rest

    def _patch_tail(self, node: BlockNode, tail: Tail | None) -> Tail | None:
        """The list for `node` itself: a call that ends with it cannot extend it, nor a keep-alive before a new one."""
        ends = {event.number for event in node.ends}
        begins = {event.number for event in node.begins}
        left = len(ends | begins)
        taken: list[Tail] = []
        while tail is not None and left:
            left -= tail.event.number in ends or tail.event.number in begins
            taken.append(tail)
            tail = tail.next
        for one in reversed(taken):
            number = one.event.number
            tail = self._tail(one.event, number not in ends, number not in begins and number not in ends, tail)
        return tail


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
            # The next block up where calls diverge: several blocks follow it, or a later call ends there.
            above = node.parent
            if above is not None and len(above.children) == 1:
                first = above.children[0].above
                if not above.ends or first is None or above.ends[-1].number <= first.event.number:
                    above = self._stops[above.prefix]
            self._stops[node.prefix] = above

    def ranges(self, event: CallPass) -> list[BlockRange]:
        """The blocks of a call that can be cached, from the deepest up."""
        known = self._known.get(event)
        if known is None:
            known = self._known[event] = []
            node = self._tree.node(event.deepest)
            below: Tail | None = None
            while node is not None:
                asked, later = self._cursors.get(node.prefix, (-1, node.above))
                later = node.above if event.number < asked else later
                while later is not None and later.event.number <= event.number:
                    later = later.next
                self._cursors[node.prefix] = event.number, later
                start = self._stops[node.prefix]
                known.append(BlockRange(node, start, later, _parting(later, below)))
                node, below = start, later
        return known


def _parting(mine: Tail | None, below: Tail | None) -> float | None:
    """The start of the first call that does not contain the blocks below."""
    for _ in range(FAR):
        if mine is None or mine is below:
            return None
        if below is None or mine.event.number != below.event.number:
            return mine.event.start
        mine, below = mine.next, below.next
    return None
