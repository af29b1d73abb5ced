"""SQLite databases of session stores, opened for reading only.

`mode=ro` sees what a client that is still running has written to the write-ahead log (`…-wal`), and neither waits for
nor disturbs it. A database whose client was killed may have all its tables there: so the tables (`table_names`) show
which client wrote it, not the bytes of the file.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cachecost.base.atomic_files import check_readable
from cachecost.base.errors import Fault, InputError

MAGIC = b"SQLite format 3\0"
"""How every database file begins."""
MODES = ("mode=ro", "mode=ro&immutable=1")
"""The second reads what the first cannot open: a database with a write-ahead log in a folder that is read-only."""


CREATED = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?[`\"]?(\w+)[`\"]?\s*\(")


def is_database(head: bytes) -> bool:
    return head.startswith(MAGIC)


def created_tables(head: bytes) -> set[bytes]:
    """The names of the tables that the beginning of a database shows."""
    return set(CREATED.findall(head)) if is_database(head) else set()


def columns_of(database: sqlite3.Connection, table: str) -> list[str]:
    return [str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")]


def columns_by_table(path: Path, head: bytes) -> dict[str, set[str]]:
    """The tables of a file that begins with `head`, each with its columns; none where it is no database that can be
    read. Raises nothing."""
    if not is_database(head):
        return {}
    try:
        with open_database(path) as database:
            names = [str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {name: set(columns_of(database, name)) for name in names}
    except InputError:
        return {}


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that only reads. Raises InputError where the file is no database, is damaged or cannot be read."""
    check_readable(path)
    try:
        with closing(_connect(path)) as database:
            database.text_factory = lambda data: data.decode("utf-8", "replace")
            yield database
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: damage in a name that SQLite's error quotes
        raise InputError([Fault(str(path), f"cannot be read as an SQLite database: {error}")]) from error


def _connect(path: Path) -> sqlite3.Connection:
    """Raises sqlite3.Error where neither mode can read the file."""
    first: sqlite3.Error | UnicodeDecodeError | None = None
    for mode in MODES:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
        try:
            database.execute("SELECT count(*) FROM sqlite_master")
            return database
        except (sqlite3.Error, UnicodeDecodeError) as error:
            database.close()
            first = first or error
    assert first is not None
    raise first
