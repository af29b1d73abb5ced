"""Prefixes by when they were last sent: the longest that is alive, and the least recently used going first."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from cachecost.cache import State
from cachecost.matching.steps import Chain
from cachecost.prompts.blocks import Prefix

Oldest = tuple[int, int, int]
"""The call that last sent a chain's deepest tokens, where the chain starts (the deepest first), its number."""


class Recency:
    """All prefixes that calls of one model sent, token by token. Calls come in the order they start.

    A call costs work for the blocks that are new in it and for the forks on its way, not for its length. Prompts
    share what they share in whole blocks: of a message that was extended, nothing. Tokens are as counted.
    """

    def __init__(self) -> None:
        self.tokens = 0
        """What is cached, in tokens; more than a lifetime old included."""
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
        for chain, upto in self._way(self._chain(end), end.tokens):
            before = chain.stored
            live = chain.send(upto, self._calls, now, (readable_at, now), life_s) if upto > chain.start else 0
            self.tokens += chain.stored - before
            found = max(found, live if live > chain.start else 0)
            self._queue(chain)
        if capacity is not None:
            self._shrink(capacity)
        return found

    def knows(self, prefix: Prefix) -> bool:
        """Whether a call sent `prefix`, however long ago."""
        return prefix in self._of

    def state(self, prefix: Prefix, now: float, life_s: float) -> State:
        """How the tokens of `prefix` stand."""
        chain = self._of.get(prefix)
        while chain is not None and chain.start >= prefix.tokens:
            chain = chain.parent
        return chain.state(prefix.tokens, now, life_s) if chain else "absent"

    def _way(self, chain: Chain, tokens: int) -> Iterator[tuple[Chain, int]]:
        """The chains from the last one back to the root, each with how many tokens of the prompt it ends at."""
        yield chain, tokens
        while chain.parent is not None:
            yield chain.parent, chain.start
            chain = chain.parent

    def _chain(self, end: Prefix) -> Chain:
        """The chain of `end`. What is new in it goes on with a chain where that ends, or begins one."""
        node: Prefix | None = end
        new: list[Prefix] = []
        while node is not None and node not in self._of:
            new.append(node)
            node = node.parent
        chain = self._of[node] if node is not None else None
        if new and (chain is None or chain.last is not node):
            chain = Chain(len(self._chains), chain, node.tokens if node else 0, end)
            self._chains.append(chain)
        assert chain is not None
        chain.last = end if new else chain.last
        self._of.update(dict.fromkeys(new, chain))
        return chain

    def _queue(self, chain: Chain) -> None:
        """Put a chain where its deepest tokens are now next in line, if this call sent those."""
        if chain.steps and chain.steps[0].call == self._calls:
            heappush(self._oldest, (self._calls, -chain.start, chain.number))

    def _shrink(self, capacity: int) -> None:
        while self.tokens > capacity:
            call, start, number = heappop(self._oldest)
            chain = self._chains[number]
            if chain.steps and chain.steps[0].call == call:
                self.tokens -= chain.drop(self.tokens - capacity)
                if chain.steps:
                    heappush(self._oldest, (chain.steps[0].call, start, number))
