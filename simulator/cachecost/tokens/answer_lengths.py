"""The lengths of answers that come back in later prompts, by the bills of the calls that got them.

Where a host caches answers, a hit ends at the end of one. No prompt ends there, so no bill of a prompt gives its
length; that of the call that got it does: its input and its output.
"""

from __future__ import annotations

from collections.abc import Iterable

from cachecost.caches.prompt_history import PromptHistory
from cachecost.prompts.blocks import Block, Prefix
from cachecost.prompts.render import Prompt
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage
from cachecost.tokens.calibrated import BilledLengths
from cachecost.tokens.content import hidden_content


class AnswerLengths:
    """Learns into `lengths`, call by call in the order they were made."""

    def __init__(self, lengths: BilledLengths) -> None:
        self._lengths = lengths
        self._prompts = PromptHistory()
        self._bills: dict[Prefix, tuple[int, Usage]] = {}

    def learn(
        self, number: int, prompt: Prompt, rules: ModelRules, billed: Usage | None, got: Iterable[Block] = ()
    ) -> None:
        """Learn the length of the answer in the `number`-th call's prompt, then remember the call's own bill, unless it
        counts what the answer that it `got` hides."""
        if not rules.keeps_answers:
            return
        asked, answer, is_whole = self._prompts.add_call(prompt.end)
        if asked in self._bills and answer is not None and (is_whole or rules.keeps_reasoning):
            earlier, bill = self._bills[asked]
            length = bill.total_input + bill.output_tokens + rules.answer_end_tokens
            self._lengths.learn_prefix(earlier, answer, length)
        if billed is not None and billed.output_tokens and not any(map(hidden_content, got)):
            self._bills[prompt.end] = number, billed
            if not rules.keeps_reasoning:
                self._prompts.note_answer(prompt.end, billed.output_tokens)
