"""Lengths of prefixes and prompts: as counted when rendered, or as bills say."""

from __future__ import annotations

from typing import Protocol

from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import Prompt

Place = tuple[float, int]
"""Where a prefix ends: its tokens as counted, and its depth in blocks."""
EVERYWHERE: Place = (float("inf"), 0)


class PrefixSizes(Protocol):
    """Lengths of prefixes and prompts in tokens: as counted, or as bills say."""

    def of(self, prefix: Prefix) -> int:
        """Tokens up to and including `prefix`."""
        ...

    def total(self, prompt: Prompt) -> int:
        """Tokens of the whole prompt, including what comes after its last block."""
        ...

    def at(self, counted: int) -> int:
        """Tokens up to the place whose counted position is `counted`, such as the end of a layer."""
        ...

    def shared(self) -> tuple[object, Place]:
        """What else has an equal first item gives the same lengths up to the second: the earlier place of both."""
        ...

    def doubt(self, tokens: int) -> int:
        """The uncertain tokens of a length: those between it and the nearest billed length."""
        ...

    def doubt_of_total(self, prompt: Prompt) -> int:
        """Like `doubt`, for the whole prompt."""
        ...


class CountedSizes:
    """Lengths as counted when the prompt was rendered."""

    def of(self, prefix: Prefix) -> int:
        return prefix.tokens

    def total(self, prompt: Prompt) -> int:
        return prompt.total_tokens

    def at(self, counted: int) -> int:
        return counted

    def shared(self) -> tuple[object, Place]:
        return CountedSizes, EVERYWHERE

    def doubt(self, tokens: int) -> int:
        return tokens

    def doubt_of_total(self, prompt: Prompt) -> int:
        return prompt.total_tokens


AS_COUNTED = CountedSizes()
