"""The SQLite file that holds token counts. Several processes may open, read and write it at once.

A row is its digest and a BLOB: a checksum of 8 bytes over the digest and the rest, then `[prose, tokens, facts]` as
JSON. A row that does not match its checksum is never used: SQLite itself does not notice a flipped bit in a value.

SQLite waits for a lock of another connection in most places (busy_timeout), but not in all of them: the switch to WAL,
the recovery of a WAL and the moment in which the last connection closes fail at once with SQLITE_BUSY
(sqlite.org/wal.html, "Sometimes Queries Return SQLITE_BUSY In WAL Mode"). So `LockRetry` repeats the action.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from cachecost.base.sqlite_damage import DAMAGED_CODES, LOCKED_CODES, error_code, identity_of, put_aside
from cachecost.tokens.measured import BlockCount, CountsLocked, CountsUnusable, DamagedCounts

WAIT_S = 5.0
"""How long a lock of another process is waited for."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.001, 0.1
CHECKSUM_BYTES = 8
TABLE = "CREATE TABLE IF NOT EXISTS counts (digest BLOB PRIMARY KEY, checked BLOB NOT NULL) WITHOUT ROWID"
SELECT = "SELECT checked FROM counts WHERE digest = ?"
Number = Annotated[int, msgspec.Meta(ge=0)]
DECODER = msgspec.json.Decoder(tuple[str, Number, dict[str, Number]])
"""Of `[prose, tokens, facts]`."""
Result = TypeVar("Result")


class LockRetry:
    """Repeats an action that failed because of a lock, for WAIT_S. After a timeout it tries only once, until one
    succeeds.
    """

    def __init__(self) -> None:
        self._waits = True

    def run(self, action: Callable[[], Result]) -> Result:
        """The result of `action`. Raises Locked, Damaged, Unusable."""
        pauses: Iterator[float] | None = None
        while True:
            try:
                result = action()
            except (sqlite3.Error, MemoryError) as error:
                code = error_code(error)
                if code in DAMAGED_CODES:
                    raise DamagedCounts from error
                if code not in LOCKED_CODES:
                    raise CountsUnusable from error
                pauses = pauses or _pauses(WAIT_S if self._waits else 0.0)
                pause = next(pauses)
                time.sleep(pause)
                if not pause:
                    self._waits = False
                    raise CountsLocked from error
            else:
                self._waits = True
                return result


def _pauses(total_s: float) -> Iterator[float]:
    """Doubling pauses that add up to `total_s`; the last is 0, after which nothing is tried again."""
    pause = FIRST_PAUSE_S
    while total_s > 0:
        yield min(pause, total_s)
        total_s -= pause
        pause = min(2 * pause, LONGEST_PAUSE_S)
    yield 0.0


class CountFile:
    """An open file. `identity` is its device and inode. Raises Locked, Damaged, Unusable wherever it is used."""

    def __init__(self, path: Path, retry: LockRetry) -> None:
        self._retry = retry
        self._thread_lock = threading.Lock()
        self._connection = _connect(path)
        self.identity = identity_of(path)
        try:
            self.retry(self._prepare)
        except BaseException:
            self.close()
            raise

    def retry(self, action: Callable[[], Result]) -> Result:
        with self._thread_lock:
            return self._retry.run(action)

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(TABLE)

    def get(self, digest: bytes) -> BlockCount | None:
        """The row of `digest`; None where there is none."""
        row = self.retry(lambda: self._connection.execute(SELECT, (digest,)).fetchone())
        return unpack(digest, row[0]) if row else None

    def write(self, rows: Mapping[bytes, BlockCount]) -> None:
        """Add rows in one transaction; rows that another process wrote first are kept, as they are equal."""
        packed_rows = [(digest, pack(digest, measured)) for digest, measured in rows.items()]
        if packed_rows:
            self.retry(lambda: self._insert(packed_rows))

    def _insert(self, rows: list[tuple[bytes, bytes]]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT OR IGNORE INTO counts VALUES (?, ?)", rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.close()


def open_counts(path: Path, retry: LockRetry) -> CountFile:
    """The file at `path`, recreated if it is damaged. Raises Locked, Damaged, Unusable."""
    identity = identity_of(path)
    try:
        return CountFile(path, retry)
    except DamagedCounts:
        put_aside(path, identity)
        return CountFile(path, retry)


def _connect(path: Path) -> sqlite3.Connection:
    """A connection without its own busy timeout: LockRetry waits. Raises Unusable."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise CountsUnusable from error


def pack(digest: bytes, measured: BlockCount) -> bytes:
    """The BLOB of a row."""
    value = json.dumps([measured.prose, measured.tokens, dict(measured.facts)]).encode()
    return _checksum(digest, value) + value


def unpack(digest: bytes, checked: object) -> BlockCount:
    """The content of a BLOB. Raises Damaged."""
    if not isinstance(checked, bytes) or checked[:CHECKSUM_BYTES] != _checksum(digest, checked[CHECKSUM_BYTES:]):
        raise DamagedCounts
    try:
        return BlockCount(*DECODER.decode(checked[CHECKSUM_BYTES:]))
    except msgspec.MsgspecError as error:
        raise DamagedCounts from error


def _checksum(digest: bytes, value: bytes) -> bytes:
    return blake2b(value, digest_size=CHECKSUM_BYTES, key=digest).digest()
