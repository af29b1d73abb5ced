"""Blocks that are not the same in every call: bills set their lengths, a recording starts warm, a loss is held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal

from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanEvaluator
from cachecost.analysis.optimum.tree import BlockInCall, Event, Node, Tail
from cachecost.analysis.optimum.ttls import Lifetimes
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.render import BreakpointPrefix
from cachecost.prompts.request import TTL
from cachecost.prompts.sizes import PrefixSizes
from cachecost.strategies.changes.cache_only_calls import filler_thread


class BlocksByCall:
    """What sets the calls of an evaluator apart, for each block that they share."""

    def __init__(self, evaluator: PlanEvaluator) -> None:
        warm = evaluator.warm.copy()
        self._evaluator = evaluator
        self._warm: dict[BareCall, BreakpointPrefix | None] = {
            sent: warm.take(sent.prompt) if len(warm) else None for sent in evaluator.sent
        }
        self._heads: dict[Prefix, PrefixSizes | None] = {}

    def cost(self, node: Node, tail: Tail, ttls: Lifetimes) -> Decimal:
        """The minimum cost of a block over all calls that contain it, in USD per 10**6 tokens x tokens."""
        calls = list(tail)
        tokens = [_added(one.event.sent.passes[one.event.index].sizes, node.prefix) for one in calls]
        least = min([*tokens, *self._in_pings(node.prefix, calls)])
        blocks = [
            BlockInCall(count, least, self._warm_ttl(one.event, node.prefix), _held(one.event, node.prefix))
            for one, count in zip(calls, tokens, strict=True)
        ]
        if all(block == (least, least, None, None) for block in blocks):
            return ttls.cost(tail) * least
        return ttls.cost(_tail_of(calls, blocks))

    def _warm_ttl(self, event: Event, prefix: Prefix) -> TTL | None:
        """The TTL of what was cached of a block before its first call. Before its end a breakpoint may choose it."""
        warm = self._warm[event.sent] if event.index == 0 else None
        if warm is None or (prefix.tokens, prefix.depth) > (warm.prefix.tokens, warm.prefix.depth):
            return None
        is_before = prefix.depth < warm.prefix.depth and "1h" in event.sent.rules.accepted_ttls
        return "1h" if is_before else warm.ttl

    def _in_pings(self, prefix: Prefix, calls: Sequence[Tail]) -> list[int]:
        """The tokens of a block of the static prefix in pings that send that and no more."""
        if prefix.layer is Layer.MESSAGES:
            return []
        heads = {one.event.sent.prompt.head: one.event.sent for one in calls}
        sizes = (self._head_sizes(head, sent) for head, sent in heads.items())
        return [_added(one, prefix) for one in sizes if one is not None]

    def _head_sizes(self, head: Prefix, sent: BareCall) -> PrefixSizes | None:
        if head not in self._heads:
            request = replace(sent.call.request, thread=filler_thread())
            made = self._evaluator.render_call(replace(sent.call, request=request, most_read=None), is_extra=True)
            self._heads[head] = made.sizes if isinstance(made, BareCall) else None
        return self._heads[head]


def _added(sizes: PrefixSizes, prefix: Prefix) -> int:
    """The tokens that a block adds to its prompt."""
    return sizes.of(prefix) - (sizes.of(prefix.parent) if prefix.parent is not None else 0)


def _held(event: Event, prefix: Prefix) -> Literal["read", "lost"] | None:
    most = event.sent.call.most_read
    if most is None or event.index > 0:
        return None
    before = event.tokens(prefix.parent) if prefix.parent is not None else 0
    return "lost" if before >= most else "read"


def _tail_of(calls: Sequence[Tail], blocks: Sequence[BlockInCall]) -> Tail:
    """The same list of calls, with the block as it is in each of them."""
    made: Tail | None = None
    for one, block in zip(reversed(calls), reversed(blocks), strict=True):
        made = Tail(one.event, one.may_extend, one.may_be_extended, made, block)
    assert made is not None
    return made
