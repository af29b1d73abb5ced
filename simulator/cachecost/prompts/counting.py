"""The one question a counter answers, and how sure it is."""

from __future__ import annotations

from typing import Protocol

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import value
from cachecost.prompts.blocks import Block
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules


class CannotCount(CannotEvaluate):
    """A block that has neither content nor the counts this counter needs. The text says what would help."""


@value
class Hidden:
    """Prompt tokens that no block shows, by where they stand (rule 4). All in tokens.

    `tools`, `system`, `messages` stand at the head of that layer; `turn` before the first block
    of each run of equal roles; `parallel` before the second of a run of tool results (results of
    parallel calls are rendered with their names); `tail` after the last block, so never read and
    never written. `after_results` of a run of tool results stand behind it: they are cached with the block after the
    run, or belong to `tail` (below 0: the run is cached with so many more).
    """

    tools: int = 0
    system: int = 0
    messages: int = 0
    turn: int = 0
    tail: int = 0
    parallel: int = 0
    after_results: int = 0


NOTHING_HIDDEN = Hidden()


class TokenCounter(Protocol):
    """Counts blocks for one tokenizer generation.

    `name` is what `--tokens` calls it, `source` one phrase for reports, `band` the relative error
    (0.031 is ±3.1 %) at the 95th percentile of what it was measured on; 0.0 is exact.
    """

    name: str
    source: str
    band: float

    def block(self, block: Block) -> int:
        """Tokens of `block` alone, mark left out. Raises CannotCount if the block has neither content nor counts."""
        ...

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        """The hidden prompt tokens of `request`."""
        ...
