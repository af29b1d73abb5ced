"""Token counters by their `--tokens` names, and those that need no tokenizer.

`--tokens bytes` (rule 19): a block counts its bytes and hidden tokens count nothing, so every number can be checked
by hand.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from cachecost.base.errors import CannotEvaluate, nearest
from cachecost.prompts.blocks import Block, compact
from cachecost.prompts.compare import first_difference
from cachecost.prompts.render import NOTHING_HIDDEN, CannotCount, Hidden, TokenCounter
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules

if TYPE_CHECKING:
    from cachecost.tokens.textcounter import TextCounter


class BytesCounter:
    """Counts the UTF-8 length of a block's compact JSON. Exact by definition, so its error margin is 0."""

    name = "bytes"
    source = "bytes of compact JSON"
    error_margin = 0.0

    def block(self, block: Block) -> int:
        """Bytes of `block`; a stated count wins."""
        return block.size if block.tokens is None else block.tokens

    def shared(self, one: Block, other: Block) -> int:
        """The bytes that the compact JSON of both begins with."""
        return first_difference(compact(one.content), compact(other.content)) if one.content and other.content else 0

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        """Nothing."""
        return NOTHING_HIDDEN


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

    def shared(self, one: Block, other: Block) -> int:
        """Nothing: a trace has no content."""
        return 0

    def hidden(self, request: Request, rules: ModelRules) -> Hidden:
        return NOTHING_HIDDEN


CALIBRATED, AUTO, FILLER = "calibrated", "auto", "tiktoken"
"""Bills where there are any; the best counter there is; what fills the gaps between bills, the same everywhere."""
VARIABLE = "CACHECOST_TOKENS"
"""What `auto` means on this machine, where somebody chose it. Not set: ctok for Claude's models, and a maker's own
tokenizer for its models, where they are installed (nearer to the bills, and slower), else tiktoken, which needs no
network and runs on every Python."""


def chosen_counter() -> str | None:
    """The counter that somebody chose for this machine; None where nobody did."""
    return os.environ.get(VARIABLE)


def _tokenizer_counter(generation: str, name: str) -> TextCounter:
    from cachecost.tokens import tokenizers

    makers = {
        "ctok": tokenizers.ctok_counter,
        "native": tokenizers.native_counter,
        "tiktoken": tokenizers.tiktoken_counter,
    }
    return makers[name](generation)


def _auto_counter(generation: str) -> TokenCounter:
    chosen = chosen_counter()
    if chosen not in (None, AUTO):
        return make_counter(str(chosen), generation)
    from cachecost.tokens import tokenizers

    tiktoken = tokenizers.tiktoken_counter(generation)
    if tokenizers.has_ctok() and _is_of_claude(generation):
        return PreferredCounter(tokenizers.ctok_counter(generation), tiktoken)
    if tokenizers.has_native(generation):
        return PreferredCounter(tokenizers.native_counter(generation), tiktoken)
    return tiktoken


COUNTERS: dict[str, Callable[[str], TokenCounter]] = {
    AUTO: _auto_counter,
    "bytes": lambda generation: BytesCounter(),
    **{name: partial(_tokenizer_counter, name=name) for name in ("ctok", "native", "tiktoken")},
}
TEXT_COUNTERS = ("ctok", "tiktoken")
"""Counters of text between two billed lengths."""
OF_CLAUDE = {"ctok": "ctok has Claude's tokenizers", "count_tokens": "count_tokens is Anthropic's API"}
"""Counters that know no other maker's models, and why."""


def counter_name(tokens: str | None, has_bills: bool) -> str:
    """The counter that `--tokens` names; without a name or with "calibrated", the one that fills what bills leave
    open.
    """
    if tokens not in (None, CALIBRATED):
        return str(tokens)
    return FILLER if has_bills else AUTO


def make_counter(name: str, generation: str) -> TokenCounter:
    """The counter that `--tokens NAME` means for a tokenizer generation ("claude-3", "o200k", …). A trace with
    its own counts uses those.

    Raises CannotEvaluate for an unknown name, for a generation that is not
    calibrated, for ctok where it is not installed, and for a Claude-only counter with another provider's model.
    """
    if generation == GIVEN:
        return GivenCounter()
    if name in OF_CLAUDE and not _is_of_claude(generation):
        raise CannotEvaluate(
            f"--tokens {name} cannot count for {generation}: {OF_CLAUDE[name]}. Use --tokens tiktoken, or bytes"
        )
    if name in COUNTERS:
        return COUNTERS[name](generation)
    planned = name in (CALIBRATED, "count_tokens")
    why, near = ("is not there yet", "") if planned else ("is unknown", nearest(name, COUNTERS))
    raise CannotEvaluate(f"--tokens {name} {why}: expected one of {', '.join(COUNTERS)}{near}")


def _is_of_claude(generation: str) -> bool:
    from cachecost.tokens.calibration import CLAUDE, calibration

    return calibration(generation).generation.startswith(CLAUDE)


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

    def shared(self, one: Block, other: Block) -> int:
        """The tokens that two blocks begin with."""
        return self._first.shared(one, other)

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
