"""The best counter for each block: ctok where it can count, else the calibrated tiktoken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cachecost.prompts.blocks import Block
from cachecost.prompts.counting import CannotCount, Hidden
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules

if TYPE_CHECKING:
    from cachecost.tokens.textcounter import TextCounter


class PreferredCounter:
    """A TokenCounter that uses `first`, and `second` for blocks without content that `first` never counted.

    `source` and `error_margin` are of the second one only once it was needed.
    """

    def __init__(self, first: TextCounter, second: TextCounter) -> None:
        self.name, self.source, self.error_margin = first.name, first.source, first.error_margin
        self.margins = first.margins
        self._first, self._second = first, second

    def block(self, block: Block) -> int:
        """Tokens of `block`. Raises CannotCount where neither counter can count it."""
        try:
            return self._first.block(block)
        except CannotCount:
            return self._other().block(block)

    def block_margin(self, block: Block) -> float:
        """As `block`: the relative error of its count."""
        try:
            return self._first.block_margin(block)
        except CannotCount:
            return self._other().block_margin(block)

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        """The hidden tokens of `request`. Raises CannotCount where neither counter can tell."""
        try:
            return self._first.hidden(request, rules)
        except CannotCount:
            return self._other().hidden(request, rules)

    def _other(self) -> TextCounter:
        self.source = f"{self._first.source}; where only its counts were recorded, {self._second.source}"
        self.error_margin = max(self._first.error_margin, self._second.error_margin)
        return self._second
