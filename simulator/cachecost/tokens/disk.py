"""Token counts on disk, by the digest of what was counted: a text is counted once, whoever asks again and when.

One SQLite file for each tokenizer and each state of the code and the data that decide what is counted of a block: an
update starts a new file, so no count can be out of date. Several processes may use a file at once. It holds digests
and numbers, and no word of what was sent. Whatever is wrong with the disk, counting goes on without it.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import sqlite3

VARIABLE = "CACHECOST_CACHE"
"""A folder for everything that is kept between runs, or `off`. Not set: the user's cache folder."""
OFF = "off"
COUNTED_BY = {"cl100k": "tiktoken", "ctok-3": "ctok", "ctok-4.7": "ctok", "ctok-4.8": "ctok"}
"""The package whose version counts for a tokenizer."""
FILES_KEPT = 4
"""Of older states, and of other tokenizers: the ones used last."""
WRITTEN_AT_ONCE = 500
WAIT_S = 5.0
"""For another process that is writing."""
CODE = (".py", ".toml")
TABLE = (
    "CREATE TABLE IF NOT EXISTS counts "
    "(digest BLOB PRIMARY KEY, tokens INTEGER NOT NULL, prose TEXT NOT NULL, facts TEXT NOT NULL) WITHOUT ROWID"
)


class Measured(NamedTuple):
    """What was counted of a block: tokens of its texts, their content kind, and the facts of its structure."""

    prose: str
    tokens: int
    facts: Mapping[str, int]


def folder() -> Path | None:
    """Where counts are kept; None: nowhere."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None and chosen.strip().lower() in (OFF, ""):
        return None
    try:
        home = Path(chosen).expanduser() if chosen else _user_folder()
    except RuntimeError:  # a user without a home
        return None
    return home / "counts"


def _user_folder() -> Path:
    cache_home = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache_home) if cache_home else Path.home() / ".cache") / "cachecost"


@cache
def state_of(key: str) -> str:
    """What decides the counts of a tokenizer, as a digest: its package, and our code and data that read a block."""
    told = blake2b(f"{key} {version(COUNTED_BY[key])}".encode(), digest_size=8)
    for package in ("cachecost.tokens", "cachecost.prompts"):
        for path in sorted(files(package).iterdir(), key=lambda one: one.name):
            if path.name.endswith(CODE):
                told.update(path.name.encode() + path.read_bytes())
    return told.hexdigest()


def disk_counts(key: str) -> DiskCounts | None:
    """The counts kept for a tokenizer (its name in `Block.counts`); None where nothing is kept."""
    place = folder() if key in COUNTED_BY else None
    return DiskCounts(place / f"{key}-{state_of(key)}.sqlite") if place else None


class DiskCounts:
    """Counts in the SQLite file at `path`. New ones are written together, at the latest when the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_broken = False
        self._new: dict[bytes, Measured] = {}
        self._open: tuple[int, sqlite3.Connection] | None = None
        self._at_end: Any = None

    def get(self, digest: bytes) -> Measured | None:
        """What was counted for `digest`, in this process or in another, now or before."""
        if digest in self._new:
            return self._new[digest]
        if (connection := self._connection()) is None:
            return None
        import sqlite3

        try:
            row = connection.execute("SELECT prose, tokens, facts FROM counts WHERE digest = ?", (digest,)).fetchone()
            return Measured(row[0], row[1], json.loads(row[2])) if row else None
        except (sqlite3.Error, ValueError):
            self._give_up()
            return None

    def put(self, digest: bytes, measured: Measured) -> None:
        """Keep a count."""
        if self.is_broken:
            return
        self._new[digest] = measured
        if len(self._new) >= WRITTEN_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write the new counts down. Of two processes that counted the same, the first is kept: they are equal."""
        if (connection := self._connection()) is not None:
            _write(connection, self._new)
        self._new.clear()

    def close(self) -> None:
        """Write, and let go of the file; another count opens it again."""
        if self._open is not None:
            self._at_end()
            self._open = None

    def _connection(self) -> sqlite3.Connection | None:
        """This process's connection: one that was inherited by a fork is left alone."""
        if self._open and self._open[0] == os.getpid():
            return self._open[1]
        if self.is_broken:
            return None
        connection = _connected(self.path)
        if connection is None:
            self.is_broken = True
            return None
        if self._at_end is not None:
            self._at_end.detach()
        finalize: Any = weakref.finalize
        self._open = (os.getpid(), connection)
        self._at_end = finalize(self, _end, connection, self._new, os.getpid())
        return connection

    def _give_up(self) -> None:
        """The file cannot be read: it is put aside, so that a later process starts anew, and not used here again."""
        self._new.clear()
        self.close()
        self.is_broken = True
        _put_aside(self.path)


def _end(connection: sqlite3.Connection, new: dict[bytes, Measured], process: int) -> None:
    if process == os.getpid():
        _write(connection, new)
        new.clear()
        connection.close()


def _write(connection: sqlite3.Connection, new: Mapping[bytes, Measured]) -> None:
    """One transaction; where the file is locked for too long or the disk is full, they are counted another time."""
    import sqlite3

    rows = [(digest, one.tokens, one.prose, json.dumps(dict(one.facts))) for digest, one in new.items()]
    try:
        if rows:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT OR IGNORE INTO counts VALUES (?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
    except sqlite3.Error:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def _connected(path: Path) -> sqlite3.Connection | None:
    """An open file with its table; None where there can be none. One that is damaged is put aside first."""
    import sqlite3

    for _ in range(2):
        try:
            return _opened(path)
        except sqlite3.OperationalError:  # locked, full, not to be written
            return None
        except sqlite3.DatabaseError:  # damaged
            _put_aside(path)
        except OSError:
            return None
    return None


def _opened(path: Path) -> sqlite3.Connection:
    import sqlite3

    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(TABLE)
    except sqlite3.Error:
        connection.close()
        raise
    if is_new:
        _forget_others(path)
    return connection


def _forget_others(path: Path) -> None:
    """Remove what older states left behind, but for the files that were used last."""
    with suppress(OSError):
        others = [other for other in path.parent.glob("*.sqlite") if other != path]
        for other in sorted(others, key=lambda one: one.stat().st_mtime, reverse=True)[FILES_KEPT:]:
            for name in (other.name, f"{other.name}-wal", f"{other.name}-shm"):
                other.with_name(name).unlink(missing_ok=True)


def _put_aside(path: Path) -> None:
    with suppress(OSError):
        path.replace(path.with_suffix(".damaged"))
        for tail in ("-wal", "-shm"):
            path.with_name(path.name + tail).unlink(missing_ok=True)
