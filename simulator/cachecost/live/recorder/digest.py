"""A content-free recording, written call by call."""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from cachecost.conversations.block_table import BlockWriter
from cachecost.conversations.call_recording import Title, records
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.content_free import ContentFree
from cachecost.conversations.recording import encode_record
from cachecost.live.line_file import LineFile, last_line_end, lines_in
from cachecost.tokens.raw import count_content

KEY_BYTES = 32
CALL = b'{"call":'
"""How the line of a call begins; the other lines of such a file are what calls refer to."""


class DigestFile:
    """The recording at `path`, under a random key that nobody keeps: no other process can go on with it.

    Later lines refer to earlier ones. So what the disk does not take is kept and written before the next call.
    """

    def __init__(self, path: Path) -> None:
        self._file = LineFile(path)
        self._calls: deque[RecordedCall] = deque()
        table = BlockWriter(ContentFree(os.urandom(KEY_BYTES)), count_content)
        self._records = records(Title(path.stem), iter(self._calls.popleft, None), table)
        self._unwritten = b""
        self._numbers: list[int] = []

    def add(self, number: int, call: RecordedCall) -> None:
        """Make the lines of a call; `write` puts them down."""
        self._calls.append(call)
        is_whole = False
        while not is_whole:
            record = next(self._records)
            self._unwritten += encode_record(record)
            is_whole = "call" in record
        self._numbers.append(number)

    def write(self) -> list[int]:
        """Write what is not written yet, at once; the numbers of these calls. Raises OSError: they are kept."""
        if self._unwritten:
            self._file.append(self._unwritten)
        written, self._numbers, self._unwritten = self._numbers, [], b""
        return written


def calls_in(path: Path) -> int:
    """How many calls such a recording holds."""
    return lines_in(path, prefix=CALL)


def cut_torn_line(path: Path) -> None:
    """Cut off what a writer that was killed left of its last line. Raises OSError."""
    with path.open("rb+") as stream:
        size = path.stat().st_size
        stream.truncate(last_line_end(stream, size))


def free_place(path: Path) -> Path:
    """`path`, or NAME-2, NAME-3 … beside it where there is a file already."""
    number, place = 1, path
    while place.exists():
        number += 1
        place = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return place
