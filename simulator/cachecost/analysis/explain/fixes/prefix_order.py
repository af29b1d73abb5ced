"""What conversations share comes first in their system prompt and first message, and what differs after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter, itemgetter
from typing import NamedTuple

from cachecost.analysis.explain.fixes.breakpoints import with_breakpoint
from cachecost.analysis.explain.fixes.fix import FixContext
from cachecost.analysis.explain.fixes.scopes import conversation_of
from cachecost.analysis.explain.fixes.threads import ThreadCorrections
from cachecost.analysis.replays.steps import PartPool, ReplayStep
from cachecost.base.structs import replace
from cachecost.caches.alignment import ALIKE, first_difference, share_alike, text_of
from cachecost.caches.changes import LONG_TEXT
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Layer, Message
from cachecost.prompts.refusals import accepts_breakpoint
from cachecost.prompts.request import Breakpoint, Request, is_server_tool
from cachecost.prompts.wire import text_block
from cachecost.providers.rules import ModelRules

MOVABLE = frozenset({"text", "image", "document", "search_result"})
"""Kinds of blocks that may stand in any order in a message."""
Blocks = tuple[Block, ...]
SHARED_FIRST = (
    "send first what conversations share, in blocks of its own with a breakpoint at the end, and then what differs "
    "(the user's name, the question)"
)


def send_shared_first(context: FixContext, steps: Sequence[ReplayStep]) -> Iterator[ReplayStep]:
    """The calls of several conversations with the blocks that these share first, and a breakpoint at their end. A text
    of which they share a part is sent as two: that part, and the rest."""
    order = _SharedFirst(steps)
    for step in steps:
        rules = context.replays.traffic.setup.rules_for(step.call)
        made = step.with_change(order.reorder)
        yield made.with_request(order.with_breakpoint(step.call.request, made.call.request, rules))


class _SharedFirst:
    """The order of the system prompts and first messages of conversations."""

    def __init__(self, steps: Sequence[ReplayStep]) -> None:
        requests = {conversation_of(step.call): step.call.request for step in reversed(steps)}.values()
        self._system = _BlockOrder([request.system.blocks for request in requests])
        self._message = _BlockOrder([_first_message(request) for request in requests])
        self._parts, self._threads = PartPool(), ThreadCorrections()

    def reorder(self, call: Call) -> Call:
        """The call with its blocks in order; each breakpoint stays on its block."""
        request = call.request
        system, message = self._system.of(request.system.blocks), self._message.of(_first_message(request))
        first = request.thread.beginning
        if first.parent is not None and first.message is not None and message.blocks != first.message.blocks:
            self._threads.put({first: first.parent.then(Message.of(first.message.role, message.blocks))})
        moved = [self._move(one, system, message) for one in request.breakpoints]
        return replace(
            call,
            request=replace(
                request,
                system=self._parts.of(system.blocks),
                thread=self._threads.of(request.thread),
                breakpoints=tuple(sorted(moved, key=attrgetter("prompt_order"))),
            ),
        )

    def _move(self, one: Breakpoint, system: OrderedBlocks, message: OrderedBlocks) -> Breakpoint:
        if one.layer is Layer.SYSTEM:
            return replace(one, index=system.places[one.index])
        if one.node is None:
            return one
        index = message.places[one.index] if one.node.length == 1 else one.index
        return replace(one, node=self._threads.of(one.node), index=index)

    def with_breakpoint(self, sent: Request, request: Request, rules: ModelRules) -> Request:
        """The request with a breakpoint at the end of what is shared from its beginning; `sent` is it as sent."""
        system, message = self._system.of(sent.system.blocks), self._message.of(_first_message(sent))
        if message.shared and system.shared == len(system.blocks):
            place = Breakpoint(Layer.MESSAGES, message.shared - 1, node=request.thread.beginning)
            block = message.blocks[place.index]
        elif system.shared:
            place = Breakpoint(Layer.SYSTEM, system.shared - 1)
            block = system.blocks[place.index]
        else:
            return request
        return with_breakpoint(request, place, rules) if accepts_breakpoint(block) else request


def _first_message(request: Request) -> Blocks:
    first = request.thread.beginning.message
    return first.blocks if first else ()


class OrderedBlocks(NamedTuple):
    """Blocks in another order: where each block of before is now, or its shared piece, and how many of the first are
    shared."""

    blocks: Blocks
    places: tuple[int, ...]
    shared: int


class TextPieces(NamedTuple):
    """A text as two blocks: what others share with it, and the rest."""

    shared: Block
    rest: Block


class _BlockOrder:
    """Orders blocks of one part of each conversation: what most conversations share first."""

    def __init__(self, parts: Sequence[Blocks]) -> None:
        self._counts = Counter(digest for blocks in parts for digest in {block.digest for block in blocks})
        self._first = {block.digest: number for number, block in reversed(list(enumerate(sum(parts, ()))))}
        own = {block.digest: block for blocks in parts for block in blocks if self._counts[block.digest] == 1}
        self._pieces = _split_texts([block for block in own.values() if _is_long_text(block)])

    def of(self, blocks: Blocks) -> OrderedBlocks:
        """The blocks in order. Web tools come first anyway, and results of tools have their place."""
        if not all(block.kind in MOVABLE or is_server_tool(block) for block in blocks):
            return OrderedBlocks(blocks, tuple(range(len(blocks))), 0)
        ranked = list[tuple[tuple[int, int, int], int, Block]]()
        for index, block in enumerate(blocks):
            count, first = self._counts[block.digest], self._first.get(block.digest, 0)
            pieces = self._pieces.get(block.digest)
            if is_server_tool(block):
                ranked.append(((0, 0, index), index, block))
            elif pieces is not None:
                ranked += [((1, -len(self._pieces), 0), index, pieces.shared), ((2, 0, index), -1, pieces.rest)]
            else:
                ranked.append(((1, -count, first) if count > 1 else (2, 0, index), index, block))
        ranked.sort(key=itemgetter(0))
        places = {index: number for number, (_, index, _) in enumerate(ranked)}
        shared = sum(rank[0] < 2 for rank, _, _ in ranked)
        return OrderedBlocks(
            tuple(block for _, _, block in ranked), tuple(places[index] for index in range(len(blocks))), shared
        )


def _is_long_text(block: Block) -> bool:
    return block.kind == "text" and block.content is not None and block.size >= LONG_TEXT


def _split_texts(blocks: Sequence[Block]) -> dict[bytes, TextPieces]:
    """The texts that are mostly the same as the first of them, by their digests, in two pieces."""
    alike = [block for block in blocks if share_alike(blocks[0], block) >= ALIKE]
    texts = list(map(text_of, alike))
    if len(alike) < 2:
        return {}
    begin = min(first_difference(texts[0], text) for text in texts[1:])
    shortest = min(map(len, texts)) - begin
    end = min(first_difference(texts[0][::-1][:shortest], text[::-1][:shortest]) for text in texts[1:])
    shared = text_block(alike[0].role, texts[0][:begin] + texts[0][len(texts[0]) - end :])
    rests = (text[begin : len(text) - end] or " " for text in texts)
    return {
        block.digest: TextPieces(shared, text_block(block.role, rest)) for block, rest in zip(alike, rests, strict=True)
    }
