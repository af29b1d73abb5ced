"""Finds in a line the bytes of its conversation that earlier lines had: a growing log repeats its prefix in each line.

What a line means is defined by its whole parse alone (`RequestLog`). The same result comes faster: cut out of
the line the messages that the last line of its conversation had, byte for byte, put `CUT` in their place, and parse
what is left. The results are equal because:

- the cut is one or more whole elements of a JSON array with what separates them, each parsed before, so that the line
  is valid JSON exactly when what is left of it is;
- `CUT` comes out as the first element of the messages, which is no message, and it occurs once: the cut was made in the
  array that counts, and nowhere else (in a text, in a tool, in the first of two `messages`);
- anything unusual in what is left, an error included, makes the reader parse the whole line.

The frame of a line: all of it but its timestamp, which comes first, and its messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from cachecost.conversations.start_times import BufferLine
from cachecost.prompts.intake import BodyHead, MessageTrail
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

    def repeated(self, rest: bytes, array: int, end: int) -> FrameBytes | None:
        """The frame of a line whose messages are at `array` to `end`, if the timestamp is first and the last line had
        the frame, too: keeping one pays only then."""
        opening = TIME.match(rest)
        quote = rest.find(b'"', opening.end(), array) if opening else -1
        if opening is None or quote < 0:
            return None
        before, self._seen_once = self._seen_once, FrameBytes(opening[0], rest[quote:array], rest[end:])
        return self._seen_once if self._seen_once == before else None

    def keep(self, frame: Frame) -> None:
        self._known.insert(0, frame)
        del self._known[MOST_FRAMES:]


CUT = b"-0.0e-000007"
"""A number that no client writes, in place of what was cut out."""
ARRAY = re.compile(rb'"messages"\s*:\s*\[\s*')
BETWEEN = re.compile(rb"\s*,\s*")
OPENING_BYTES = 80
"""Conversations are looked up by this much of their first message: few share it, and it rarely has a breakpoint."""
MOST_BYTES = 24 << 20
"""Of all conversations that are kept; the least recent goes first. This is nearly all memory of reading a log."""
MOST_LINES = 1000
"""After so many lines without it a conversation is dropped; if it comes back, one line is parsed whole."""
BREAKPOINTS_MOVE_IN = 8
"""Messages at the end in which the next line may place its breakpoints elsewhere."""


class KnownConversation(msgspec.Struct, eq=False):
    """A conversation as of its last line.

    `settled` are the bytes of its first messages with what separates them, `ends` where each of them ends; `loose`
    are the bytes of each message after those, up to the last, with what stands before it. `trail` has all of them.
    `kept` counts the lines up to the last that had it. Until a line repeats it, its bytes are those of its line, and
    `unsplit` is (line, where its messages begin, these): many conversations have one call.
    """

    opening: bytes
    trail: MessageTrail
    unsplit: tuple[bytes, int, Sequence[msgspec.Raw]] | None = None
    settled: bytearray = msgspec.field(default_factory=bytearray)
    ends: list[int] = msgspec.field(default_factory=list)
    loose: list[bytes] = msgspec.field(default_factory=list)
    size: int = 0
    kept: int = 0

    def count_repeated(self, line: BufferLine, at: int) -> tuple[int, int]:
        """(messages, position after them) that `line` repeats from `at` on."""
        if self.unsplit is not None:
            self.loose, self.unsplit = _message_texts(*self.unsplit) or [], None
        _, buffer, _, stop = line
        if not buffer.startswith(self.settled, at, stop):
            low, high, known = 0, len(self.ends), 0
            with memoryview(self.settled) as settled:
                while low < high:
                    middle = (low + high) // 2
                    end = self.ends[middle]
                    with settled[known:end] as part:
                        is_same = line.buffer.startswith(part, at + known, line.stop)
                    low, high, known = (middle + 1, high, end) if is_same else (low, middle, known)
            return low, at + known
        at += len(self.settled)
        messages = len(self.ends)
        for text in self.loose:
            if not buffer.startswith(text, at, stop):
                break
            at += len(text)
            messages += 1
        return messages, at

    def cut(self, messages: int) -> None:
        """Keep only the first `messages`."""
        settled = len(self.ends)
        if messages < settled:
            del self.ends[messages:]
            del self.settled[self.ends[-1] if self.ends else 0 :]
        del self.loose[max(0, messages - settled) :]

    def settle(self) -> None:
        """Settle what comes before the first breakpoint that the next line may place elsewhere."""
        if self.unsplit is not None:
            self.size = len(self.unsplit[0])
            return
        messages = len(self.trail.nodes)
        recent = (breakpoint.node.length - 1 for breakpoint in self.trail.breakpoints if breakpoint.node)
        stable = min((index for index in recent if index >= messages - BREAKPOINTS_MOVE_IN), default=messages)
        moved = self.loose[: max(0, stable - len(self.ends))]
        for text in moved:
            self.settled += text
            self.ends.append(len(self.settled))
        del self.loose[: len(moved)]
        self.size = len(self.settled) + sum(map(len, self.loose))


class Repeat(NamedTuple):
    """The part of a line that repeats `messages` of a conversation: `start` to `stop` in its buffer."""

    conversation: KnownConversation
    messages: int
    start: int
    stop: int


class IncrementalParser:
    """The recent conversations of a log, within `MOST_BYTES` and `MOST_LINES`."""

    def __init__(self) -> None:
        self._by_opening: dict[bytes, list[KnownConversation]] = {}
        self._recent: dict[int, KnownConversation] = {}
        self._bytes = 0
        self._lines = 0

    def find(self, line: BufferLine, start: int | None = None) -> Repeat | None:
        """The conversation that `line` repeats most of; None if it may be a new one.

        `start` is where the first message starts (None: search it).
        """
        if start is None:
            array = ARRAY.search(line.buffer, line.start, line.stop)
            if array is None:
                return None
            start = array.end()
        opening = bytes(line.buffer[start : min(start + OPENING_BYTES, line.stop)])
        best: Repeat | None = None
        for conversation in self._by_opening.get(opening, ()):
            messages, stop = conversation.count_repeated(line, start)
            if messages and (best is None or messages > best.messages):
                best = Repeat(conversation, messages, start, stop)
            if messages == len(conversation.trail.nodes):
                break
        return best

    def begin(self, line: bytes, raws: Sequence[msgspec.Raw], trail: MessageTrail) -> None:
        """Remember a conversation that was parsed whole."""
        for array in ARRAY.finditer(line):
            start = array.end()
            if raws and line.startswith(bytes(raws[0]), start):
                conversation = KnownConversation(line[start : start + OPENING_BYTES], trail, (line, start, raws))
                self._by_opening.setdefault(conversation.opening, []).insert(0, conversation)
                self._keep(conversation)
                return

    def go_on(self, repeat: Repeat, trail: MessageTrail, rest: bytes, at: int, raws: Sequence[msgspec.Raw]) -> int:
        """Add what `rest` has from `at` on to a conversation, whose trail is then `trail`. Returns where that ends.

        0 if the messages are not there; then the conversation is dropped.
        """
        conversation = repeat.conversation
        texts = _message_texts(rest, at, raws)
        if texts is None:
            self.forget(conversation)
            return 0
        conversation.cut(repeat.messages)
        conversation.loose += texts
        conversation.trail = trail
        alike = self._by_opening[conversation.opening]
        if alike[0] is not conversation:
            alike.remove(conversation)
            alike.insert(0, conversation)
        self._keep(conversation)
        return at + sum(map(len, texts))

    def forget(self, conversation: KnownConversation) -> None:
        if self._recent.pop(id(conversation), None) is None:
            return
        self._bytes -= conversation.size
        alike = self._by_opening[conversation.opening]
        alike.remove(conversation)
        if not alike:
            del self._by_opening[conversation.opening]

    def _keep(self, conversation: KnownConversation) -> None:
        before = conversation.size if self._recent.pop(id(conversation), None) is not None else 0
        conversation.settle()
        self._recent[id(conversation)] = conversation
        self._bytes += conversation.size - before
        self._lines += 1
        conversation.kept = self._lines
        oldest = next(iter(self._recent.values()))
        while oldest is not conversation and (self._bytes > MOST_BYTES or self._lines - oldest.kept > MOST_LINES):
            self.forget(oldest)
            oldest = next(iter(self._recent.values()))


def _message_texts(source: bytes, at: int, raws: Sequence[msgspec.Raw]) -> list[bytes] | None:
    """The bytes of each message with the separator before it; None if they are not at `at`."""
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
