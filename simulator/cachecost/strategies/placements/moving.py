"""Breakpoints that move with the end of the conversation, or with its turns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Literal

from cachecost.strategies.placements.base import BlockChoice, Primitive, Spot, markable_blocks, within
from cachecost.strategies.placements.thread_index import Role, View


@dataclass(frozen=True, slots=True)
class LastMessage(Primitive):
    """A block at the end: the last or the second last of all messages, or one of the last message."""

    block: BlockChoice = "last"
    rank: ClassVar[int] = 3

    def spots(self, view: View) -> Iterator[Spot]:
        if self.block in ("last", "second_last"):
            skipped = 0 if self.block == "last" else 1
            yield from islice(markable_blocks(view.thread), skipped, skipped + 1)
        elif view.thread.message is not None:
            yield from within(view.thread, self.block)


@dataclass(frozen=True, slots=True)
class LastN(Primitive):
    """One block of each of the last `n` messages of a role."""

    role: Role = "any"
    n: int = 2
    block: BlockChoice = "last"

    def spots(self, view: View) -> Iterator[Spot]:
        for node in islice(view.trail.back(self.role, view.thread), self.n):
            yield from within(node, self.block)


@dataclass(frozen=True, slots=True)
class BeforeHuman(Primitive):
    """The message before the `k`-th most recent human message: where a conversation would branch."""

    k: int = 1
    role: Literal["human", "prompt"] = "human"
    block: BlockChoice = "last"

    def spots(self, view: View) -> Iterator[Spot]:
        for node in islice(view.trail.back(self.role, view.thread), self.k - 1, self.k):
            if node.parent is not None and node.parent.message is not None:
                yield from within(node.parent, self.block)


@dataclass(frozen=True, slots=True)
class TurnBoundary(Primitive):
    """The last `n` ends of a turn: the markable block before a human message, in whichever message it stands."""

    n: int = 2
    role: Literal["human", "prompt"] = "human"

    def spots(self, view: View) -> Iterator[Spot]:
        for node in islice(view.trail.back(self.role, view.thread), self.n):
            if node.parent is not None:
                yield from islice(markable_blocks(node.parent), 1)


@dataclass(frozen=True, slots=True)
class PreviousHuman(Primitive):
    """The human message before the most recent one."""

    block: BlockChoice = "last"

    def spots(self, view: View) -> Iterator[Spot]:
        for node in islice(view.trail.back("human", view.thread), 1, 2):
            yield from within(node, self.block)


@dataclass(frozen=True, slots=True)
class Lag(Primitive):
    """The block `blocks` before the last one."""

    blocks: int = 20

    def spots(self, view: View) -> Iterator[Spot]:
        yield from islice(markable_blocks(view.thread, self.blocks), 1)


@dataclass(frozen=True, slots=True)
class Hint(Primitive):
    """The end of the message `offset` before the last: what stays when the last one is thrown away."""

    offset: int = 1

    def spots(self, view: View) -> Iterator[Spot]:
        for node in islice(view.thread.back(), self.offset, self.offset + 1):
            yield from islice(markable_blocks(node), 1)


@dataclass(frozen=True, slots=True)
class Automatic(Primitive):
    """The top-level `cache_control`: the provider places a breakpoint on the last block that may have one."""

    rank: ClassVar[int] = 3

    def spots(self, view: View) -> Iterator[Spot]:
        return iter(())
