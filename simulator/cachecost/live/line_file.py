"""A file of lines that is valid at any moment, even on a full disk.

Lines are appended with one write. What an incomplete write left is cut off before the next one. Killing the writer
loses at most the line being written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from cachecost.base.errors import Fault, InputError
from cachecost.base.file_locks import InUse, lock_file

CHUNK = 1 << 16


class LineFile:
    """The file at `path`, opened for appending and locked; created if missing, readable by the user only.

    `begin` is its size when it was opened. Raises OSError, InUse.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        self._torn_at: int | None = None
        try:
            lock_file(self._file)
        except BaseException:
            os.close(self._file)
            raise
        self.begin = self.size

    @property
    def size(self) -> int:
        return os.fstat(self._file).st_size

    def append(self, lines: bytes) -> int:
        """Write whole lines and return their offset. Raises OSError; the file is then unchanged."""
        self._cut_torn()
        begin = self.size
        try:
            _write(self._file, lines)
        except OSError as error:
            error.filename = str(self.path)
            self._torn_at = begin
            with suppress(OSError):
                self._cut_torn()
            raise
        return begin

    def cut(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        os.ftruncate(self._file, size)

    def _cut_torn(self) -> None:
        if self._torn_at is not None:
            self.cut(self._torn_at)
            self._torn_at = None

    def sync(self) -> None:
        """Ask the disk to hold what was written. Raises OSError."""
        os.fsync(self._file)

    def close(self) -> None:
        with suppress(OSError):
            self._cut_torn()
        os.close(self._file)


@contextmanager
def input_errors(path: Path, in_use: str) -> Iterator[None]:
    """Raises InputError instead of OSError and InUse; `in_use` says who else writes the file."""
    try:
        yield
    except OSError as error:
        raise InputError([Fault(str(path), f"cannot be written: {error.strerror}")]) from None
    except InUse:
        raise InputError([Fault(str(path), in_use)]) from None


def lines_in(path: Path, begin: int = 0, prefix: bytes = b"") -> int:
    """How many complete lines after offset `begin` start with `prefix`; 0 without a file."""
    try:
        with path.open("rb") as stream:
            stream.seek(begin)
            return sum(line.startswith(prefix) and line.endswith(b"\n") for line in stream)
    except OSError:
        return 0


def last_line_end(stream: BinaryIO, size: int) -> int:
    """The offset after the last complete line; 0 if there is none."""
    end = size
    while end > 0:
        begin = max(0, end - CHUNK)
        stream.seek(begin)
        found = stream.read(end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _write(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
