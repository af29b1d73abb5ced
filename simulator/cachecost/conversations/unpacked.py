"""Files that are packed with gzip, and pipes and devices; most are neither, so this is imported when one is met."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import BadGzipFile
from io import FileIO
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import UNPACKED


class Unpacked(gzip.GzipFile):
    """A gzip file whose damage is a fault of the input wherever it is met, and so is more than `UNPACKED`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._count = Count(path)

    def read(self, size: int | None = -1) -> bytes:
        with self._told():
            return self._count.add(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        with self._told():
            return self._count.add(super().read1(size))

    def readline(self, size: int | None = -1) -> bytes:
        with self._told():
            return self._count.add(super().readline(size))

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (BadGzipFile, EOFError, zlib.error) as error:
            raise InputError([Fault(str(self.name), f"damaged gzip: {error}")]) from None


class Endless(FileIO):
    """A pipe or a device. More than `UNPACKED` is a fault of the input."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._count = Count(path)

    def readinto(self, buffer: Any) -> int | None:
        read = super().readinto(buffer)
        self._count.more(read or 0)
        return read


class Count:
    """The bytes that a file has given so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = UNPACKED.value()

    def add(self, data: bytes) -> bytes:
        """`data`, counted. Raises InputError beyond the limit."""
        self.more(len(data))
        return data

    def more(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise InputError([Fault(str(self._path), str(UNPACKED.error()))])
