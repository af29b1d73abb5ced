"""A pool of blocks as vLLM has one, written as plainly as possible: for machines without the engine."""

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
