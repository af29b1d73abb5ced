"""Files that are packed with gzip; most are not, so this is imported when one is met."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import BadGzipFile

from cachecost.faults import Fault, InputError


class Unpacked(gzip.GzipFile):
    """A gzip file whose damage is a fault of the input wherever it is met."""

    def read(self, size: int | None = -1) -> bytes:
        with self._told():
            return super().read(size)

    def read1(self, size: int = -1) -> bytes:
        with self._told():
            return super().read1(size)

    def readline(self, size: int | None = -1) -> bytes:
        with self._told():
            return super().readline(size)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (BadGzipFile, EOFError, zlib.error) as error:
            raise InputError([Fault(str(self.name), f"damaged gzip: {error}")]) from None
