"""Prefixes by when they were last sent: the longest that is alive, and the least recently used going first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from cachecost.caches.breakpoints import State
from cachecost.caches.chains import Chain
from cachecost.prompts.blocks import Prefix

MOST_MOVED = 32
"""Blocks of a side call, at most, that make way for how the conversation goes on."""
Oldest = tuple[int, int, int]
"""The call that last sent a chain's deepest tokens, where the chain starts (the deepest first), its number."""


class Recency:
    """All prefixes that calls of one model sent, token by token. Calls come in the order they start.

    A call costs work for the blocks that are new in it and for the forks on its way, not for its length. Prompts
    share what they share in whole blocks: of a message that was extended, nothing. Tokens are as counted.
    """

    def __init__(self) -> None:
        self.tokens = 0
        """What is kept, in tokens; what is dead and did not have to make room included."""
        self._calls = 0
        self._chains: list[Chain] = []
        self._of: dict[Prefix, Chain] = {}
        self._oldest: list[Oldest] = []

    def send(self, end: Prefix, now: float, readable_at: float, life_s: float, capacity: int | None = None) -> int:
        """A call of the prompt that ends at `end`. Returns how many of its tokens could be read. Times are seconds.

        `capacity` is what is kept at most, in tokens: the least recently sent go first, of one call its last tokens.
        """
        self._calls += 1
        found = 0
        for chain, upto in _way(self._chain(end), end.tokens):
            before = chain.cached_end
            live = chain.send(upto, self._calls, now, (readable_at, now), life_s) if upto > chain.start else 0
            self.tokens += chain.cached_end - before
            found = max(found, live if live > chain.start else 0)
            self._queue(chain)
        if capacity is not None:
            self._shrink(capacity)
        return found

    def state(self, prefix: Prefix, now: float, life_s: float) -> State:
        """How the tokens of `prefix` stand."""
        chain = self._of.get(prefix)
        while chain is not None and chain.start >= prefix.tokens:
            chain = chain.parent
        return chain.state(prefix.tokens, now, life_s) if chain else "absent"

    def _chain(self, end: Prefix) -> Chain:
        """The chain of `end`. What is new in it goes on with a chain that ends there, or begins one."""
        new: list[Prefix] = []
        node: Prefix | None = end
        while node is not None and node not in self._of:
            new.append(node)
            node = node.parent
        chain = self._of[node] if node is not None else None
        if not new and chain is not None:
            return chain
        if node is None or chain is None or not self._makes_way(chain, node):
            chain = self._start_chain(chain, node, end)
        chain.last = end
        self._of.update(dict.fromkeys(new, chain))
        return chain

    def _start_chain(self, parent: Chain | None, node: Prefix | None, end: Prefix) -> Chain:
        """A new chain that leaves `parent` at `node`."""
        chain = Chain(len(self._chains), parent, node.tokens if node else 0, end)
        self._chains.append(chain)
        if parent and node:
            parent.fork = max(parent.fork, node.tokens)
        return chain

    def _makes_way(self, chain: Chain, node: Prefix) -> bool:
        """Whether the chain can go on from `node`: it ends there, or what comes after is short and has no forks.

        Side calls are mostly made before the conversation goes on. Without this each would begin a chain for all that
        comes after it, and a call would cost work for every side call before it.
        """
        if chain.last is node:
            return True
        if chain.fork > node.tokens or chain.last.depth - node.depth > MOST_MOVED:
            return False
        self._split(chain, node)
        return True

    def _split(self, chain: Chain, node: Prefix) -> None:
        """Make what comes after `node` a chain of its own."""
        last = chain.last
        tail = chain.split(len(self._chains), node)
        self._chains.append(tail)
        while last is not node and last.parent is not None:
            self._of[last] = tail
            last = last.parent
        chain.fork = max(chain.fork, node.tokens)
        self._queue(tail)

    def _queue(self, chain: Chain) -> None:
        """See that a chain that holds anything is in line. It may stand too early there, never too late."""
        if chain.steps and not chain.queued:
            chain.queued = True
            heappush(self._oldest, (chain.steps[0].call, -chain.start, chain.number))

    def _shrink(self, capacity: int) -> None:
        while self.tokens > capacity:
            call, _, number = heappop(self._oldest)
            chain = self._chains[number]
            chain.queued = False
            if chain.steps and chain.steps[0].call == call:
                self.tokens -= chain.drop(self.tokens - capacity)
            self._queue(chain)


def _way(chain: Chain, tokens: int) -> Iterator[tuple[Chain, int]]:
    """The chains from the last one back to the root, each with how many tokens of the prompt it ends at."""
    yield chain, tokens
    while chain.parent is not None:
        yield chain.parent, chain.start
        chain = chain.parent
