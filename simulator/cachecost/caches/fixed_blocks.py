"""Automatic caches of every prefix, in fixed-size blocks of tokens (OpenAI before GPT-5.6, xAI, Mistral, vLLM …).

A call reads the longest prefix that an earlier call of the same model sent, if it has not expired (each call refreshes
everything it sends) and was not evicted for lack of capacity. It can be read from the earlier call's first token.
Writes are free, and breakpoints have no effect.

Prompts that diverge within a block of content share only the blocks before it: common text at the start of two
different blocks is not detected. The capacity counts tokens; an engine that keeps whole blocks of `step_tokens` needs
up to one more at each fork and each end.
"""

from __future__ import annotations

from cachecost.caches.breakpoints import Outcome, State
from cachecost.caches.prompt_history import NO_PRIOR_PROMPT, PromptHistory
from cachecost.caches.recency import Recency
from cachecost.caches.reporting import build_outcome, shared_with, tail_of, ttl_s_of
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import AS_COUNTED, PrefixSizes
from cachecost.providers.rules import ModelRules

Engine = tuple[str, str]
"""Host and model: each has its own capacity."""


class FixedBlockCache:
    """Everything that calls sent, by host and model.

    Where the rules state `keeps_answers` (vLLM, SGLang), an answer is read the first time it is sent back. It counts
    towards the capacity from then on. Where they state `keeps_unreasoned_answers` (OpenAI), only one whose length is
    billed. A prompt that goes on from an earlier one shares all of that but what opened its answer.
    """

    def __init__(self) -> None:
        self._histories: dict[Engine, PromptHistory] = {}
        self._sent: dict[Engine, Recency] = {}
        self._tails: dict[Prefix, int] = {}
        """What is counted after the last block of each prompt."""

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        """Read what is cached of `prompt`. Times are seconds; calls come in the order they start."""
        sent = self._of(rules)
        known = self._history(rules).add_call(prompt.end) if _uses_history(rules) else NO_PRIOR_PROMPT
        matched = sent.send(prompt.end, start, start + first_token_s, ttl_s_of(rules), rules.capacity_tokens)
        if not matched:
            self._tails[prompt.end] = tail_of(prompt)
            return build_outcome(prompt, sizes, 0, None, rules)
        is_shared = known.shared is not None and matched == known.shared.tokens
        keeps = rules.keeps_answers or (rules.keeps_unreasoned_answers and known.is_billed)
        if is_shared and known.answer and keeps:
            matched, is_shared = known.answer.tokens, False
        hit = _at(prompt.end, matched)
        tail, self._tails[prompt.end] = self._tails.get(hit), tail_of(prompt)
        if is_shared and tail is not None and hit is not prompt.end:
            return build_outcome(prompt, sizes, shared_with(hit, tail, sizes, rules), hit, rules)
        return build_outcome(prompt, sizes, _size(hit, matched, sizes), hit, rules)

    def note_answer(self, prompt: Prompt, rules: ModelRules, tokens: int) -> None:
        """The answer to the latest call with this prompt was billed with so many tokens."""
        if _uses_history(rules) and not rules.keeps_reasoning:  # with it, what comes back is shorter than its bill
            self._history(rules).note_answer(prompt.end, tokens)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state of `prefix` at `now`. There is one TTL; `ttl` is ignored."""
        return self._of(rules).state(prefix, now, ttl_s_of(rules))

    def _history(self, rules: ModelRules) -> PromptHistory:
        return self._histories.setdefault((rules.host, rules.model), PromptHistory())

    def _of(self, rules: ModelRules) -> Recency:
        return self._sent.setdefault((rules.host, rules.model), Recency())


def _uses_history(rules: ModelRules) -> bool:
    ends_anywhere = rules.matching == "grid" and rules.step_tokens == 1
    return rules.keeps_answers or rules.keeps_unreasoned_answers or rules.opener_tokens > 0 or ends_anywhere


def _at(end: Prefix, tokens: int) -> Prefix:
    """The longest prefix of `end` with at most `tokens`. Takes time for the blocks after it."""
    node = end
    while node.tokens > tokens and node.parent is not None:
        node = node.parent
    return node


def _size(hit: Prefix, matched: int, sizes: PrefixSizes) -> int:
    """The length of the `matched` tokens according to `sizes`: of a prefix, or up to a place inside a block."""
    return sizes.of(hit) if hit.tokens == matched else sizes.at(matched)


class BestEffortCache(FixedBlockCache):
    """A cache that promises nothing and does not say how it matches (Gemini implicit, Qwen implicit …): the most it
    could read.

    Every earlier prefix is found, in steps of the rules (1 token where they state none), for as long as they state
    (without end where they state nothing). The least is no read, so a result is a range and never one number.
    """
