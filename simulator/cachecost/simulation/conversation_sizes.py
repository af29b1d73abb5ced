"""How many tokens of conversation each call sends, whatever model it goes to."""

from __future__ import annotations

from collections.abc import Iterable

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.calls import Call
from cachecost.ledger.conversation_shares import CallSize
from cachecost.prompts.blocks import Block, Part, Thread
from cachecost.prompts.counting import TokenCounter


def conversation_sizes(calls: Iterable[Call], counter: TokenCounter) -> list[CallSize]:
    """The size of each call, as sent; empty where `counter` cannot count one of their blocks."""
    sizes = _Sizes(counter)
    try:
        return [sizes.of(call) for call in calls]
    except CannotEvaluate:
        return []


class _Sizes:
    """Sums of tokens up to each message: calls share most of their threads."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._threads: dict[Thread, int] = {}
        self._parts: dict[int, tuple[Part, int]] = {}

    def of(self, call: Call) -> CallSize:
        thread = call.request.thread
        before = thread.compaction.parent if thread.compaction else None
        messages = self._thread(thread) - (self._thread(before) if before else 0)
        return CallSize(messages, self._part(call.request.tools) + self._part(call.request.system))

    def _thread(self, thread: Thread) -> int:
        return thread.fold(self._threads, 0, lambda tokens, message: tokens + self._tokens(message.blocks))

    def _part(self, part: Part) -> int:
        if id(part) not in self._parts:
            self._parts[id(part)] = (part, self._tokens(part.blocks))
        return self._parts[id(part)][1]

    def _tokens(self, blocks: Iterable[Block]) -> int:
        return sum(self._counter.block(block) for block in blocks)
