"""Breakpoints at intervals: they stay for a while and then move on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from cachecost.prompts.blocks import Thread
from cachecost.strategies.changes.base import estimate_tokens
from cachecost.strategies.placements.base import Primitive, Spot, markable_blocks, within
from cachecost.strategies.placements.thread_index import View

WORTH_MERGING = 1.2
"""Roo Code merges two breakpoints for what is at least this many times as long as both."""


def tokens_of(node: Thread) -> int:
    """Tokens of one message, as an agent estimates them."""
    return sum(map(estimate_tokens, node.message.blocks)) if node.message else 0


@dataclass(frozen=True, slots=True)
class EveryKBlocks(Primitive):
    """Blocks `k`, 2`k`, 3`k` … of the messages, the latest `n` of them."""

    k: int = 20
    n: int = 1

    def spots(self, view: View) -> Iterator[Spot]:
        total = view.thread.blocks
        for number in range(min(self.n, total // self.k)):
            yield from islice(markable_blocks(view.thread, total % self.k + number * self.k), 1)


@dataclass(frozen=True, slots=True)
class EveryKTurns(Primitive):
    """Human messages `k`, 2`k`, 3`k` …, the latest `n` of them."""

    k: int = 15
    n: int = 1

    def spots(self, view: View) -> Iterator[Spot]:
        start: tuple[int, tuple[Thread, ...]] = (0, ())
        for node in reversed(view.trail.fold(self, view.thread, start, self._step)[1]):
            yield from within(node, "last")

    def _step(self, so_far: tuple[int, tuple[Thread, ...]], node: Thread) -> tuple[int, tuple[Thread, ...]]:
        if node.message is None or not node.message.is_human:
            return so_far
        humans = so_far[0] + 1
        return humans, so_far[1] if humans % self.k else (*so_far[1], node)[-self.n :]


class _CrossedSteps(NamedTuple):
    """Tokens so far, and the latest blocks that filled a step, as (message, blocks after it in the message)."""

    tokens: int = 0
    places: tuple[tuple[Thread, int], ...] = ()


@dataclass(frozen=True, slots=True)
class EveryKTokens(Primitive):
    """The blocks in which the messages pass `k`, 2`k`, 3`k` … tokens as the agent estimates them, the latest `n`."""

    k: int = 100_000
    n: int = 1

    def spots(self, view: View) -> Iterator[Spot]:
        for node, after in reversed(view.trail.fold(self, view.thread, _CrossedSteps(), self._step).places):
            yield from islice(markable_blocks(node, after), 1)

    def _step(self, so_far: _CrossedSteps, node: Thread) -> _CrossedSteps:
        assert node.message is not None
        tokens, places = so_far
        for index, block in enumerate(node.message.blocks, 1):
            before, tokens = tokens, tokens + estimate_tokens(block)
            if tokens // self.k > before // self.k:
                places = (*places, (node, len(node.message.blocks) - index))[-self.n :]
        return _CrossedSteps(tokens, places)


class _StickyPoints(NamedTuple):
    """Messages that are marked, each with the tokens since the breakpoint before it; tokens since the last one."""

    points: tuple[tuple[Thread, int], ...] = ()
    since: int = 0


@dataclass(frozen=True, slots=True)
class Sticky(Primitive):
    """Breakpoints that stay: one on a user message as soon as `least_tokens` (estimated) came since the last
    breakpoint.

    With `n` in place, the two that cover least become one if what came since is `worth` times as long. Roo Code
    keeps the placements between requests; here they are found again from the messages, a request at each user
    message, which gives the same for conversations that were marked so from their start.
    """

    least_tokens: int = 1024
    n: int = 3
    worth: float = WORTH_MERGING

    def spots(self, view: View) -> Iterator[Spot]:
        for node, _ in reversed(view.trail.fold(self, view.thread, _StickyPoints(), self._step).points):
            yield from within(node, "last")

    def _step(self, kept: _StickyPoints, node: Thread) -> _StickyPoints:
        since = kept.since + tokens_of(node)
        if node.message is None or node.message.role != "user" or since < self.least_tokens:
            return _StickyPoints(kept.points, since)
        room = kept.points if len(kept.points) < self.n else self._merge_closest(kept.points, since)
        return _StickyPoints(kept.points, since) if room is None else _StickyPoints((*room, (node, since)))

    def _merge_closest(
        self, points: tuple[tuple[Thread, int], ...], since: int
    ) -> tuple[tuple[Thread, int], ...] | None:
        """The breakpoints with the two least ones made one; None where that is not worth it."""
        pairs = [points[i][1] + points[i + 1][1] for i in range(len(points) - 1)]
        if not pairs or since < self.worth * min(pairs):
            return None
        least = pairs.index(min(pairs))
        return (*points[:least], (points[least + 1][0], pairs[least]), *points[least + 2 :])
