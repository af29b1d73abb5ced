"""Cutting a conversation to a smaller model's window, as jp does for the questions it asks elsewhere.

jp (crates/jp_llm/src/window.rs, read as of 2026-08-22) estimates three characters a token. Where tools,
system and messages pass 90 % of the window it drops the oldest messages until 80 % are left; what must
go is rounded up to tenths of that target, so that the cut stays where it is while the conversation grows.
Characters are taken as `Block.size`, the bytes of a block's compact JSON (four a token for given counts).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from cachecost.prompts.blocks import Message, Part, Thread

CHARS_PER_TOKEN = 3
BUDGET_PERCENT = 90
TARGET_PERCENT = 80
GRANULES = 10


class Window:
    """The threads of one conversation, cut to `tokens`. Work is for new messages, until the cut moves."""

    def __init__(self, tokens: int, head: Iterable[Part] = ()) -> None:
        overhead = sum(block.size for part in head for block in part.blocks)
        self.budget = max(tokens * CHARS_PER_TOKEN * BUDGET_PERCENT // 100 - overhead, 0)
        self.target = max(tokens * CHARS_PER_TOKEN * TARGET_PERCENT // 100 - overhead, 0)
        self._messages: list[Message] = []
        self._ends: list[int] = []
        self._humans: list[int] = []
        self._seen: Thread | None = None
        self._root = Thread()
        self._kept = self._root
        self._cut = self._upto = 0

    def fit(self, thread: Thread) -> Thread:
        """`thread`, or what is left of it: from a human message on, or nothing. Ask about growing threads only."""
        self._learn(thread)
        total = self._ends[-1] if self._ends else 0
        return thread if total <= self.budget else self._from(self._first_kept(total))

    def _learn(self, thread: Thread) -> None:
        new: list[Message] = []
        for node in thread.back():
            if node is self._seen:
                break
            assert node.message is not None
            new.append(node.message)
        self._seen = thread
        for message in reversed(new):
            self._append(message)

    def _append(self, message: Message) -> None:
        if message.is_human:
            self._humans.append(len(self._messages))
        self._messages.append(message)
        before = self._ends[-1] if self._ends else 0
        self._ends.append(before + sum(block.size for block in message.blocks))

    def _first_kept(self, total: int) -> int:
        """What stays must begin with a human message: results without their call are dropped, too."""
        granule = max(self.target // GRANULES, 1)
        surplus = -(-(total - self.target) // granule) * granule
        dropped = bisect_left(self._ends, surplus) + 1
        human = bisect_left(self._humans, dropped)
        return self._humans[human] if human < len(self._humans) else len(self._messages)

    def _from(self, cut: int) -> Thread:
        if cut != self._cut:
            self._cut = self._upto = cut
            self._kept = self._root
        for message in self._messages[self._upto :]:
            self._kept = self._kept.then(message)
        self._upto = len(self._messages)
        return self._kept
