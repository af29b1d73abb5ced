"""The store on disk: what makes the next command faster. It holds nothing that files of sessions do not, so it can be
removed at any time, and no result depends on it.

All of it is in one folder: a SQLite file with a table for each kind of rows, and beside it the small files of the
status line, which has no time to open SQLite (2.5 ms; reading such a file takes 0.03 ms). So this module loads
`sqlite3` only when the store is used.

Several processes may use the SQLite file at once. SQLite waits for a lock of another connection in most places
(busy_timeout), but not in all of them: the switch to WAL, the recovery of a WAL and the moment in which the last
connection closes fail at once with SQLITE_BUSY (sqlite.org/wal.html, "Sometimes Queries Return SQLITE_BUSY In WAL
Mode"). So actions are repeated here.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cachecost.base.digests import blake2b

if TYPE_CHECKING:
    from sqlite3 import Connection

VARIABLE, OFF = "CACHECOST_STORE", "off"
FILE = "store.sqlite"
"""To be renamed when the columns of its tables change."""
IN_MEMORY = Path(":memory:")
MOST_BYTES = 1 << 30
"""A larger file is removed and begun anew. 44 MB of sessions make 1.7 MB."""
APPLICATION = 0x63616368
"""Marks the file as ours (SQLite's application_id), so that no other database is ever touched."""
APPLICATION_OFFSET, HEADER_BYTES = 68, 72
"""Where it stands in the file (sqlite.org/fileformat.html)."""
FOREIGN = "it is another program's file"
WAIT_S = 2.0
"""How long a lock of another process is waited for."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.001, 0.1
LOCKED_CODES = frozenset((5, 6, 15))
"""SQLite's BUSY, LOCKED and PROTOCOL (sqlite.org/rescode.html)."""
DAMAGED_CODES = frozenset((1, 11, 18, 20, 24, 26))
"""ERROR (no such table: it is not our file), CORRUPT, TOOBIG, MISMATCH, FORMAT, NOTADB."""
CHECKSUM_BYTES = 8
COLUMNS = "version INTEGER, key BLOB, value BLOB, checksum BLOB, PRIMARY KEY (version, key)"
Result = TypeVar("Result")
TAIL_BYTES = 1024
"""A file has only grown if the bytes before its old end are the same. A change before them that kept their place is
not seen if the file grew, too; a change that kept size and time is never seen."""


def tail_digest(path: Path, size: int) -> bytes:
    """The digest of the bytes before `size`, by which a file that has only grown is known. Raises OSError."""
    with path.open("rb") as stream:
        stream.seek(max(0, size - TAIL_BYTES))
        return blake2b(stream.read(min(size, TAIL_BYTES)), digest_size=16).digest()


def store_folder() -> Path | None:
    """The folder of the store, which CACHECOST_STORE names. None where that is `off`, or the user has no home."""
    named = os.environ.get(VARIABLE)
    if named is not None and named.strip().lower() in (OFF, ""):
        return None
    try:
        if named:
            return Path(named).expanduser()
        base = os.environ.get("XDG_CACHE_HOME")
        return (Path(base) if base else Path.home() / ".cache") / "cachecost"
    except RuntimeError:
        return None


def open_store(*tables: StoreTable) -> DiskStore | None:
    """The store, with these tables; None where nothing is kept."""
    folder = store_folder()
    return DiskStore(folder / FILE, *tables) if folder else None


class StoreTable(NamedTuple):
    """Rows of one kind. `version` is a number of everything that decides what they hold: rows of another version are
    not seen, and are removed when the table is written."""

    name: str
    version: int


class DiskStore:
    """The SQLite file at `path`, opened when it is first used.

    What cannot be read there is missing, what cannot be written is not kept: `error` says why (empty: all is well). A
    lock of another process passes. A damaged file is removed and begun anew, once; after anything else this process no
    longer uses it (`is_closed`).
    """

    def __init__(self, path: Path, *tables: StoreTable) -> None:
        self.path, self.tables = path, tables
        self.error = ""
        self.is_closed = False
        self._databases: dict[int, Connection] = {}
        """By process: a connection that a fork inherited is neither used nor closed."""
        self._identity: tuple[int, int] | None = None
        self._was_damaged = False
        self._waits = True
        self._lock = threading.Lock()

    def get(self, table: StoreTable, key: bytes) -> bytes | None:
        """The value of a row; None where there is none, or it is damaged."""
        select = f"SELECT value, checksum FROM {table.name} WHERE version = ? AND key = ?"
        row = self._use(lambda database: database.execute(select, (table.version, key)).fetchone())
        return row[0] if row and _checks(table, key, *row) else None

    def items(self, table: StoreTable) -> dict[bytes, bytes]:
        """Every row that is not damaged."""
        select = f"SELECT key, value, checksum FROM {table.name} WHERE version = ?"
        rows = self._use(lambda database: database.execute(select, (table.version,)).fetchall())
        return {key: value for key, value, checksum in rows or () if _checks(table, key, value, checksum)}

    def write(self, rows: Iterable[tuple[StoreTable, bytes, bytes | None]]) -> bool:
        """Write rows (table, key, value; None removes one) in one transaction. Whether that was possible."""
        changes = list(rows)

        def change(database: Connection) -> bool:
            with database:
                database.execute("BEGIN IMMEDIATE")
                for table in self.tables:
                    others = f"DELETE FROM {table.name} WHERE version < ? OR version > ?"
                    database.execute(others, (table.version, table.version))
                for table, key, value in changes:
                    where = f"{table.name} WHERE version = ? AND key = ?"
                    if value is None:
                        database.execute(f"DELETE FROM {where}", (table.version, key))
                    else:
                        row = table.version, key, value, _checksum(table, key, value)
                        database.execute(f"INSERT OR REPLACE INTO {table.name} VALUES (?, ?, ?, ?)", row)
            return True

        if not changes or not self._use(change):
            return not changes
        self.error = ""
        return True

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        from sqlite3 import Error

        with suppress(Error, KeyError):
            self._databases.pop(os.getpid()).close()

    def __enter__(self) -> DiskStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _use(self, action: Callable[[Connection], Result]) -> Result | None:
        """The result of `action`, repeated while another process holds a lock: for WAIT_S, and after that in vain only
        once each, until one succeeds. None where the file cannot be used."""
        from sqlite3 import Error

        with self._lock:
            left_s, pause = WAIT_S if self._waits else 0.0, FIRST_PAUSE_S
            while not self.is_closed:
                try:
                    result = action(self._database())
                except (Error, OSError, ValueError, MemoryError) as error:
                    self.error = getattr(error, "strerror", None) or str(error)
                    # an error without a code: of the file system, or a text that is no UTF-8
                    code = getattr(error, "sqlite_errorcode", 0 if isinstance(error, OSError) else 1) & 0xFF
                    if code in DAMAGED_CODES and not self._was_damaged:
                        self._was_damaged = True
                        self.close()
                        _remove(self.path, self._identity)
                    elif code not in LOCKED_CODES:
                        self.close()
                        self.is_closed = True
                    elif left_s <= 0:
                        self._waits = False
                        break
                    else:
                        time.sleep(min(pause, left_s))
                        left_s, pause = left_s - pause, min(2 * pause, LONGEST_PAUSE_S)
                else:
                    self._waits = True
                    return result
        return None

    def _database(self) -> Connection:
        """This process's connection. Raises OSError, sqlite3.Error, ValueError."""
        found = self._databases.get(os.getpid())
        if found is None:
            if self.path != IN_MEMORY:
                _prepare_file(self.path)
            self._identity = _identity_of(self.path)
            found = self._databases[os.getpid()] = _connect(self.path, self.tables)
        return found


def _prepare_file(path: Path) -> None:
    """Make the file, for the user alone. Raises OSError for another program's, before SQLite opens and changes it."""
    with suppress(FileNotFoundError):
        with path.open("rb") as stream:
            header = stream.read(HEADER_BYTES)
        if header and int.from_bytes(header[APPLICATION_OFFSET:], "big") != APPLICATION:
            raise OSError(0, FOREIGN)
        if path.stat().st_size > MOST_BYTES:
            _remove(path, _identity_of(path))
    for folder in reversed([one for one in path.parents if not one.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _connect(path: Path, tables: Iterable[StoreTable]) -> Connection:
    import sqlite3

    database = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA synchronous = NORMAL")
        if database.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute("PRAGMA journal_mode = WAL")
        for table in tables:
            database.execute(f"CREATE TABLE IF NOT EXISTS {table.name} ({COLUMNS}) WITHOUT ROWID")
    except BaseException:
        database.close()
        raise
    return database


def _identity_of(path: Path) -> tuple[int, int] | None:
    """Device and inode of the file at this path; None: there is none."""
    with suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _remove(path: Path, identity: tuple[int, int] | None) -> None:
    """Remove the file, unless another process did so and `path` is already a new one.

    The WAL goes first: SQLite deletes it next to a new, empty file, and would apply it to any other.
    """
    if identity is not None and _identity_of(path) == identity:
        with suppress(OSError):
            for tail in ("-wal", "-shm", ""):
                path.with_name(path.name + tail).unlink(missing_ok=True)


def _checksum(table: StoreTable, key: bytes, value: bytes) -> bytes:
    """Over a whole row: SQLite does not notice a flipped bit in a value."""
    digest = blake2b(f"{table.version} {len(key)} ".encode(), digest_size=CHECKSUM_BYTES)
    digest.update(key)
    digest.update(value)
    return digest.digest()


def _checks(table: StoreTable, key: object, value: object, checksum: object) -> bool:
    return isinstance(key, bytes) and isinstance(value, bytes) and checksum == _checksum(table, key, value)
