"""What a prompt shares with earlier ones, and which of its blocks are the answer to one of them.

A call does not show what its answer looks like as part of a prompt. The next request of the conversation does: the
assistant's blocks right after the end of the earlier prompt. If an agent sends back less than it received (without
thinking, for example), what it sends back counts as the whole answer, unless the length of the answer is known.

A known length bounds it. What is longer was written by the client: messages of the assistant that it put together
itself. What is shorter by more than `LACKING_TOKENS` came without what the model had thought, so it is not what was
cached. Both were seen with OpenAI: of 197 answers of gpt-5 that came back, 39 of 57 were read where nothing had been
reasoned, and 2 of 140 where something had (unseen bills, 2026-11-22).
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from cachecost.prompts.blocks import Layer, Prefix

LACKING_TOKENS = 32
"""How much shorter than billed an answer may come back: half of the 64 tokens that OpenAI bills reasoning in."""
SURPLUS_TOKENS = 8
"""How much longer than billed it may come back: blocks are counted by an estimate."""
CALL_TOKENS = 32
"""The same of a call of a tool, which no client writes by itself: its wrapping is estimated as well."""
SHARE = 0.05
"""Each as a share of the billed length, where that is more."""


class PriorPrompt(NamedTuple):
    """`shared`: the longest prefix that an earlier prompt also had. `answer`: the prefix that ends with the answer to
    that prompt, if `shared` is all of it and its answer follows here for the first time. `is_billed`: the length of
    that answer is known."""

    shared: Prefix | None
    answer: Prefix | None
    is_billed: bool = False


NO_PRIOR_PROMPT = PriorPrompt(None, None)


class PromptHistory:
    """All prompts so far. Each call has one answer; calls with the same prompt have one answer each."""

    def __init__(self) -> None:
        self._seen: set[Prefix] = set()
        self._awaited: dict[Prefix, list[int | None]] = {}

    def add_call(self, end: Prefix) -> PriorPrompt:
        """Record a call whose prompt ends at `end`. Takes time for the blocks that are new in it."""
        new: list[Prefix] = []
        node: Prefix | None = end
        while node is not None and node not in self._seen:
            new.append(node)
            node = node.parent
        answer, is_billed = self._answer(node, new[::-1]) if node is not None else (None, False)
        self._seen.update(new)
        self._awaited.setdefault(end, []).append(None)
        return PriorPrompt(node, answer, is_billed)

    def note_answer(self, end: Prefix, tokens: int) -> None:
        """The answer to the latest call whose prompt ends at `end` has so many tokens, thinking included."""
        awaited = self._awaited.get(end)
        if awaited:
            awaited[-1] = tokens

    def _answer(self, prompt: Prefix, after: list[Prefix]) -> tuple[Prefix | None, bool]:
        """The prefix that ends with an answer to `prompt`, and whether a bill says how long that is."""
        run = list(takewhile(_is_assistants, after))
        awaited = self._awaited.get(prompt)
        if not run or not awaited:
            return None, False
        for place, tokens in enumerate(awaited):
            found = run[-1] if tokens is None else _as_long(prompt, run, tokens)
            if found is not None:
                del awaited[place]
                return found, tokens is not None
        return None, False


def _as_long(prompt: Prefix, run: list[Prefix], tokens: int) -> Prefix | None:
    """The end of the blocks after `prompt` that are as long as an answer of `tokens`; None where none are."""
    fitting = [node for node in run if node.tokens - prompt.tokens <= tokens + _surplus(node, tokens)]
    lacking = tokens - (fitting[-1].tokens - prompt.tokens) if fitting else tokens
    return fitting[-1] if fitting and lacking <= max(LACKING_TOKENS, SHARE * tokens) else None


def _surplus(node: Prefix, tokens: int) -> float:
    is_call = node.block is not None and node.block.kind == "tool_use"
    return max(CALL_TOKENS if is_call else SURPLUS_TOKENS, SHARE * tokens)


def _is_assistants(node: Prefix) -> bool:
    return node.layer is Layer.MESSAGES and node.block is not None and node.block.role == "assistant"
