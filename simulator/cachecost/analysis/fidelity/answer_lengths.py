"""The lengths of answers that come back in later prompts, by the bills of the calls that got them.

Where a host caches answers, a hit ends at the end of one. No prompt ends there, so no bill of a prompt gives its
length; that of the call that got it does: its input and its output.
"""

from __future__ import annotations

from cachecost.caches.prompt_history import PromptHistory
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage
from cachecost.tokens.calibrated import BilledLengths

REASONED = 2
FRAMED = 64
"""An output of more than REASONED times what came back, and FRAMED tokens, was reasoning that did not come back."""


class AnswerLengths:
    """Learns into `lengths`, call by call in the order they were made."""

    def __init__(self, lengths: BilledLengths) -> None:
        self._lengths = lengths
        self._prompts = PromptHistory()
        self._bills: dict[Prefix, tuple[int, Usage]] = {}

    def learn(self, number: int, prompt: Prompt, rules: ModelRules, billed: Usage | None) -> None:
        """Learn the length of the answer in the `number`-th call's prompt, then remember the call's own bill."""
        if not rules.keeps_answers:
            return
        asked, answer, *_ = self._prompts.add_call(prompt.end)
        if asked is not None and answer is not None and asked in self._bills:
            self._learn_answer(asked, answer, *self._bills[asked])
        if billed is not None:
            self._bills[prompt.end] = number, billed

    def _learn_answer(self, asked: Prefix, answer: Prefix, number: int, billed: Usage) -> None:
        if 0 < billed.output_tokens <= REASONED * (answer.tokens - asked.tokens) + FRAMED:
            self._lengths.learn_prefix(number, answer, billed.total_input + billed.output_tokens)
