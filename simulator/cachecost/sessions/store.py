"""Remembers on disk what was read of session files, so that a file is read once and then only where it has grown.

An SQLite database with a row a file. It can be deleted at any time. Several processes may use it at once: a process
that finds it locked reads the files itself. It holds what bills need (usage, times, ids, folders), no conversation.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import msgspec

VERSION = 2
"""Of the content; a store of another version is emptied. To be raised when a reader changes what it reads."""
APPLICATION = 0x63616368
"""Marks the file as ours (SQLite's application_id), so that no other database is ever touched."""
BUSY_S = 2.0
SCHEMA = """
CREATE TABLE IF NOT EXISTS files (
    path TEXT PRIMARY KEY, inode INTEGER, size INTEGER, mtime_ns INTEGER, tail BLOB, sessions BLOB, state BLOB
) WITHOUT ROWID
"""


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
        self._database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        self._prepare()

    def _prepare(self) -> None:
        database = self._database
        application = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if (application, version) == (APPLICATION, VERSION):
            return
        tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION and tables:
            raise sqlite3.DatabaseError("it is another program's database")
        database.execute("PRAGMA journal_mode=WAL")
        database.executescript(
            f"BEGIN IMMEDIATE; DROP TABLE IF EXISTS files; {SCHEMA};"
            f"PRAGMA application_id={APPLICATION}; PRAGMA user_version={VERSION}; COMMIT;"
        )

    def __enter__(self) -> SessionStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._database.close()

    def files(self) -> Mapping[str, RememberedFile]:
        """Every file that is remembered, by path."""
        rows = self._database.execute("SELECT path, inode, size, mtime_ns, tail, sessions FROM files")
        return {
            path: RememberedFile(FileIdentity(*identity), tail, sessions) for path, *identity, tail, sessions in rows
        }

    def state(self, path: str) -> bytes:
        """What is needed to go on reading a file; empty where nothing is."""
        row = self._database.execute("SELECT state FROM files WHERE path = ?", (path,)).fetchone()
        return row[0] if row else b""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: all or nothing."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def put(self, path: str, file: RememberedFile, state: bytes) -> None:
        """Remember a file."""
        row = (path, *msgspec.structs.astuple(file.identity), file.tail, file.sessions, state)
        self._database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def forget(self, paths: Iterable[str]) -> None:
        """Remove files that no longer exist."""
        self._database.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))
