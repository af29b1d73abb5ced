"""Blocks that are not the same in every call: bills set their lengths, a recording starts warm, a loss is held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanEvaluator
from cachecost.analysis.optimum.proved_reads import ProvedRead
from cachecost.analysis.optimum.rest_of_calls import RestOfCalls, added_tokens, tokens_in
from cachecost.analysis.optimum.tree import ANY_CALL, BlockInCall, BlockNode, CallPass, Tail
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.render import BreakpointPrefix
from cachecost.prompts.request import TTL
from cachecost.prompts.sizes import PrefixSizes
from cachecost.strategies.changes.cache_only_calls import filler_thread


class _CallEffects(NamedTuple):
    """What the special calls of a list do to a block: the first of them, and the rest by their number."""

    block: BlockInCall
    rest: int


NO_MARKS = 0


class BlocksByCall:
    """What sets the calls of an evaluator apart, for each block that they share."""

    def __init__(self, evaluator: PlanEvaluator, proved: Mapping[BareCall, ProvedRead]) -> None:
        warm = evaluator.warm.copy()
        self._evaluator = evaluator
        self._warm: dict[BareCall, BreakpointPrefix | None] = {
            sent: warm.take(sent.prompt) if len(warm) else None for sent in evaluator.sent
        }
        self._proved = proved
        self._rest = RestOfCalls(
            {
                sent
                for sent in evaluator.sent
                if self._warm[sent] or sent in self._proved or sent.call.most_read is not None
            }
        )
        self._head_sizes_by_head: dict[Prefix, PrefixSizes | None] = {}
        self._heads_of: dict[Tail, list[PrefixSizes]] = {}
        self._numbers: dict[_CallEffects, int] = {}
        self._marks: list[_CallEffects] = [_CallEffects(ANY_CALL, NO_MARKS)]
        self._made: dict[tuple[Tail, int], Tail] = {}

    def list_for(self, node: BlockNode, tail: Tail, pings: bool) -> tuple[Tail, int]:
        """The list of the calls of a block, one token of which costs a share of the block, and the number of shares.

        With `pings`, also what the block adds to these counts.
        """
        prefix, own = node.prefix, tail
        tokens = self._rest.tokens(own, prefix)
        if tokens is not None and not (pings and self.least(tokens, prefix, own) != tokens):
            return self._marked(own, prefix), tokens
        calls = list(own)
        lengths = tokens_in(calls, prefix)
        return self._by_length(prefix, calls, lengths, self.least(min(lengths), prefix, own) if pings else None)

    def least(self, tokens: int, prefix: Prefix, tail: Tail) -> int:
        """The fewest tokens of a block in any call, these, or ping."""
        return min([tokens, *self._in_pings(prefix, tail)])

    def _by_length(
        self, prefix: Prefix, calls: Sequence[Tail], lengths: Sequence[int], least: int | None
    ) -> tuple[Tail, int]:
        """As `list_for`, the calls of a block with so many tokens in each of them, and `least` in a ping.

        The last calls, in which it is equally long, are shared with other blocks, as those of one token.
        """
        times, at = lengths[-1], len(calls)
        made: Tail | None = None
        if least is None or least == times:
            while at and lengths[at - 1] == times:
                at -= 1
            made = self._marked(calls[at], prefix)
        for one, count in zip(reversed(calls[:at]), reversed(lengths[:at]), strict=True):
            block = self.block_in_call(one.event, prefix, count, count if least is None else least)
            made = Tail(one.event, one.may_extend, one.may_be_extended, made, block, times)
            times = 1
        assert made is not None
        return made, times

    def _marked(self, tail: Tail, prefix: Prefix) -> Tail:
        """The list with what its special calls do to a block, made once for all blocks that are alike in them."""
        marks = NO_MARKS
        for event in reversed(self._rest.special(tail)):
            marks = self._number(_CallEffects(self.block_in_call(event, prefix, 1, 1), marks))
        walked: list[tuple[Tail, int]] = []
        now: Tail | None = tail
        while marks and now is not None and (now, marks) not in self._made:
            walked.append((now, marks))
            marks = self._marks[marks].rest if self._rest.is_special(now) else marks
            now = now.next
        made = self._made[now, marks] if marks and now is not None else now
        for one, number in reversed(walked):
            block = self._marks[number].block if self._rest.is_special(one) else ANY_CALL
            made = self._made[one, number] = Tail(one.event, one.may_extend, one.may_be_extended, made, block)
        assert made is not None
        return made

    def _number(self, marks: _CallEffects) -> int:
        """The number of these marks; that of calls which do nothing to a block is 0."""
        if marks == self._marks[NO_MARKS]:
            return NO_MARKS
        if marks not in self._numbers:
            self._numbers[marks] = len(self._marks)
            self._marks.append(marks)
        return self._numbers[marks]

    def block_in_call(self, event: CallPass, prefix: Prefix, tokens: int, least: int) -> BlockInCall:
        """A block with so many tokens in a call, `least` in a ping, and what bills say of it there."""
        return BlockInCall(tokens, least, self._warm_ttl(event, prefix), self._held(event, prefix))

    def _warm_ttl(self, event: CallPass, prefix: Prefix) -> TTL | None:
        """The TTL of what was cached of a block before its first call. Before its end a breakpoint may choose it."""
        warm = self._warm[event.sent] if event.index == 0 else None
        if warm is None or (prefix.tokens, prefix.depth) > (warm.prefix.tokens, warm.prefix.depth):
            return None
        is_before = prefix.depth < warm.prefix.depth and "1h" in event.sent.rules.accepted_ttls
        return "1h" if is_before else warm.ttl

    def _held(self, event: CallPass, prefix: Prefix) -> Literal["read", "lost"] | None:
        """What the bill says of reading a block, where that is not what the simulation says."""
        most, proved = event.sent.call.most_read, self._proved.get(event.sent)
        if most is not None and event.index == 0:
            return "lost" if _before(event, prefix) >= most else "read"
        is_proved = proved is not None and proved.tokens(_before(event, prefix), event.tokens(prefix)) > 0
        return "read" if is_proved else None

    def _in_pings(self, prefix: Prefix, tail: Tail) -> list[int]:
        """The tokens of a block of the static prefix in pings that send that and no more."""
        if prefix.layer is Layer.MESSAGES:
            return []
        if tail not in self._heads_of:
            heads = {one.event.sent.prompt.head: one.event.sent for one in tail}
            sizes = (self._head_sizes(head, sent) for head, sent in heads.items())
            self._heads_of[tail] = [one for one in sizes if one is not None]
        return [added_tokens(one, prefix) for one in self._heads_of[tail]]

    def _head_sizes(self, head: Prefix, sent: BareCall) -> PrefixSizes | None:
        if head not in self._head_sizes_by_head:
            request = replace(sent.call.request, thread=filler_thread())
            made = self._evaluator.render_call(replace(sent.call, request=request, most_read=None), is_extra=True)
            self._head_sizes_by_head[head] = made.sizes if isinstance(made, BareCall) else None
        return self._head_sizes_by_head[head]


def _before(event: CallPass, prefix: Prefix) -> int:
    """Tokens up to the block that ends `prefix`."""
    return event.tokens(prefix.parent) if prefix.parent is not None else 0
