"""Gzip and zstd files, and pipes and devices. Few inputs are one of these, so this module is imported only for them."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import BadGzipFile
from importlib import import_module
from io import BufferedReader, FileIO, RawIOBase
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import UNPACKED


class GzipInput(gzip.GzipFile):
    """A gzip file. Damage anywhere, and more data than `UNPACKED`, raise InputError."""

    def __init__(self, path: Path) -> None:
        stream: Any = path.open("rb")
        self.myfileobj = stream  # closed with this file
        super().__init__(fileobj=stream)
        self._path = path
        self._count = ByteCount(path)

    def read(self, size: int | None = -1) -> bytes:
        with self._input_errors():
            return self._count.add(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        with self._input_errors():
            return self._count.add(super().read1(size))

    def readline(self, size: int | None = -1) -> bytes:
        with self._input_errors():
            return self._count.add(super().readline(size))

    @contextmanager
    def _input_errors(self) -> Iterator[None]:
        try:
            yield
        except (BadGzipFile, EOFError, zlib.error) as error:
            raise InputError([Fault(str(self._path), f"damaged gzip: {error}")]) from None


ZSTD_MODULES = ("compression.zstd", "zstandard")
"""Python's own from 3.14; before, a package that nothing here depends on."""
NO_ZSTD = "is packed with zstd: unpack it (zstd -d), or install zstandard"


class ZstdInput(RawIOBase):
    """A zstd file. Damage anywhere, and more data than `UNPACKED`, raise InputError."""

    def __init__(self, path: Path, module: Any) -> None:
        self._path = path
        self._module = module
        self._open: list[Any] = [path.open("rb")]
        self._open.append(module.open(self._open[0], "rb"))
        self._count = ByteCount(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._count.add(self._open[-1].read(len(buffer)))
        except (EOFError, self._module.ZstdError) as error:
            raise InputError([Fault(str(self._path), f"damaged zstd: {error}")]) from None
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        while self._open:
            self._open.pop().close()
        super().close()


def open_zstd(path: Path) -> BufferedReader:
    """A zstd file, open for reading. Raises InputError where nothing can unpack it."""
    for name in ZSTD_MODULES:
        try:
            module = import_module(name)
        except ImportError:
            continue
        return BufferedReader(ZstdInput(path, module))
    raise InputError([Fault(str(path), NO_ZSTD)])


class EndlessInput(FileIO):
    """A pipe or a device. More data than `UNPACKED` raises InputError."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._count = ByteCount(path)

    def readinto(self, buffer: Any) -> int | None:
        read = super().readinto(buffer)
        self._count.more(read or 0)
        return read


class ByteCount:
    """Counts the bytes read from a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._left = UNPACKED.value()

    def add(self, data: bytes) -> bytes:
        """Count `data` and return it. Raises InputError beyond the limit."""
        self.more(len(data))
        return data

    def more(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise InputError([Fault(str(self._path), str(UNPACKED.error()))])
