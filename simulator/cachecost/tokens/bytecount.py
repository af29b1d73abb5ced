"""`--tokens bytes` (rule 19): a block counts its bytes and hidden tokens count nothing, so every number can be checked
by hand.
"""

from __future__ import annotations

from cachecost.prompts.blocks import Block
from cachecost.prompts.counting import NOTHING_HIDDEN, Hidden
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules


class BytesCounter:
    """Counts the UTF-8 length of a block's compact JSON. Exact by definition, so its error margin is 0."""

    name = "bytes"
    source = "bytes of compact JSON"
    error_margin = 0.0

    def block(self, block: Block) -> int:
        """Bytes of `block`; a stated count wins."""
        return block.size if block.tokens is None else block.tokens

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        """Nothing."""
        return NOTHING_HIDDEN
