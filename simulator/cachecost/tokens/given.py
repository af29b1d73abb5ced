"""Counts stated by the recording itself: traces with prompt lengths but no content."""

from __future__ import annotations

from cachecost.prompts.blocks import Block
from cachecost.prompts.counting import NOTHING_HIDDEN, CannotCount, Hidden
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules

GIVEN = "given"
"""The tokenizer generation of a model that stands for all of a trace, as rules name it."""


class GivenCounter:
    """Blocks have their stated length, which includes what the template adds."""

    name = GIVEN
    source = "the trace's own counts"
    error_margin = 0.0

    def block(self, block: Block) -> int:
        """Raises CannotCount for a block without a stated count."""
        if block.tokens is None:
            raise CannotCount("the model stands for a trace that gives all counts, and a block has none: say --model")
        return block.tokens

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        return NOTHING_HIDDEN
