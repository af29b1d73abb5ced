"""A growing log repeats its own prefix in each line: the bytes of a conversation as last seen, to find them again.

What a line means is defined by its whole parse alone (`RequestLog`). A shorter way to the same result is to cut out
of the line those messages that the last line of its conversation had, byte for byte, to put `CUT` in their place, and
to parse what is left. That is the same because of what holds here:

- the cut is one or more whole elements of a JSON array with what separates them, each parsed before, so that the line
  is valid JSON exactly when what is left of it is;
- `CUT` comes out as the first element of the messages, which is no message, and it occurs once: the cut was made in the
  array that counts, and nowhere else (in a text, in a tool, in the first of two `messages`);
- whoever finds anything unusual in what is left, a fault included, parses the whole line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from cachecost.conversations.line_buffer import Line
from cachecost.prompts.intake import Trail

CUT = b"-0.0e-000007"
"""A number that nobody writes, in the place of what was cut out."""
ARRAY = re.compile(rb'"messages"\s*:\s*\[\s*')
BETWEEN = re.compile(rb"\s*,\s*")
OPENING_BYTES = 80
"""Conversations are looked up by as much of their first message: few share it, and no mark stands so early in most."""
MOST_BYTES = 24 << 20
"""Of all conversations that are kept; the least recent goes first. Nearly all memory of reading a log."""
MOST_LINES = 1000
"""After which a conversation that none of them went on with is forgotten: should it come back, one line is parsed."""
MARKS_MOVE_IN = 8
"""Messages at the end in which the next line may have its marks elsewhere."""


class Grown(msgspec.Struct, eq=False):
    """A conversation as its last line had it.

    `settled` are the bytes of its first messages with what separates them, `ends` where each of them ends; `loose`
    are the bytes of each message after those, up to the last, with what stands before it. `trail` has all of them.
    `kept` counts the lines up to the last that had it.
    """

    opening: bytes
    trail: Trail
    settled: bytearray = msgspec.field(default_factory=bytearray)
    ends: list[int] = msgspec.field(default_factory=list)
    loose: list[bytes] = msgspec.field(default_factory=list)
    size: int = 0
    kept: int = 0

    def same(self, line: Line, at: int) -> tuple[int, int]:
        """(messages, position after them) that `line` repeats from `at` on."""
        _, buffer, _, stop = line
        if not buffer.startswith(self.settled, at, stop):
            return self._less(line, at)
        at += len(self.settled)
        messages = len(self.ends)
        for text in self.loose:
            if not buffer.startswith(text, at, stop):
                break
            at += len(text)
            messages += 1
        return messages, at

    def _less(self, line: Line, at: int) -> tuple[int, int]:
        """As `same`, where a settled message differs: by halving, so that each byte is looked at twice at most."""
        low, high, known = 0, len(self.ends), 0
        with memoryview(self.settled) as settled:
            while low < high:
                middle = (low + high) // 2
                end = self.ends[middle]
                with settled[known:end] as part:
                    is_same = line.buffer.startswith(part, at + known, line.stop)
                low, high, known = (middle + 1, high, end) if is_same else (low, middle, known)
        return low, at + known

    def cut(self, messages: int) -> None:
        """Forget all but the first `messages`."""
        settled = len(self.ends)
        if messages < settled:
            del self.ends[messages:]
            del self.settled[self.ends[-1] if self.ends else 0 :]
        del self.loose[max(0, messages - settled) :]

    def settle(self) -> None:
        """Count as settled what stands before the first mark that the next line may have elsewhere."""
        messages = len(self.trail.nodes)
        recent = (mark.node.length - 1 for mark in self.trail.marks if mark.node)
        stable = min((index for index in recent if index >= messages - MARKS_MOVE_IN), default=messages)
        moved = self.loose[: max(0, stable - len(self.ends))]
        for text in moved:
            self.settled += text
            self.ends.append(len(self.settled))
        del self.loose[: len(moved)]
        self.size = len(self.settled) + sum(map(len, self.loose))


class Found(NamedTuple):
    """What a line repeats: `messages` of `talk`, from `start` to `stop` in its buffer."""

    talk: Grown
    messages: int
    start: int
    stop: int


class Growing:
    """The conversations of a log, as far as `MOST_BYTES` hold them, and none that `MOST_LINES` passed by."""

    def __init__(self) -> None:
        self._by_opening: dict[bytes, list[Grown]] = {}
        self._recent: dict[int, Grown] = {}
        self._bytes = 0
        self._lines = 0

    def find(self, line: Line, start: int | None = None) -> Found | None:
        """The conversation that repeats most in `line`; None where it may begin anew.

        `start` is where its first message stands; None: to be looked for.
        """
        if start is None:
            array = ARRAY.search(line.buffer, line.start, line.stop)
            if array is None:
                return None
            start = array.end()
        opening = bytes(line.buffer[start : min(start + OPENING_BYTES, line.stop)])
        best: Found | None = None
        for talk in self._by_opening.get(opening, ()):
            messages, stop = talk.same(line, start)
            if messages and (best is None or messages > best.messages):
                best = Found(talk, messages, start, stop)
            if messages == len(talk.trail.nodes):
                break
        return best

    def begin(self, line: bytes, raws: Sequence[msgspec.Raw], trail: Trail) -> None:
        """Keep a conversation that was parsed whole."""
        for array in ARRAY.finditer(line):
            start = array.end()
            texts = _texts(line, start, raws)
            if texts:
                talk = Grown(line[start : start + OPENING_BYTES], trail, loose=texts)
                self._by_opening.setdefault(talk.opening, []).insert(0, talk)
                self._keep(talk)
                return

    def go_on(self, found: Found, trail: Trail, rest: bytes, at: int, raws: Sequence[msgspec.Raw]) -> int:
        """Keep what `rest` adds to a conversation from `at` on, and with `trail` has become of it; tells where it ends.

        0 where the messages cannot be found there: then the conversation is forgotten.
        """
        talk = found.talk
        texts = _texts(rest, at, raws)
        if texts is None:
            self.forget(talk)
            return 0
        talk.cut(found.messages)
        talk.loose += texts
        talk.trail = trail
        same = self._by_opening[talk.opening]
        if same[0] is not talk:
            same.remove(talk)
            same.insert(0, talk)
        self._keep(talk)
        return at + sum(map(len, texts))

    def forget(self, talk: Grown) -> None:
        if self._recent.pop(id(talk), None) is None:
            return
        self._bytes -= talk.size
        same = self._by_opening[talk.opening]
        same.remove(talk)
        if not same:
            del self._by_opening[talk.opening]

    def _keep(self, talk: Grown) -> None:
        before = talk.size if self._recent.pop(id(talk), None) is not None else 0
        talk.settle()
        self._recent[id(talk)] = talk
        self._bytes += talk.size - before
        self._lines += 1
        talk.kept = self._lines
        oldest = next(iter(self._recent.values()))
        while oldest is not talk and (self._bytes > MOST_BYTES or self._lines - oldest.kept > MOST_LINES):
            self.forget(oldest)
            oldest = next(iter(self._recent.values()))


def _texts(source: bytes, at: int, raws: Sequence[msgspec.Raw]) -> list[bytes] | None:
    """The bytes of each message with what separates it from the one before; None where they do not stand at `at`."""
    texts = []
    for raw in raws:
        start = at
        data = bytes(raw)
        gap = BETWEEN.match(source, at)
        at = gap.end() if gap else at
        if not source.startswith(data, at):
            return None
        at += len(data)
        texts.append(source[start:at])
    return texts
