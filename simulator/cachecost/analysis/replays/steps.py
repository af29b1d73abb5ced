"""Calls as they would have been sent, each with the recorded call that it replaces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

from cachecost.base.structs import replace, value
from cachecost.conversations.calls import Call
from cachecost.ledger.results import ZERO, CallRow
from cachecost.prompts.blocks import NOTHING, Block, Message, Part, Thread
from cachecost.prompts.request import Breakpoint, Request

NO_CALL = 0
"""The number of an extra call, which replaces no recorded one. Recorded calls count from 1."""


@value
class ReplayStep:
    """A call to replay. `number` is the recorded call that it replaces, 0 for an extra call.

    `content` is the call with the breakpoints of the recorded one, on what is sent now: bills that tell the length
    of the recorded prompt up to its breakpoints tell, or scaled say, that of this one.
    """

    number: int
    call: Call
    content: Call

    def with_request(self, request: Request) -> ReplayStep:
        """The same content, marked otherwise."""
        return replace(self, call=replace(self.call, request=request))

    def with_change(self, change: Callable[[Call], Call]) -> ReplayStep:
        """Other content."""
        same = self.content is self.call
        call = change(self.call)
        return replace(self, call=call, content=call if same else change(self.content))


StepChange = Callable[[Sequence[ReplayStep]], list[ReplayStep]]


def as_sent(calls: Iterable[Call]) -> list[ReplayStep]:
    """The recorded calls."""
    return [ReplayStep(number, call, call) for number, call in enumerate(calls, 1)]


def change_calls(change: Callable[[Call], Call]) -> StepChange:
    """Other content in each call."""
    return lambda steps: [step.with_change(change) for step in steps]


def change_breakpoints(marked: Callable[[Request], Request]) -> StepChange:
    """Other breakpoints in each call."""
    return lambda steps: [step.with_request(marked(step.call.request)) for step in steps]


def in_order(steps: Iterable[ReplayStep]) -> list[ReplayStep]:
    """By their start; what starts together stays as it stood."""
    return sorted(steps, key=lambda step: step.call.start)


def conversation_of(call: Call) -> tuple[Thread, str, str, bool]:
    """The conversation that a call belongs to: it has its first message, in one place."""
    return call.request.thread.beginning, call.host or "", call.workspace, call.is_batch


def conversations(steps: Iterable[ReplayStep]) -> list[list[ReplayStep]]:
    """The steps of each conversation, in the order they begin."""
    found: dict[object, list[ReplayStep]] = {}
    for step in steps:
        found.setdefault(conversation_of(step.call), []).append(step)
    return list(found.values())


def cost(rows: Iterable[CallRow]) -> Decimal:
    """USD of rows."""
    return sum((row.cost.total for row in rows), ZERO)


def has_breakpoints(request: Request) -> bool:
    return bool(request.breakpoints) or request.automatic is not None


class ThreadChange:
    """Rewrites threads message by message. Shared parts of threads are rewritten once."""

    def __init__(self, rewrite: Callable[[Message], Message | None]) -> None:
        self._rewrite = rewrite
        self._known: dict[Thread, Thread] = {}

    def of(self, thread: Thread) -> Thread:
        """The rewritten thread; a message rewritten to None is left out."""
        return thread.fold(self._known, thread.root, self._append)

    def _append(self, before: Thread, message: Message) -> Thread:
        rewritten = self._rewrite(message)
        return before.then(rewritten) if rewritten is not None else before

    def request(self, request: Request) -> Request:
        """The request with its thread rewritten. Breakpoints stay on their blocks and disappear with them."""
        thread = self.of(request.thread)
        return replace(request, thread=thread, breakpoints=tuple(self._breakpoints(request.breakpoints)))

    def _breakpoints(self, breakpoints: Sequence[Breakpoint]) -> Iterator[Breakpoint]:
        for breakpoint in breakpoints:
            if breakpoint.node is None or breakpoint.node.message is None:
                yield breakpoint
            elif moved := move_breakpoint(breakpoint, self.of(breakpoint.node)):
                yield moved


def move_breakpoint(breakpoint: Breakpoint, node: Thread) -> Breakpoint | None:
    """The breakpoint on the same block in `node`; None where the block is gone."""
    assert breakpoint.node is not None and breakpoint.node.message is not None and node.message is not None
    digest = breakpoint.node.message.blocks[breakpoint.index].digest
    found = (index for index, block in enumerate(node.message.blocks) if block.digest == digest)
    index = next(found, None)
    return None if index is None else replace(breakpoint, index=index, node=node)


class PartPool:
    """Parts that are the same object where they have the same blocks."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, ...], Part] = {}

    def of(self, blocks: Iterable[Block]) -> Part:
        """The one part with these blocks."""
        made = tuple(blocks)
        key = tuple(block.digest for block in made)
        return self._known.setdefault(key, Part(made)) if made else NOTHING
