"""Follows the files of a session by their sizes and times. What was read of a transcript is remembered in memory, so
that only what was added is read; a file that was replaced is read anew."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from cachecost.analysis.bill.found_sessions import account_of_found
from cachecost.analysis.next_message.watching import WatchedSession, watch_account
from cachecost.base.structs import value
from cachecost.sessions.reading import SessionReading
from cachecost.sessions.store import IN_MEMORY, SessionStore
from cachecost.simulation.setup import ReplaySetup

MOST_NOTES = 3
AGENT = "agent-"
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
NO_BILLS = "no call has a usage: `cachecost record` writes logs with it, `cachecost replay` simulates it"
GONE = "the file is gone; what was read of it is shown"


@value
class FileStatus:
    """What changes when a file does."""

    path: Path
    inode: int
    size: int
    mtime_ns: int


class FileFollower:
    """Follows a session file and those of its sub-agents."""

    def __init__(self, path: Path, setup: ReplaySetup, format_: str = "auto") -> None:
        self.path = path
        self._setup, self._format = setup, format_
        self._stack = ExitStack()
        self._store = self._stack.enter_context(SessionStore(IN_MEMORY))
        self._seen: list[FileStatus] | None = None
        self._last = WatchedSession(str(path))

    def poll(self, now: float) -> WatchedSession | None:
        """The session as it is now; None where no file changed since the last call."""
        seen = list(_statuses(session_files(self.path)))
        if seen == self._seen:
            return None
        self._seen = seen
        self._last = self._read([one.path for one in seen if one.size])
        return self._last

    def close(self) -> None:
        """Forget what was read."""
        self._stack.close()

    def _read(self, paths: Sequence[Path]) -> WatchedSession:
        """The session in the files. Where nothing can be read any more, what was read before and the reason."""
        if self._last.calls and not self.path.exists():
            return replace(self._last, notes=(GONE,))
        found = SessionReading(self._store if self._format == "auto" else None, self._format).read_all(paths)
        account = account_of_found(found, self._setup, self._format)
        notes = tuple([*map(str, found.skipped), *found.notes][-MOST_NOTES:])
        if found.logs and not found.skipped and not any(account.calls()):
            notes = (NO_BILLS,)
        made = watch_account(account, str(self.path), notes)
        return replace(self._last, notes=notes) if found.skipped and not made.calls else made


def session_files(path: Path) -> Iterator[Path]:
    """The file of a session, and those of its sub-agents: in a folder of its name."""
    yield path
    folder = path.with_suffix("")
    if folder != path and folder.is_dir():
        yield from sorted(folder.rglob("*.jsonl"))


def newest_file(paths: Iterable[Path]) -> Path | None:
    """The session file that was written last; for a sub-agent's, that of its session."""
    return next(iter(newest_first(paths)), None)


def newest_first(paths: Iterable[Path]) -> list[Path]:
    """The session files, the one written last first. A sub-agent writes for its session."""
    changed: dict[Path, int] = {}
    for path in paths:
        main = main_file(path)
        if main is not None:
            with suppress(OSError):
                changed[main] = max(changed.get(main, 0), path.stat().st_mtime_ns)
    return sorted(changed, key=lambda path: -changed[path])


def main_file(path: Path) -> Path | None:
    """The session file that a sub-agent's file belongs to (None: unknown); any other file itself."""
    if not path.name.startswith(AGENT):
        return path
    mains = (folder.with_suffix(".jsonl") for folder in path.parents)
    return next((main for main in mains if main.is_file()), None)


def session_name(path: Path) -> str:
    """The id in the name of a session file, else its name."""
    found = UUID.search(path.stem)
    return found[0] if found else path.stem


def _statuses(paths: Iterable[Path]) -> Iterator[FileStatus]:
    """Of the files that exist."""
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            yield FileStatus(path, status.st_ino, status.st_size, status.st_mtime_ns)
