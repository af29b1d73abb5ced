"""The interface of token counters, and their error margin."""

from __future__ import annotations

from typing import Protocol

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import value
from cachecost.prompts.blocks import Block, Thread
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules


class CannotCount(CannotEvaluate):
    """A block that has neither content nor the counts this counter needs. The text says what to do."""


@value
class Hidden:
    """Hidden prompt tokens by place (rule 4), in tokens.

    `tools`, `system`, `messages` come at the start of that layer; `turn` before the first block
    of each run of equal roles; `parallel` before the second of a run of tool results (results of
    parallel calls are rendered with their names); `tail` after the last block, so never read or
    written. `after_results` come after a run of tool results: they are cached with the block after the
    run, or belong to `tail` (negative: that many more are cached with the run). With `each_message`, `turn` comes
    before every message, also where the one before it has the same role. `format` says how many of all these are the
    prompt of a structured output.
    """

    tools: int = 0
    system: int = 0
    messages: int = 0
    turn: int = 0
    tail: int = 0
    parallel: int = 0
    after_results: int = 0
    each_message: bool = False
    format: int = 0


NOTHING_HIDDEN = Hidden()


class TokenCounter(Protocol):
    """Counts blocks for one tokenizer generation.

    `name` is what `--tokens` calls it, `source` one phrase for reports, `error_margin` the relative error
    (0.031 is ±3.1 %) at the 95th percentile of its measurements; 0.0 is exact.
    """

    name: str
    source: str
    error_margin: float

    def block(self, block: Block) -> int:
        """Tokens of `block` alone, without its breakpoint. Raises CannotCount if the block has neither content nor
        counts.
        """
        ...

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        """The hidden prompt tokens of `request`.

        Of its messages they depend on nothing but `thread_traits`.
        """
        ...


def thread_traits(thread: Thread) -> tuple[bool, str, str]:
    """What of the messages decides how many hidden tokens there are: citations, and how the last message ends."""
    last = thread.message
    if last is None:
        return thread.has_citations, "", ""
    return thread.has_citations, last.role, last.blocks[-1].kind if last.blocks else ""
