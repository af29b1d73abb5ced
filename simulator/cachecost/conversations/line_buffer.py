"""Reads a file into one buffer, piece by piece, and finds its lines there without copying them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cachecost.base.limits import LINE
from cachecost.conversations.input_files import BOM, COMMENT, WATCH, open_input, too_long

PIECE = 1 << 20
"""Bytes of the buffer to begin with; it doubles when a line does not fit."""


class BufferLine(NamedTuple):
    """One line, its newline included: `buffer[start:stop]`. Valid until the next line is read."""

    number: int
    buffer: bytearray
    start: int
    stop: int

    def copy(self) -> bytes:
        """The line as bytes of its own."""
        return bytes(memoryview(self.buffer)[self.start : self.stop])

    def without(self, start: int, stop: int, instead: bytes) -> bytes:
        """A copy with `instead` in place of `buffer[start:stop]`."""
        view = memoryview(self.buffer)
        return b"".join((view[self.start : start], instead, view[stop : self.stop]))


def lines_in_place(path: Path) -> Iterator[BufferLine]:
    """The lines of a file, as `byte_lines` has them. Raises InputError where it cannot be read."""
    watch, most, is_head = WATCH.get(), LINE.value(), True
    buffer, start, filled, number = bytearray(PIECE), 0, 0, 0
    with open_input(path) as stream:
        while True:
            searched = start
            while (end := buffer.find(b"\n", searched, filled) + 1) == 0:
                searched = filled - start
                if start:
                    buffer[:searched] = buffer[start:filled]
                start, filled = 0, searched
                if filled == len(buffer):
                    if filled > most:
                        raise too_long(path, number + 1)
                    buffer = buffer + bytearray(len(buffer))
                read = stream.readinto1(memoryview(buffer)[filled:])
                filled += read
                if not read:
                    break
            end = end or filled
            if end == start:
                return
            number += 1
            if end - start > most:
                raise too_long(path, number)
            watch(end - start)
            line = BufferLine(number, buffer, start, end)
            if is_head:
                line, is_head = _head_line(line)
            yield line
            start = end


def _head_line(line: BufferLine) -> tuple[BufferLine, bool]:
    """A line that may come before the first record, without a byte order mark, empty if it is a comment; whether the
    next one may be another."""
    text = line.copy().removeprefix(BOM)
    is_comment = text.lstrip().startswith(COMMENT)
    return line._replace(start=line.stop if is_comment else line.stop - len(text)), is_comment or text.isspace()
