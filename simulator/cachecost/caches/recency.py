"""Prefixes by when they were last sent: finds the longest live one and evicts the least recently used first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from cachecost.caches.breakpoints import State
from cachecost.caches.chains import FROM_BEST, Chain
from cachecost.prompts.blocks import Prefix

MOST_MOVED = 32
"""A side call of at most so many blocks is moved aside when the conversation continues."""
Oldest = tuple[int, int, int]
"""The call that last sent a chain's deepest tokens, where the chain starts (the deepest first), its number."""


class Recency:
    """All prefixes that calls of one model sent, token by token. Calls come in the order they start.

    A call takes time for the blocks that are new in it and for the forks on its way, not for its length. Prompts
    share whole blocks only, and nothing of a message that was extended. Tokens are as counted.
    """

    def __init__(self) -> None:
        self.tokens = 0
        """Cached tokens, including those that expired and were not evicted."""
        self._calls = 0
        self._chains: list[Chain] = []
        self._of: dict[Prefix, Chain] = {}
        self._oldest: list[Oldest] = []

    def send(
        self,
        end: Prefix,
        now: float,
        readable_at: float,
        life_s: float,
        capacity: int | None = None,
        refreshes: bool = True,
    ) -> int:
        """Record a call whose prompt ends at `end`. Returns how many of its tokens it reads. Times are seconds.

        `capacity` is a limit in tokens: the least recently sent are evicted first, the last tokens of a call before
        its first ones. Without `refreshes`, what a call reads expires as if it had not.
        """
        self._calls += 1
        found = 0
        way = [(chain, upto) for chain, upto in _way(self._chain(end), end.tokens) if upto > chain.start]
        for chain, upto in reversed(way):
            before, is_reached = chain.cached_end, found == chain.start
            live = chain.send(upto, self._calls, now, (readable_at, now), life_s, refreshes, is_reached)
            self.tokens += chain.cached_end - before
            found = live if is_reached else found
            self._queue(chain)
        if capacity is not None:
            self._shrink(capacity)
        return found

    def state(self, prefix: Prefix, now: float, life_s: float) -> State:
        """The state of the tokens of `prefix`."""
        chain = self._of.get(prefix)
        way = _way(chain, prefix.tokens) if chain else ()
        states = [one.state(upto, now, life_s) for one, upto in way if upto > one.start]
        return max(states, key=FROM_BEST.index, default="absent")

    def _chain(self, end: Prefix) -> Chain:
        """The chain of `end`. New blocks extend a chain that ends where they start, or start a new one."""
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
        """Whether the chain can be extended at `node`: it ends there, or its rest is short and has no forks.

        Side calls mostly come before the conversation continues. Without this, each would start a new chain for
        everything after it, and a call would take time for every side call before it.
        """
        if chain.last is node:
            return True
        if chain.fork > node.tokens or chain.last.depth - node.depth > MOST_MOVED:
            return False
        self._split(chain, node)
        return True

    def _split(self, chain: Chain, node: Prefix) -> None:
        """Split off what comes after `node` as a separate chain."""
        last = chain.last
        tail = chain.split(len(self._chains), node)
        self._chains.append(tail)
        while last is not node and last.parent is not None:
            self._of[last] = tail
            last = last.parent
        chain.fork = max(chain.fork, node.tokens)
        self._queue(tail)

    def _queue(self, chain: Chain) -> None:
        """Queue a chain with cached tokens for eviction. Its place may be too early, never too late."""
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
    """The chains from the last one back to the root, each with the number of prompt tokens at its end."""
    yield chain, tokens
    while chain.parent is not None:
        yield chain.parent, chain.start
        chain = chain.parent
