"""Counts that a recording states itself: traces that tell how long each prompt was, and nothing of what was in it."""

from __future__ import annotations

from cachecost.prompts.blocks import Block
from cachecost.prompts.counting import NOTHING_HIDDEN, CannotCount, Hidden
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules

GIVEN = "given"
"""The tokenizer generation of a model that stands for all of a trace, as rules name it."""


class GivenCounter:
    """Blocks are as long as they say; what a template adds is in that already."""

    name = GIVEN
    source = "the trace's own counts"
    band = 0.0

    def block(self, block: Block) -> int:
        """Raises CannotCount where a block does not say."""
        if block.tokens is None:
            raise CannotCount("the model stands for a trace that gives all counts, and a block has none: say --model")
        return block.tokens

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        return NOTHING_HIDDEN
