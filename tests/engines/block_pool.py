"""A pool of blocks as vLLM has one and a tree of nodes as SGLang has one, written as plainly as possible: for machines
without the engines."""

from __future__ import annotations

from collections.abc import Sequence

Beginning = tuple[int, ...]
"""All tokens up to the end of a block."""


class BlockPool:
    """`free` has the blocks that no request uses, the one that is taken next first: what is in each, or nothing.

    `cached` has the blocks of each beginning in the order in which they were computed.
    """

    def __init__(self, blocks: int, step: int) -> None:
        self.step = step
        self.free = list(range(blocks))
        self.content: dict[int, Beginning] = {}
        self.cached: dict[Beginning, list[int]] = {}

    def serve(self, prompt: Sequence[int], answer: Sequence[int] = ()) -> int | None:
        """The tokens of `prompt` that are read; None where it does not fit. Its answer is computed but for its last."""
        tokens = tuple(prompt)
        used: list[int] = []
        for end in range(self.step, len(tokens), self.step):
            if tokens[:end] not in self.cached:
                break
            used.append(self.cached[tokens[:end]][0])
        kept = [block for block in self.free if block not in used]
        if -(-len(tokens) // self.step) - len(used) > len(kept):
            return None
        self.free = kept
        read = len(used) * self.step
        self._compute(used, tokens)
        for end in range(len(tokens) + 1, len(tokens) + len(answer)):
            tokens = (*tokens, answer[end - len(prompt) - 1])
            if end > len(used) * self.step and not self.free:
                break
            self._compute(used, tokens)
        unfilled = [block for block in used if block not in self.content]
        self.free = unfilled + self.free + [block for block in reversed(used) if block in self.content]
        return read

    def _compute(self, used: list[int], tokens: Beginning) -> None:
        """Take blocks for all tokens, and note those that are full."""
        while len(used) * self.step < len(tokens):
            block = self.free.pop(0)
            before = self.content.pop(block, None)
            if before is not None:
                self.cached[before].remove(block)
                if not self.cached[before]:
                    del self.cached[before]
            used.append(block)
        for place, block in enumerate(used[: len(tokens) // self.step], 1):
            if block not in self.content:
                self.content[block] = tokens[: place * self.step]
                self.cached.setdefault(tokens[: place * self.step], []).append(block)


class NodePool:
    """The nodes of a tree of prefixes by all tokens up to their end: where each begins, and when it was last used."""

    def __init__(self, capacity: int, step: int) -> None:
        self.capacity, self.step, self.clock = capacity, step, 0
        self.nodes: dict[Beginning, tuple[int, int]] = {}

    def serve(self, prompt: Sequence[int], answer: Sequence[int] = ()) -> int | None:
        """As `BlockPool.serve`, of which what is read is no more than all of the prompt but its last token."""
        kept = list(prompt)
        if self._paged(len(kept)) > self.capacity:
            return None
        read = self._use(tuple(kept[:-1]))
        locked = tuple(kept[:read])
        self._make_room(self._paged(len(kept)) - read, locked)
        for token in answer[:-1]:
            if not self._make_room(self._paged(len(kept) + 1) - read, locked):
                break
            kept.append(token)
        whole = tuple(kept[: len(kept) // self.step * self.step])
        known = self._use(whole)
        if known < len(whole):
            self.nodes[whole] = (known, self.clock)
        return read

    def _paged(self, tokens: int) -> int:
        return -(-tokens // self.step) * self.step

    def _use(self, tokens: Beginning) -> int:
        """Use all nodes on the way, and all of the one that is left inside. Returns how many tokens are there."""
        self.clock += 1
        found = 0
        for end, (begin, _) in list(self.nodes.items()):
            same = next(
                (at for at, (a, b) in enumerate(zip(end, tokens, strict=False)) if a != b), min(len(end), len(tokens))
            )
            same -= same % self.step
            if same <= begin:
                continue
            self.nodes[end[:same]] = (begin, self.clock)
            if same < len(end):
                self.nodes[end] = (same, self.clock)
            found = max(found, same)
        return found

    def _make_room(self, tokens: int, locked: Beginning) -> bool:
        """Evict the least recently used node that no other follows, and so on, until there is room."""
        while tokens > self.capacity - sum(len(end) - begin for end, (begin, _) in self.nodes.items()):
            followed = {end[:begin] for end, (begin, _) in self.nodes.items()}
            free = [end for end in self.nodes if end not in followed and locked[: len(end)] != end]
            if not free:
                return False
            del self.nodes[min(free, key=lambda end: self.nodes[end][1])]
        return True
