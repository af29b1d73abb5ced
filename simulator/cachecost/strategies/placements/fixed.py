"""Breakpoints that never move once placed: on the first messages, or until the slots are used up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cachecost.prompts.blocks import Layer, Thread
from cachecost.prompts.refusals import accepts_breakpoint
from cachecost.strategies.changes.base import estimate_tokens
from cachecost.strategies.placements.base import BlockChoice, Primitive, Spot, within
from cachecost.strategies.placements.thread_index import ROLES, Role, View

Spots = tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class FirstN(Primitive):
    """One block of each of the first `n` messages of a role."""

    role: Role = "any"
    n: int = 1
    block: BlockChoice = "last"

    def spots(self, view: View) -> Iterator[Spot]:
        start: tuple[Thread, ...] = ()
        for node in view.trail.fold(self, view.thread, start, self._step):
            yield from within(node, self.block)

    def _step(self, found: tuple[Thread, ...], node: Thread) -> tuple[Thread, ...]:
        assert node.message is not None
        return (*found, node) if len(found) < self.n and ROLES[self.role](node.message) else found


@dataclass(frozen=True, slots=True)
class AtMessage(Primitive):
    """The message with this `number` (1 is the first): the end of a static part that is made of messages."""

    number: int = 1
    block: BlockChoice = "last"

    def spots(self, view: View) -> Iterator[Spot]:
        node = view.trail.fold(self, view.thread, None, self._step)
        if node is not None:
            yield from within(node, self.block)

    def _step(self, found: Thread | None, node: Thread) -> Thread | None:
        return node if node.length == self.number else found


@dataclass(frozen=True, slots=True)
class OldestOver(Primitive):
    """The oldest `n` messages with a text of more than `tokens` (estimated): its first such text.

    The oldest come first, so where slots run out the newest go without, and in the end nothing moves any more.
    """

    tokens: int = 500
    n: int = 4

    def spots(self, view: View) -> Iterator[Spot]:
        start: Spots = ()
        yield from view.trail.fold(self, view.thread, start, self._step)

    def _step(self, found: Spots, node: Thread) -> Spots:
        assert node.message is not None
        if len(found) >= self.n:
            return found
        blocks = enumerate(node.message.blocks)
        texts = ((index, block) for index, block in blocks if block.kind == "text" and accepts_breakpoint(block))
        index = next((index for index, block in texts if estimate_tokens(block) > self.tokens), None)
        return found if index is None else (*found, (Layer.MESSAGES, node, index))


@dataclass(frozen=True, slots=True)
class Freeze(Primitive):
    """The first user message and every `every`-th tool result, until `n` breakpoints stand; then nothing moves any
    more.
    """

    every: int = 10
    n: int = 4

    def spots(self, view: View) -> Iterator[Spot]:
        start: tuple[int, Spots] = (0, ())
        yield from view.trail.fold(self, view.thread, start, self._step)[1]

    def _step(self, so_far: tuple[int, Spots], node: Thread) -> tuple[int, Spots]:
        assert node.message is not None
        results, found = so_far
        if len(found) >= self.n or node.message.role != "user":
            return so_far
        if not found:
            found = tuple(within(node, "last"))
        for index, block in enumerate(node.message.blocks):
            results += block.kind == "tool_result"
            if block.kind == "tool_result" and results % self.every == 0:
                found = (*found, (Layer.MESSAGES, node, index))
        return results, found[: self.n]
