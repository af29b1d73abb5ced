"""What stands around the messages of a line: lines of one client differ there in their time alone.

A frame is all of a line but its timestamp, which comes first, and its messages. A line in a known frame needs no
parsing but of its messages. That the two gaps are what they seem is tried once, when the frame is made: with other
texts in them it still has to parse, and these have to come out as the timestamp and the messages that count.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from cachecost.conversations.line_buffer import Line
from cachecost.prompts.intake import Heads
from cachecost.prompts.request import Request

TIME = re.compile(rb'\{\s*"timestamp"\s*:\s*"')
LONGEST_TIME = 48
"""Bytes of a timestamp that is looked for; a longer one is parsed."""
MOST_FRAMES = 8
"""How many are kept; the one used longest ago goes first."""


class Around(NamedTuple):
    """The bytes of a frame: up to the timestamp, from there to the first message, from the last message on."""

    before: bytes
    after: bytes
    tail: bytes

    def with_gaps(self, timestamp: bytes, messages: bytes) -> bytes:
        return b"".join((self.before, timestamp, self.after, messages, self.tail))


class Gaps(NamedTuple):
    """Where a line differs from its frame: the timestamp, and from where to where its messages stand."""

    timestamp: str
    start: int
    stop: int


class Frame(NamedTuple):
    """A frame and what it says: the request, less its messages, and `call`, which is the rest of the row."""

    around: Around
    heads: Heads
    request: Request
    row: tuple[Any, ...]

    def gaps(self, line: Line) -> Gaps | None:
        """Where the timestamp and the messages of `line` are; None if it has another frame."""
        _, buffer, start, stop = line
        before, after, tail = self.around
        if not buffer.startswith(before, start, stop):
            return None
        start += len(before)
        end = buffer.find(b'"', start, min(start + LONGEST_TIME, stop))
        messages, stop = end + len(after), stop - len(tail)
        if end < 0 or messages > stop or not buffer.startswith(after, end) or not buffer.startswith(tail, stop):
            return None
        time = buffer[start:end]
        text = time.decode("ascii", "replace")
        return Gaps(text, messages, stop) if text.isprintable() and text.isascii() and "\\" not in text else None


def around_of(rest: bytes, array: int, end: int) -> Around | None:
    """What stands around the messages of a line, which are at `array` to `end`; None where its time is not first."""
    opening = TIME.match(rest)
    if opening is None:
        return None
    quote = rest.find(b'"', opening.end(), array)
    return Around(opening[0], rest[quote:array], rest[end:]) if quote >= 0 else None


class Frames:
    """The frames of a log that were used last."""

    def __init__(self) -> None:
        self._known: list[Frame] = []
        self._seen_once: Around | None = None

    def find(self, line: Line) -> tuple[Frame, Gaps] | None:
        """The frame of `line`, if it is known."""
        for index, frame in enumerate(self._known):
            gaps = frame.gaps(line)
            if gaps is not None:
                if index:
                    self._known.insert(0, self._known.pop(index))
                return frame, gaps
        return None

    def comes_back(self, around: Around) -> bool:
        """Whether this is the second line in a row in this frame: only then it pays to keep it."""
        again = around == self._seen_once
        self._seen_once = around
        return again

    def keep(self, frame: Frame) -> None:
        self._known.insert(0, frame)
        del self._known[MOST_FRAMES:]
