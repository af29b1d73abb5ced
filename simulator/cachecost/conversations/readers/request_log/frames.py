"""The frame of a line: all of it but its timestamp, which comes first, and its messages.

The lines of one client often have the same frame, so only their messages need parsing. That the two gaps are what they
seem is checked once, when the frame is made: with other texts in the gaps the line must still parse, and these texts
must come out as its timestamp and its messages.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from cachecost.conversations.line_buffer import BufferLine
from cachecost.prompts.intake import BodyHead
from cachecost.prompts.request import Request

TIME = re.compile(rb'\{\s*"timestamp"\s*:\s*"')
LONGEST_TIME = 48
"""Bytes; lines with a longer timestamp are parsed whole."""
MOST_FRAMES = 8
"""How many are kept; the least recently used goes first."""


class FrameBytes(NamedTuple):
    """The bytes of a frame: up to the timestamp, from there to the first message, from the last message on."""

    before: bytes
    after: bytes
    tail: bytes

    def with_gaps(self, timestamp: bytes, messages: bytes) -> bytes:
        return b"".join((self.before, timestamp, self.after, messages, self.tail))


class Gaps(NamedTuple):
    """What a line adds to its frame: the timestamp, and where its messages start and stop."""

    timestamp: str
    start: int
    stop: int


class Frame(NamedTuple):
    """A frame and what it means: the request without its messages, and `row`, the other fields of the call."""

    frame_bytes: FrameBytes
    heads: BodyHead
    request: Request
    row: tuple[Any, ...]

    def gaps(self, line: BufferLine) -> Gaps | None:
        """The timestamp and the messages of `line`; None if it has another frame."""
        _, buffer, start, stop = line
        before, after, tail = self.frame_bytes
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


def frame_bytes_of(rest: bytes, array: int, end: int) -> FrameBytes | None:
    """The frame of a line whose messages are at `array` to `end`; None if the timestamp is not first."""
    opening = TIME.match(rest)
    if opening is None:
        return None
    quote = rest.find(b'"', opening.end(), array)
    return FrameBytes(opening[0], rest[quote:array], rest[end:]) if quote >= 0 else None


class Frames:
    """The frames of a log that were used last."""

    def __init__(self) -> None:
        self._known: list[Frame] = []
        self._seen_once: FrameBytes | None = None

    def find(self, line: BufferLine) -> tuple[Frame, Gaps] | None:
        """The frame of `line`, if it is known."""
        for index, frame in enumerate(self._known):
            gaps = frame.gaps(line)
            if gaps is not None:
                if index:
                    self._known.insert(0, self._known.pop(index))
                return frame, gaps
        return None

    def comes_back(self, frame_bytes: FrameBytes) -> bool:
        """Whether this is the second line in a row with this frame; keeping a frame pays only then."""
        again = frame_bytes == self._seen_once
        self._seen_once = frame_bytes
        return again

    def keep(self, frame: Frame) -> None:
        self._known.insert(0, frame)
        del self._known[MOST_FRAMES:]
