"""Remembers on disk what was read of session files, so that a file is read once and then only where it has grown.

An SQLite database with a row a file. It can be deleted at any time. Several processes may use it at once: a process
that finds it locked reads the files itself. It holds what bills need (usage, times, ids, folders), no conversation.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from zlib import crc32

import msgspec

from cachecost.base.digests import blake2b
from cachecost.base.version import __version__

CONTENT = 5
"""To be raised when a reader changes what it reads."""
VERSION = crc32(f"{CONTENT} {__version__}".encode()) & 0x7FFFFFFF
"""A store of other content, or of another version of cachecost, is emptied."""
APPLICATION = 0x63616368
"""Marks the file as ours (SQLite's application_id), so that no other database is ever touched."""
APPLICATION_OFFSET, HEADER_BYTES = 68, 72
"""Where it stands in the file (sqlite.org/fileformat.html)."""
FOREIGN = "it is another program's file"
BUSY_S = 2.0
CHECKSUM_BYTES = 8
SCHEMA = """
DROP TABLE IF EXISTS files;
DROP TABLE IF EXISTS states;
CREATE TABLE files (
    path TEXT PRIMARY KEY, inode INTEGER, size INTEGER, mtime_ns INTEGER, tail BLOB, sessions BLOB, checksum BLOB
);
CREATE TABLE states (path TEXT PRIMARY KEY, state BLOB, checksum BLOB);
"""
"""A checksum is over the other columns: SQLite does not notice a flipped bit in a value. States stand apart: they are
large, and read only for files that have grown.
"""


def _check_owner(path: Path) -> None:
    """Raises sqlite3.DatabaseError for a file of another program, before SQLite opens (and may change) it."""
    if not path.exists():
        return
    with path.open("rb") as stream:
        header = stream.read(HEADER_BYTES)
    if header and int.from_bytes(header[APPLICATION_OFFSET:], "big") != APPLICATION:
        raise sqlite3.DatabaseError(FOREIGN)


def _checksum(*values: object) -> bytes:
    """Of the columns of a row, each with its type and length."""
    digest = blake2b(digest_size=CHECKSUM_BYTES)
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
        digest.update(f"{type(value).__name__} {len(data)} ".encode())
        digest.update(data)
    return digest.digest()


class FileIdentity(msgspec.Struct, frozen=True, array_like=True):
    """What tells whether a file changed: inode, size in bytes, time of the last change in nanoseconds."""

    inode: int
    size: int
    mtime_ns: int


class RememberedFile(msgspec.Struct, frozen=True):
    """A row without its state: `tail` is the digest of the last bytes that were read, `sessions` encoded."""

    identity: FileIdentity
    tail: bytes
    sessions: bytes


class SessionStore:
    """The store in the file `path`. Raises sqlite3.Error where it cannot be used."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _check_owner(path)
        self._database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        try:
            self._prepare()
        except BaseException:
            self._database.close()
            raise

    def _prepare(self) -> None:
        database = self._database
        database.execute("PRAGMA synchronous=NORMAL")
        if self._is_current():
            return
        with self.writing():
            if not self._is_current():  # no other process made it meanwhile
                self._make()
        with suppress(sqlite3.OperationalError):  # another process uses it already: it works without, too
            database.execute("PRAGMA journal_mode=WAL")

    def _is_current(self) -> bool:
        version = self._database.execute("PRAGMA user_version").fetchone()[0]
        return (self._application(), version) == (APPLICATION, VERSION)

    def _make(self) -> None:
        """Empty tables, within a transaction."""
        tables = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and self._application() != APPLICATION:
            raise sqlite3.DatabaseError(FOREIGN)
        stamps = f"PRAGMA application_id={APPLICATION}", f"PRAGMA user_version={VERSION}"
        for statement in (*filter(str.strip, SCHEMA.split(";")), *stamps):
            self._database.execute(statement)

    def _application(self) -> int:
        return int(self._database.execute("PRAGMA application_id").fetchone()[0])

    def __enter__(self) -> SessionStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._database.close()

    def files(self) -> Mapping[str, RememberedFile]:
        """Every file that is remembered, by path. A damaged row is as good as none."""
        rows = self._database.execute("SELECT path, inode, size, mtime_ns, tail, sessions, checksum FROM files")
        return {
            path: RememberedFile(FileIdentity(*identity), tail, sessions)
            for path, *identity, tail, sessions, checksum in rows
            if checksum == _checksum(path, *identity, tail, sessions)
        }

    def state(self, path: str) -> bytes:
        """What is needed to go on reading a file; empty where nothing is, or where it is damaged."""
        row = self._database.execute("SELECT state, checksum FROM states WHERE path = ?", (path,)).fetchone()
        return row[0] if row and row[1] == _checksum(path, row[0]) else b""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: all or nothing."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._database.in_transaction:  # SQLite ends it by itself where the disk is full
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def put(self, path: str, file: RememberedFile, state: bytes) -> None:
        """Remember a file."""
        row = (path, *msgspec.structs.astuple(file.identity), file.tail, file.sessions)
        self._database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, _checksum(*row)))
        self._database.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", (path, state, _checksum(path, state)))

    def forget(self, paths: Iterable[str]) -> None:
        """Remove files that no longer exist."""
        rows = [(path,) for path in paths]
        with self.writing():
            self._database.executemany("DELETE FROM files WHERE path = ?", rows)
            self._database.executemany("DELETE FROM states WHERE path = ?", rows)
