"""How long prefixes and prompts are: as counted when rendered, or as somebody knows better."""

from __future__ import annotations

from typing import Protocol

from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt


class Sizes(Protocol):
    """How long prefixes and prompts are, in tokens: as counted, or as bills tell."""

    def of(self, prefix: Prefix) -> int:
        """Tokens up to and with `prefix`."""
        ...

    def total(self, prompt: Prompt) -> int:
        """Tokens of the whole prompt, what comes after its last block included."""
        ...

    def at(self, counted: int) -> int:
        """Tokens up to the place in the prompt that was counted to be at `counted`, as the end of a layer."""
        ...

    def doubt(self, tokens: int) -> int:
        """How many tokens of a length were counted: those between it and the nearest length that a bill tells."""
        ...

    def doubt_of_total(self, prompt: Prompt) -> int:
        """As `doubt`, of the whole prompt."""
        ...


class AsCounted:
    """Sizes as the token counter gave them when the prompt was rendered."""

    def of(self, prefix: Prefix) -> int:
        return prefix.tokens

    def total(self, prompt: Prompt) -> int:
        return prompt.total_tokens

    def at(self, counted: int) -> int:
        return counted

    def doubt(self, tokens: int) -> int:
        return tokens

    def doubt_of_total(self, prompt: Prompt) -> int:
        return prompt.total_tokens


AS_COUNTED = AsCounted()
