"""A content-free recording, written call by call."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path

from cachecost.base.file_locks import InUse
from cachecost.conversations.block_table import BlockWriter
from cachecost.conversations.call_recording import Title, records
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.content_free import ContentFree
from cachecost.conversations.recording import encode_record
from cachecost.live.line_file import LineFile, last_line_end, lines_in
from cachecost.prompts.wire import text_block
from cachecost.tokens.raw import count_content

KEY_BYTES = 32
WAITS, WAIT_S = 100, 0.01
CALL = b'{"call":'
"""The start of a call's line; calls refer to the other lines of the file."""


class DigestFile:
    """The recording at `path`, under a random key that is not stored, so no later process can continue it.

    Later lines refer to earlier ones, so what the disk rejects is kept and written before the next call.
    `unwritten` are the numbers of its calls. One that `follows` makes the lines that another process writes, and can
    take its place. The tokenizers are loaded before the first call.
    """

    def __init__(self, path: Path, key: bytes, follows: bool = False) -> None:
        self._path = path
        self._file = None if follows else LineFile(path)
        self._calls: deque[RecordedCall] = deque()
        count_content(text_block("user", "a"))
        table = BlockWriter(ContentFree(key), count_content)
        self._records = records(Title(path.stem), iter(self._calls.popleft, None), table)
        self._lines = b""
        self.unwritten: list[int] = []

    def add(self, number: int, call: RecordedCall) -> bytes:
        """Make the lines of a call, for `write`; returns them."""
        self._calls.append(call)
        made, is_whole = b"", False
        while not is_whole:
            record = next(self._records)
            made += encode_record(record)
            is_whole = "call" in record
        self._lines += made
        self.unwritten.append(number)
        return made

    @property
    def follows(self) -> bool:
        return self._file is None

    def take_over(self) -> None:
        """Go on where the other process has stopped, be it within a line. Raises OSError, InUse."""
        for left in reversed(range(WAITS)):
            if self._file is not None:
                return
            try:
                self._file = LineFile(self._path)
                self._lines = self._lines[self._file.size :]
            except InUse:  # a process that was killed holds its files a moment longer than its pipes
                if not left:
                    raise
                time.sleep(WAIT_S)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def write(self) -> list[int]:
        """Write pending lines and return the numbers of their calls. Raises OSError; the lines are then kept."""
        if self._file is None:
            return []
        if self._lines:
            self._file.append(self._lines)
        written, self.unwritten, self._lines = self.unwritten, [], b""
        return written


def calls_in(path: Path) -> int:
    """How many calls the recording has."""
    return lines_in(path, prefix=CALL)


def cut_torn_line(path: Path) -> None:
    """Remove an incomplete last line, left by a killed writer. Raises OSError."""
    with path.open("rb+") as stream:
        size = path.stat().st_size
        stream.truncate(last_line_end(stream, size))


def free_place(path: Path) -> Path:
    """`path`, or NAME-2, NAME-3 … in its folder if it exists."""
    number, place = 1, path
    while place.exists():
        number += 1
        place = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return place
