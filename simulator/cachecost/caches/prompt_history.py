"""What a prompt shares with earlier ones, and which of its blocks are the answer to one of them.

A call does not show what its answer looks like as part of a prompt. The next request of the conversation does: the
assistant's blocks right after the end of the earlier prompt. If an agent sends back less than it received (without
thinking, for example), what it sends back counts as the whole answer.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from cachecost.prompts.blocks import Layer, Prefix


class PriorPrompt(NamedTuple):
    """`shared`: the longest prefix that an earlier prompt also had. `answer`: the prefix that ends with the answer to
    that prompt, if `shared` is all of it and its answer follows here for the first time."""

    shared: Prefix | None
    answer: Prefix | None


NO_PRIOR_PROMPT = PriorPrompt(None, None)


class PromptHistory:
    """All prompts so far. Each call has one answer; calls with the same prompt have one answer each."""

    def __init__(self) -> None:
        self._seen: set[Prefix] = set()
        self._awaited: dict[Prefix, int] = {}

    def add_call(self, end: Prefix) -> PriorPrompt:
        """Record a call whose prompt ends at `end`. Takes time for the blocks that are new in it."""
        new: list[Prefix] = []
        node: Prefix | None = end
        while node is not None and node not in self._seen:
            new.append(node)
            node = node.parent
        answer = self._answer(node, new[::-1]) if node is not None else None
        self._seen.update(new)
        self._awaited[end] = self._awaited.get(end, 0) + 1
        return PriorPrompt(node, answer)

    def _answer(self, prompt: Prefix, after: list[Prefix]) -> Prefix | None:
        run = list(takewhile(_is_assistants, after))
        if not run or not self._awaited.get(prompt):
            return None
        self._awaited[prompt] -= 1
        return run[-1]


def _is_assistants(node: Prefix) -> bool:
    return node.layer is Layer.MESSAGES and node.block is not None and node.block.role == "assistant"
