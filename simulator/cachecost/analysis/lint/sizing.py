"""How long the prefixes of breakpoints are, and whether that is enough: by the bill, else by count and its error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from cachecost.analysis.lint.bills import CallBill
from cachecost.analysis.lint.excerpts import texts
from cachecost.analysis.lint.loaded_request import LoadedRequest, SizedBreakpoint, State
from cachecost.prompts.blocks import Block, Prefix

REPEATED_LETTER = re.compile(r"([^\W\d_])\1{15,}")
"""A run of one letter. Tokenizers differ most on these (6,000 × "a": 2,001 and 836 tokens by two counters that agree
within their error on prose), so no measured error holds for them; one token for each letter is the most.
"""
UNWRITTEN = ("image", "document")
"""Blocks whose data is not text; their tokens are not those of letters."""
Decided = Literal["short", "enough"] | None


def length_state(tokens: int, error: float, minimum: int) -> State:
    """Whether a prefix of `tokens`, give or take `error`, reaches the minimum: surely, surely not, or who knows."""
    if tokens + error < minimum:
        return "short"
    return "enough" if tokens - error >= minimum else "near"


def size_breakpoints(loaded: LoadedRequest) -> LoadedRequest:
    """The request with the lengths and states of its breakpoints as its `sizes` and its bill have them."""
    decided = _billed_states(loaded.breakpoints, loaded.bill)
    sized = tuple(_sized(loaded, one, state) for one, state in zip(loaded.breakpoints, decided, strict=True))
    return replace(loaded, breakpoints=sized)


def _sized(loaded: LoadedRequest, one: SizedBreakpoint, decided: Decided) -> SizedBreakpoint:
    tokens = loaded.length(one.prefix)
    return replace(one, tokens=tokens, state=decided or _counted_state(loaded, one.prefix, tokens))


def _counted_state(loaded: LoadedRequest, prefix: Prefix, tokens: int) -> State:
    if not loaded.sized:
        return "enough"
    error, minimum = loaded.error(tokens), loaded.rules.minimum_tokens
    state = length_state(tokens, error, minimum)
    may_be_longer = state == "short" and error and loaded.bill is None
    return length_state(tokens, error + repeated_letters(prefix), minimum) if may_be_longer else state


def _billed_states(breakpoints: Sequence[SizedBreakpoint], bill: CallBill | None) -> list[Decided]:
    """What the bill decides about each breakpoint; None: nothing.

    A call that read and wrote nothing had no breakpoint that was long enough. Else the last one was, and the last 1h
    one if anything was written for 1h.
    """
    decided: list[Decided] = [None] * len(breakpoints)
    if bill is None or not breakpoints:
        return decided
    if not bill.is_cached:
        return ["short"] * len(breakpoints)
    if bill.is_summed:
        return decided
    hours = [number for number, one in enumerate(breakpoints) if one.breakpoint.ttl == "1h"]
    if hours and bill.usage.write_1h:
        decided[hours[-1]] = "enough"
    decided[-1] = "enough"
    return decided


def repeated_letters(prefix: Prefix) -> int:
    """How many letters of the text up to `prefix` stand in runs of one letter."""
    return sum(_letters_in(block) for block in _blocks(prefix))


def _blocks(prefix: Prefix) -> Iterator[Block]:
    node: Prefix | None = prefix
    while node is not None:
        if node.block is not None:
            yield node.block
        node = node.parent


def _letters_in(block: Block) -> int:
    if block.content is None or block.kind in UNWRITTEN:
        return 0
    return sum(len(match[0]) for _, text in texts(block.content) for match in REPEATED_LETTER.finditer(text))
