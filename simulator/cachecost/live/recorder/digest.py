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
from cachecost.live.line_file import LineFile, lines_in
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
    finish the file. The tokenizers are loaded before the first call.
    """

    def __init__(self, path: Path, key: bytes, follows: bool = False) -> None:
        self._path = path
        self._file = None if follows else LineFile(path)
        self._calls: deque[RecordedCall] = deque()
        count_content(text_block("user", "a"))
        table = BlockWriter(ContentFree(key), count_content)
        self._records = records(Title(path.stem), iter(self._calls.popleft, None), table)
        self._lines, self._size = b"", 0
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

    def forget(self, size: int) -> None:
        """The other process has written so many bytes of the file."""
        self._lines, self._size = self._lines[size - self._size :], size

    def take_over(self) -> None:
        """Write what the other process has not, be it from within a line; nothing into a file that was moved or cut.
        Raises OSError, InUse.
        """
        if self._path.stat().st_size < self._size:
            return
        for left in reversed(range(WAITS)):
            try:
                self._file = LineFile(self._path)
            except InUse:  # a process that was killed holds its files a moment longer than its pipes
                if not left:
                    raise
                time.sleep(WAIT_S)
            else:
                self.forget(self._file.size)
                self.write()
                return

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def waiting(self) -> int:
        """Bytes that are not written."""
        return len(self._lines)

    def write(self) -> int:
        """Write pending lines and return the size of the file. Raises OSError; the lines are then kept."""
        assert self._file is not None
        if self._lines:
            self._file.append(self._lines)
        self.unwritten, self._lines = [], b""
        return self._file.size


def calls_in(path: Path) -> int:
    """How many calls the recording has."""
    return lines_in(path, prefix=CALL)


def free_place(path: Path) -> Path:
    """`path`, or NAME-2, NAME-3 … in its folder if it exists."""
    number, place = 1, path
    while place.exists():
        number += 1
        place = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return place
