"""Breakpoints chosen from the conversation: where it forked, how long its parts are, what stayed the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import ClassVar

from cachecost.prompts.blocks import Layer, Part, Thread
from cachecost.prompts.refusals import accepts_breakpoint
from cachecost.strategies.changes.base import estimate_tokens
from cachecost.strategies.placements.base import Primitive, Spot, markable_blocks
from cachecost.strategies.placements.prefix import LastTool, SystemBlock
from cachecost.strategies.placements.stepping import tokens_of
from cachecost.strategies.placements.thread_index import View

Nodes = tuple[Thread, ...]


@dataclass(frozen=True, slots=True)
class ForkPoint(Primitive):
    """The latest `n` messages after which the conversation went on in more than one way.

    A message counts as forked if another one followed it in the tree before this thread went on from it: one that
    was recorded, or that was sent earlier. What branches off later is not known yet.
    """

    n: int = 1
    sees_forks: ClassVar[bool] = True

    def spots(self, view: View) -> Iterator[Spot]:
        start: Nodes = ()
        found = view.trail.fold(self, view.thread, start, self._step)
        for node in reversed(found):
            yield from islice(markable_blocks(node), 1)

    def _step(self, found: Nodes, node: Thread) -> Nodes:
        parent = node.parent
        is_fork = parent is not None and parent.message is not None and parent.is_fork
        return (*found, parent)[-self.n :] if is_fork and parent is not None else found


@dataclass(frozen=True, slots=True)
class LongSegments(Primitive):
    """The ends of tools, system, all turns but the last, and the last turn; parts shorter than `tokens` go without.

    A part counts from the breakpoint before it, in tokens as the agent estimates them. (The API's least length is
    one of the whole prefix, not of a part.)
    """

    tokens: int = 1024

    def spots(self, view: View) -> Iterator[Spot]:
        marked = 0
        for spot, upto in self._ends(view):
            if upto - marked >= self.tokens:
                marked = upto
                yield spot

    def _ends(self, view: View) -> Iterator[tuple[Spot, int]]:
        tools, system = _size(view.tools), _size(view.system)
        yield from ((spot, tools) for spot in LastTool().spots(view))
        yield from ((spot, tools + system) for spot in SystemBlock("last").spots(view))
        human = view.trail.latest("human", view.thread).node
        for end in (human.parent if human else None, view.thread):
            if end is not None:
                tokens = tools + system + view.trail.fold("tokens", end, 0, _add_tokens)
                yield from ((spot, tokens) for spot in islice(markable_blocks(end), 1))


def _size(part: Part) -> int:
    return sum(map(estimate_tokens, part.blocks))


def _add_tokens(tokens: int, node: Thread) -> int:
    return tokens + tokens_of(node)


@dataclass(frozen=True, slots=True)
class Adaptive(Primitive):
    """What stayed equal from the last request to this one: of tools, system blocks and messages the common start.

    The very end is marked, too, unless the last request's end was thrown away. Of the first request all is taken
    to stay. Only past requests of the same plan are looked at.
    """

    def spots(self, view: View) -> Iterator[Spot]:
        last: View = view.trail.memory.get(self, view)
        view.trail.memory[self] = view
        stable = last.thread.common(view.thread)
        yield from islice(markable_blocks(stable), 1)
        if stable is last.thread:
            yield from islice(markable_blocks(view.thread), 1)
        yield from self._system(last.system, view.system)
        if last.tools.digest == view.tools.digest:
            yield from LastTool().spots(view)

    def _system(self, last: Part, now: Part) -> Iterator[Spot]:
        pairs = enumerate(zip(last.blocks, now.blocks, strict=False))
        equal = [index for index, _ in takewhile(lambda pair: pair[1][0].digest == pair[1][1].digest, pairs)]
        breakpoint_places = [index for index in equal if accepts_breakpoint(now.blocks[index])]
        yield from ((Layer.SYSTEM, None, index) for index in breakpoint_places[-1:])
