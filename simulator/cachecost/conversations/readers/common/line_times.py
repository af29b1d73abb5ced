"""When the calls of a file start, read from its lines without what was sent: a look at a log before it is read.

Only for formats whose lines are passed on one by one. A line that cannot be understood ends it: its reader says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from cachecost.conversations.line_buffer import BufferLine, lines_in_place
from cachecost.conversations.start_times import StartTimes
from cachecost.prompts.wire import NotAMessage

FIRST = re.compile(rb'\s*\{\s*"timestamp"\s*:\s*"([^"\\]*)"\s*[,}]')
"""A line that begins with its time, as most do: the rest of it is not looked at."""

SOMETHING = re.compile(rb"\S")


class _LineTimes(msgspec.Struct):
    """What of a line tells when its call began; in a recording of ours only lines with `call` are calls."""

    timestamp: str | None = None
    start_s: float | None = None
    call: int | None = None


class _TraceLine(msgspec.Struct):
    """A line of a Mooncake trace."""

    timestamp: float


def request_log_times(path: Path) -> Iterator[float]:
    """Of a request log, as `Starts` has them."""
    starts, decoder = StartTimes(), msgspec.json.Decoder(_LineTimes)
    for line in _lines(path):
        first = FIRST.match(line.buffer, line.start, line.stop)
        yield starts.next(first[1].decode() if first else decoder.decode(_bytes(line)).timestamp)


def recording_times(path: Path) -> Iterator[float]:
    """Of a recording of calls of ours."""
    starts, decoder = StartTimes(), msgspec.json.Decoder(_LineTimes)
    for line in _lines(path):
        timed = decoder.decode(_bytes(line))
        if timed.call is not None:
            yield starts.next(timed.timestamp, timed.start_s)


def trace_times(path: Path) -> Iterator[float]:
    """Of a Mooncake trace."""
    decoder = msgspec.json.Decoder(_TraceLine)
    for line in _lines(path):
        yield decoder.decode(_bytes(line)).timestamp


def _lines(path: Path) -> Iterator[BufferLine]:
    return (line for line in lines_in_place(path) if SOMETHING.search(line.buffer, line.start, line.stop))


def _bytes(line: BufferLine) -> memoryview:
    return memoryview(line.buffer)[line.start : line.stop]


Times = Callable[[Path], Iterator[float]]


def stop_at_unclear(times: Times) -> Times:
    """The same, ended by the first line that cannot be understood."""

    def read(path: Path) -> Iterator[float]:
        try:
            yield from times(path)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, NotAMessage):
            return

    return read


TIMES: Mapping[str, Times] = {
    name: stop_at_unclear(times)
    for name, times in (("request-log", request_log_times), ("calls", recording_times), ("mooncake", trace_times))
}
"""By the name of the format; the calls of all other formats are held in memory anyway."""
