"""BLAKE2 without OpenSSL, which takes milliseconds to load: a status line has few of them.

Beside it: bytes that are read seldom and kept to the end, in memory first, in an unnamed file where they become many,
and draws that a seed decides, and no generator's state.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Any, BinaryIO
from weakref import finalize, ref

import msgspec

try:
    from _blake2 import blake2b  # as `random` does
except ImportError:  # missing in some Pythons
    from hashlib import blake2b

__all__ = ["blake2b"]


SHORT = 64
"""Bytes that are kept as they are: a reference to elsewhere takes as much memory."""
MOST_IN_MEMORY = 8 << 20
WRITTEN_AT_ONCE = 1 << 20
OpenFile = Callable[[], BinaryIO]


class _Settings:
    open_file: OpenFile | None = None
    current: Callable[[], ByteStore | None] = lambda: None


def allow_file(open_file: OpenFile | None) -> None:
    """Let the bytes that are kept from now on go to a file without name and buffer that `open_file` opens."""
    _Settings.open_file = open_file
    _Settings.current = lambda: None


def keep_bytes(data: bytes) -> bytes | StoredBytes:
    """The bytes, or where they are kept: `read_bytes` reads either."""
    if _Settings.open_file is None or len(data) <= SHORT:
        return data
    store = _Settings.current()
    if store is None or store.process != os.getpid():  # a forked process does not write to the file of its parent
        store = ByteStore(_Settings.open_file)
        _Settings.current = ref(store)
    return store.add(data)


def read_bytes(kept: bytes | StoredBytes) -> bytes:
    """The bytes that `keep_bytes` was called with."""
    return kept.store.read(kept.start, kept.size) if type(kept) is StoredBytes else kept  # type: ignore[return-value]


class StoredBytes(msgspec.Struct, frozen=True, eq=False, gc=False):
    """A place in a `ByteStore`, which lives as long as any of them. It is pickled as its bytes."""

    store: ByteStore
    start: int
    size: int

    def __reduce__(self) -> tuple[Any, ...]:
        return bytes, (read_bytes(self),)


class ByteStore:
    """Bytes one after another, the last of them in memory."""

    def __init__(self, open_file: OpenFile) -> None:
        self.process = os.getpid()
        self._open_file = open_file
        self._file: BinaryIO | None = None
        self._recent = bytearray()
        self._written = 0
        """Bytes in the file, which are those before `_recent`."""
        self._most = MOST_IN_MEMORY
        self._lock = Lock()

    def add(self, data: bytes) -> StoredBytes:
        """Keep the bytes after those before."""
        with self._lock:
            start = self._written + len(self._recent)
            self._recent += data
            if len(self._recent) > self._most:
                self._write_recent()
        return StoredBytes(self, start, len(data))

    def read(self, start: int, size: int) -> bytes:
        """The bytes at this place. Raises OSError where the file cannot be read."""
        with self._lock:
            inside = start - self._written
            if inside >= 0 or self._file is None:
                return bytes(self._recent[inside : inside + size])
            return os.pread(self._file.fileno(), size, start)

    def _write_recent(self) -> None:
        """Move what is in memory to the file; on a full disk all of it stays there."""
        try:
            if self._file is None:
                self._file = self._open_file()
                finalize(self, self._file.close)
            rest = memoryview(self._recent)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError:
            self._most = 1 << 62
            return
        self._written += len(self._recent)
        self._recent = bytearray()
        self._most = WRITTEN_AT_ONCE


def seeded_share(seed: int, what: str, number: int) -> float:
    """A reproducible share in [0, 1) for the `number`-th time that `what` is drawn."""
    from hashlib import blake2b

    digest = blake2b(f"{seed}:{what}:{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
