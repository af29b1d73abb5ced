"""SQLite files of our own that turn out to be damaged: which errors say so, and how such a file is put aside."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

DAMAGED_CODES = frozenset(
    (
        sqlite3.SQLITE_ERROR,  # no such table: it is not our file
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_TOOBIG,
    )
)
LOCKED_CODES = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL))
Identity = tuple[int, int]


def error_code(error: Exception) -> int:
    """The primary result code of an SQLite error; one without a code is damage: a text that is no UTF-8."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def is_damage(error: Exception) -> bool:
    """Whether an error says that the file is damaged, and not that it is locked, full or out of reach."""
    return error_code(error) in DAMAGED_CODES


def identity_of(path: Path) -> Identity | None:
    """Device and inode of the file at this path; None: there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - for its numbers alone
    except OSError:
        return None
    return status.st_dev, status.st_ino


def put_aside(path: Path, identity: Identity | None) -> None:
    """Rename the damaged file to `.damaged`, unless another process did so and `path` is already a new file.

    The WAL goes first: SQLite deletes it next to a new, empty file, and would apply it to any other.
    """
    if identity is None or identity_of(path) != identity:
        return
    with suppress(OSError):
        for tail in ("-wal", "-shm"):
            path.with_name(path.name + tail).unlink(missing_ok=True)
        path.replace(path.with_suffix(".damaged"))
