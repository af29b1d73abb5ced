"""Reads session files for their bills: from the store where nothing changed, else the file, or what was added to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import msgspec

from cachecost.base.errors import Fault, InputError
from cachecost.conversations.billed_calls import SessionFile
from cachecost.conversations.readers.claude_code.transcript import sniff_lines
from cachecost.conversations.readers.detect import detect
from cachecost.sessions.bill_readers import bill_reader
from cachecost.sessions.store import FileIdentity, RememberedFile, SessionStore

TAIL_BYTES = 1024
"""A file has only grown if the bytes before its old end are the same."""
BATCH_BYTES = 32 << 20
"""Written to the store at once: states are not kept in memory for longer."""
decode_sessions = msgspec.msgpack.Decoder(list[SessionFile]).decode
encode = msgspec.msgpack.Encoder().encode
HEAD_BYTES = 1 << 16
TRANSCRIPT = "claude-code"
Progress = Callable[[Path, int], None]


@dataclass(slots=True)
class SessionFiles:
    """Sessions that were read, and the files that could not be (`skipped`) or are not whole (`damaged`)."""

    sessions: list[SessionFile] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)
    """Files of formats that are read call by call."""
    skipped: list[Fault] = field(default_factory=list)
    read_bytes: int = 0
    remembered: int = 0
    files: int = 0


@dataclass(slots=True)
class SessionReading:
    """Reads files into `found`; `store` remembers them (None: nothing is remembered)."""

    store: SessionStore | None
    format_: str = "auto"
    progress: Progress = lambda path, size: None
    found: SessionFiles = field(default_factory=SessionFiles)
    _pending: list[tuple[str, RememberedFile, bytes]] = field(default_factory=list)
    _pending_bytes: int = 0

    def read_all(self, paths: Iterable[Path]) -> SessionFiles:
        """Read the files. One that cannot be read is skipped, with its errors."""
        known = self.store.files() if self.store else {}
        for path in paths:
            self.found.files += 1
            try:
                self._read(path, known.get(str(path)))
            except InputError as error:
                self.found.skipped += error.faults
            except OSError as error:
                self.found.skipped.append(Fault(str(path), f"cannot be read: {error.strerror}"))
        self._flush()
        return self.found

    def _read(self, path: Path, remembered: RememberedFile | None) -> None:
        status = path.stat()
        if not status.st_size:
            return
        identity = FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns)
        if remembered and remembered.identity == identity:
            self._add(decode_sessions(remembered.sessions))
            self.found.remembered += 1
            return
        self.progress(path, status.st_size)
        self._read_file(path, identity, remembered)

    def _add(self, sessions: list[SessionFile]) -> None:
        """Take sessions, and say which of their lines could not be read."""
        self.found.sessions += sessions
        for session in sessions:
            faults = (Fault(session.path, f"{reason}; the other lines count", line) for line, reason in session.damaged)
            self.found.skipped.extend(faults)

    def _read_file(self, path: Path, identity: FileIdentity, remembered: RememberedFile | None) -> None:
        format_ = self._format(path)
        reader = bill_reader(format_)
        if reader is None:
            self.found.logs.append(path)
            return
        state = b""
        if remembered and self.store and _has_grown(path, identity, remembered):
            state = self.store.state(str(path))
        sessions, state = reader.read_sessions(path, state)
        self._add(sessions)
        self.found.read_bytes += identity.size
        if self.store:
            tail = _tail(path, identity.size)
            self._remember(str(path), RememberedFile(identity, tail, encode(sessions)), state)

    def _format(self, path: Path) -> str:
        """The format of a file. Transcripts are known by their first lines, without the looks of other readers."""
        if self.format_ == "auto":
            with path.open("rb") as stream:
                if sniff_lines(stream.read(HEAD_BYTES)):
                    return TRANSCRIPT
        return detect(path, self.format_)[0]

    def _remember(self, path: str, file: RememberedFile, state: bytes) -> None:
        self._pending.append((path, file, state))
        self._pending_bytes += len(state) + len(file.sessions)
        if self._pending_bytes > BATCH_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Write what was read. A store that is locked or full is given up: the result does not depend on it."""
        if not self.store or not self._pending:
            return
        try:
            with self.store.writing():
                for row in self._pending:
                    self.store.put(*row)
        except sqlite3.Error:
            self.store = None
        self._pending, self._pending_bytes = [], 0


def _has_grown(path: Path, identity: FileIdentity, remembered: RememberedFile) -> bool:
    """Whether a file is the one that was read, with more at its end."""
    old = remembered.identity
    return old.inode == identity.inode and identity.size > old.size and _tail(path, old.size) == remembered.tail


def _tail(path: Path, size: int) -> bytes:
    """The digest of the bytes before `size`."""
    with path.open("rb") as stream:
        stream.seek(max(0, size - TAIL_BYTES))
        return blake2b(stream.read(min(size, TAIL_BYTES)), digest_size=16).digest()
