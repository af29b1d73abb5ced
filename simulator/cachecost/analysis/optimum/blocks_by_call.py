"""Blocks that are not the same in every call: bills set their lengths, a recording starts warm, a loss is held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Literal

from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanEvaluator
from cachecost.analysis.optimum.proved_reads import ProvedRead
from cachecost.analysis.optimum.tree import ANY_CALL, BlockInCall, Event, Node, Tail
from cachecost.analysis.optimum.ttls import Lifetimes
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.render import BreakpointPrefix
from cachecost.prompts.request import TTL
from cachecost.prompts.sizes import PrefixSizes
from cachecost.strategies.changes.cache_only_calls import filler_thread


class BlocksByCall:
    """What sets the calls of an evaluator apart, for each block that they share."""

    def __init__(self, evaluator: PlanEvaluator, proved: Mapping[BareCall, ProvedRead]) -> None:
        warm = evaluator.warm.copy()
        self._evaluator = evaluator
        self._warm: dict[BareCall, BreakpointPrefix | None] = {
            sent: warm.take(sent.prompt) if len(warm) else None for sent in evaluator.sent
        }
        self._proved = proved
        self._special = {
            sent
            for sent in evaluator.sent
            if self._warm[sent] or sent in self._proved or sent.call.most_read is not None
        }
        """The calls whose bills say more of a block than its length."""
        self._heads: dict[Prefix, PrefixSizes | None] = {}
        self._tails: dict[tuple[int, bool, bool, BlockInCall, Tail | None], Tail] = {}

    def costs(self, node: Node, tail: Tail, ways: Sequence[Lifetimes]) -> list[Decimal]:
        """The minimum cost of a block over all calls that contain it, with each of the `ways`, in USD per 10**6 tokens
        x tokens."""
        calls = list(tail)
        tokens = _tokens_in(calls, node.prefix)
        least = min([*tokens, *self._in_pings(node.prefix, calls)])
        return [self._cost(node.prefix, calls, tokens, least if ttls.pings else None, ttls) for ttls in ways]

    def _cost(
        self, prefix: Prefix, calls: Sequence[Tail], tokens: Sequence[int], least: int | None, ttls: Lifetimes
    ) -> Decimal:
        """The minimum cost of a block with so many tokens in each of its calls, and `least` in a ping. The last calls,
        in which it is equally long, are shared with other blocks, as those of one token."""
        times, at = tokens[-1], len(calls)
        made: Tail | None = None
        if least is None or least == times:
            first = self._first_alike(calls, tokens)
            at, made = (first, calls[first]) if first < at else (at, None)
            while at and tokens[at - 1] == times:
                at -= 1
                made = self._tail(calls[at], prefix, made)
        for one, count in zip(reversed(calls[:at]), reversed(tokens[:at]), strict=True):
            block = self._block(one.event, prefix, count, count if least is None else least)
            made = Tail(one.event, one.may_extend, one.may_be_extended, made, block, times)
            times = 1
        return ttls.cost(made) * times

    def _first_alike(self, calls: Sequence[Tail], tokens: Sequence[int]) -> int:
        """From which call on all are as in the tree: the block is as long as in the last one, and no bill says more."""
        first = len(calls)
        if not self._is_plain(calls[-1]):
            return first
        while first and tokens[first - 1] == tokens[-1] and self._is_plain(calls[first - 1]):
            first -= 1
        return first

    def _is_plain(self, tail: Tail) -> bool:
        return tail.event.sent not in self._special

    def _block(self, event: Event, prefix: Prefix, tokens: int, least: int) -> BlockInCall:
        return BlockInCall(tokens, least, self._warm_ttl(event, prefix), self._held(event, prefix))

    def _tail(self, one: Tail, prefix: Prefix, following: Tail | None) -> Tail:
        """The call of `one` before `following`, made once for all blocks that are alike in it."""
        is_special = one.event.sent in self._special
        if not is_special and one.next is following:
            return one
        block = self._block(one.event, prefix, 1, 1) if is_special else ANY_CALL
        key = (one.event.number, one.may_extend, one.may_be_extended, block, following)
        found = self._tails.get(key)
        if found is None:
            found = self._tails[key] = Tail(one.event, one.may_extend, one.may_be_extended, following, block)
        return found

    def _warm_ttl(self, event: Event, prefix: Prefix) -> TTL | None:
        """The TTL of what was cached of a block before its first call. Before its end a breakpoint may choose it."""
        warm = self._warm[event.sent] if event.index == 0 else None
        if warm is None or (prefix.tokens, prefix.depth) > (warm.prefix.tokens, warm.prefix.depth):
            return None
        is_before = prefix.depth < warm.prefix.depth and "1h" in event.sent.rules.accepted_ttls
        return "1h" if is_before else warm.ttl

    def _held(self, event: Event, prefix: Prefix) -> Literal["read", "lost"] | None:
        """What the bill says of reading a block, where that is not what the simulation says."""
        most, proved = event.sent.call.most_read, self._proved.get(event.sent)
        if most is not None and event.index == 0:
            return "lost" if _before(event, prefix) >= most else "read"
        is_proved = proved is not None and proved.tokens(_before(event, prefix), event.tokens(prefix)) > 0
        return "read" if is_proved else None

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


def _tokens_in(calls: Sequence[Tail], prefix: Prefix) -> list[int]:
    """The tokens that a block adds to each of the calls. Those that know the same lengths are asked once."""
    found: list[int] = []
    known: dict[object, int] = {}
    for call in calls:
        sizes = call.event.sent.passes[call.event.index].sizes
        key = sizes.shared_with(prefix)
        tokens = known.get(key) if key is not None else None
        if tokens is None:
            tokens = _added(sizes, prefix)
            if key is not None:
                known[key] = tokens
        found.append(tokens)
    return found


def _added(sizes: PrefixSizes, prefix: Prefix) -> int:
    """The tokens that a block adds to its prompt."""
    return sizes.of(prefix) - (sizes.of(prefix.parent) if prefix.parent is not None else 0)


def _before(event: Event, prefix: Prefix) -> int:
    """Tokens up to the block that ends `prefix`."""
    return event.tokens(prefix.parent) if prefix.parent is not None else 0
