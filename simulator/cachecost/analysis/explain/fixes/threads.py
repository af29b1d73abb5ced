"""Threads as they would have been sent: what goes on from a corrected thread goes on from its correction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from operator import attrgetter

from cachecost.analysis.explain.fixes.versions import are_versions
from cachecost.base.structs import replace
from cachecost.prompts.blocks import Message, Thread, given_block
from cachecost.prompts.refusals import accepts_breakpoint
from cachecost.prompts.request import Breakpoint, Request


class ThreadCorrections:
    """Corrected threads by the thread as it was sent. Shared parts are corrected once."""

    def __init__(self) -> None:
        self._known: dict[Thread, Thread] = {}

    def of(self, thread: Thread) -> Thread:
        """The corrected thread; the thread itself where nothing before it was corrected."""
        return thread.fold(self._known, thread.root, Thread.then)

    def put(self, places: dict[Thread, Thread]) -> None:
        """Messages of a thread, and where each is in the correction."""
        self._known.update(places)

    def lengthen(self, thread: Thread, tokens: int) -> None:
        """Add a block of so many tokens at the end of a thread's last message, of the kind that it ends with.

        So a message of tool results stays one.
        """
        end = self.of(thread)
        if tokens and end.message is not None and end.parent is not None:
            last = end.message.blocks[-1]
            added = given_block(last.kind, last.role, f"{tokens} tokens that changed", tokens)
            self._known[thread] = end.parent.then(Message.of(end.message.role, (*end.message.blocks, added)))

    def request(self, request: Request) -> Request:
        """The request with its thread corrected; breakpoints stay on their blocks, or on what is in their place."""
        thread = self.of(request.thread)
        if thread is request.thread:
            return request
        return replace(request, thread=thread, breakpoints=tuple(self._breakpoints(request.breakpoints)))

    def _breakpoints(self, breakpoints: Sequence[Breakpoint]) -> list[Breakpoint]:
        moved = [moved for one in breakpoints if (moved := self._move(one))]
        unique = {one.block_key: one for one in moved}
        return sorted(unique.values(), key=attrgetter("prompt_order"))

    def _move(self, breakpoint: Breakpoint) -> Breakpoint | None:
        if breakpoint.node is None or breakpoint.node.message is None:
            return breakpoint
        node = self.of(breakpoint.node)
        if node is breakpoint.node or node.message is None:
            return breakpoint
        digest = breakpoint.node.message.blocks[breakpoint.index].digest
        blocks = node.message.blocks
        is_last = breakpoint.index == len(breakpoint.node.message.blocks) - 1
        same = (index for index, block in enumerate(blocks) if block.digest == digest and not is_last)
        last = (index for index in range(len(blocks) - 1, -1, -1) if accepts_breakpoint(blocks[index]))
        index = next(same, next(last, None))
        return None if index is None else replace(breakpoint, index=index, node=node)


@dataclass(slots=True)
class Continuation:
    """How a call would have gone on from an earlier one: the `places` of its messages, and those that `changed`, as
    pairs (as sent before, as sent now)."""

    places: dict[Thread, Thread] = field(default_factory=dict)
    changed: list[tuple[Message, Message]] = field(default_factory=list)


def go_on(before: Thread, now: Thread, keeps_inserted: bool = True) -> Continuation:
    """The thread `now` as a continuation of `before`: what both have stays as it was, what is new comes at the end.

    Without `keeps_inserted` what stands before messages that both have is left out: the summary of a compaction.
    """
    start = now.common(before)
    made, new = _place_known(_after(before, start), _after(now, start))
    last_known = max((number for number, node in enumerate(new) if node in made.places), default=len(new) - 2)
    end = before
    for number, node in enumerate(new):
        if node not in made.places and (keeps_inserted or number > last_known):
            assert node.message is not None
            end = made.places[node] = end.then(node.message)
    made.places[now] = end
    return made


def _place_known(was: Sequence[Thread], new: Sequence[Thread]) -> tuple[Continuation, Sequence[Thread]]:
    """The messages that were sent before, as they are or as versions of what was in their place."""
    made = Continuation()
    for kind, i, j, k, m in SequenceMatcher(None, _digests(was), _digests(new), autojunk=False).get_opcodes():
        if kind == "equal":
            made.places.update(zip(new[k:m], was[i:j], strict=True))
        for old, node in zip(was[i:j], new[k:m], strict=False) if kind == "replace" else ():
            if old.message and node.message and _are_versions(old.message, node.message):
                made.places[node] = old
                made.changed.append((old.message, node.message))
    return made, new


def _are_versions(old: Message, new: Message) -> bool:
    """Whether more than half of the blocks of one message are those of the other, or versions of them."""
    if old.role != new.role:
        return False
    known = {block.digest for block in old.blocks}
    pairs = zip(old.blocks, new.blocks, strict=False)
    alike = sum(b.digest in known or are_versions(a, b) for a, b in pairs)
    return 2 * alike > min(len(old.blocks), len(new.blocks))


def _after(thread: Thread, start: Thread) -> list[Thread]:
    nodes = []
    node = thread
    while node is not start and node.parent is not None:
        nodes.append(node)
        node = node.parent
    return nodes[::-1]


def _digests(nodes: Sequence[Thread]) -> list[bytes]:
    return [node.message.digest if node.message else b"" for node in nodes]
