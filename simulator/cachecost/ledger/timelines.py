"""The prompt timeline of a call: where its breakpoints were, and which kinds of blocks were not read.

The ledger's row says how the tokens divide; a timeline holds what the row does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from cachecost.base.structs import value
from cachecost.caches.breakpoints import Outcome
from cachecost.prompts.blocks import Block, Layer, Prefix
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import PrefixSizes


@value
class BreakpointAt:
    """A breakpoint that reached the minimum: the tokens up to it, and its TTL."""

    tokens: int
    ttl: str


@value
class CallTimeline:
    """One call of a prompt timeline. `fresh` counts the blocks that were not read, by kind, in prompt order.

    `is_human`: its last message is a human message and not only tool results (rule 3).
    """

    breakpoints: tuple[BreakpointAt, ...] = ()
    fresh: tuple[tuple[str, int], ...] = ()
    is_human: bool = False


EMPTY_TIMELINE = CallTimeline()
"""The timeline of a call without usage."""


def build_timeline(prompt: Prompt, sizes: PrefixSizes, outcome: Outcome) -> CallTimeline:
    """The timeline of a call, from its first pass."""
    breakpoints = tuple(BreakpointAt(sizes.of(breakpoint.prefix), breakpoint.ttl) for breakpoint in outcome.breakpoints)
    kinds = Counter(block.kind for block in _after(outcome.hit, prompt.end))
    return CallTimeline(breakpoints, tuple(reversed(kinds.items())), _answers_a_person(prompt))


def _answers_a_person(prompt: Prompt) -> bool:
    """Whether the last message holds anything besides tool results."""
    node: Prefix | None = prompt.end
    while node is not None and node.block is not None and node.block.role == "user":
        if node.block.kind != "tool_result":
            return node.layer is Layer.MESSAGES
        node = node.parent
    return False


def _after(hit: Prefix | None, end: Prefix) -> Iterator[Block]:
    """The blocks of a prompt that ends at `end`, from the last one back to what was read."""
    depth = hit.depth if hit else 0
    node: Prefix | None = end
    while node is not None and node.depth > depth:
        if node.block is not None:
            yield node.block
        node = node.parent
