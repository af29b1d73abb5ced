"""Reads session files for their bills: from the store where nothing changed, else the file, or what was added to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG

import msgspec

from cachecost.base.errors import Fault, InputError
from cachecost.base.reading_roots import check_readable
from cachecost.base.sqlite_damage import is_damage
from cachecost.conversations.billed_calls import SessionFile
from cachecost.conversations.input_files import comment_note, is_url, skip_comments
from cachecost.conversations.readers.claude_code.transcript import sniff
from cachecost.conversations.readers.detect import READERS, UNRECOGNIZED, Unrecognized, detect, is_companion
from cachecost.sessions.bill_readers import BILL_READERS
from cachecost.sessions.file_tails import tail_digest
from cachecost.sessions.store import FileIdentity, RememberedFile, SessionStore

BATCH_BYTES = 32 << 20
"""Written to the store at once: states are not kept in memory for longer."""
decode_sessions = msgspec.msgpack.Decoder(list[SessionFile]).decode
encode = msgspec.msgpack.Encoder().encode
HEAD_BYTES = 1 << 16
TRANSCRIPT = "claude-code"
LOOKALIKES = ("qwen-code", "langfuse")
"""Formats whose lines have the keys of a transcript's; `detect` asks their readers first, too."""
Progress = Callable[[Path, int], None]


@dataclass(slots=True)
class SessionFiles:
    """Sessions that were read. `skipped` are the files and lines that could not be, `notes` what else is to be said.

    `store_error` says why what was read is not remembered.
    """

    sessions: list[SessionFile] = field(default_factory=list)
    logs: list[Path] = field(default_factory=list)
    """Files of formats that are read call by call."""
    skipped: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    read_bytes: int = 0
    remembered: int = 0
    files: int = 0
    store_error: str = ""

    def add(self, sessions: Iterable[SessionFile], path: Path) -> None:
        """Add the sessions of a file, and what of it is damaged. It may have been remembered under another path."""
        for session in sessions:
            session.path = str(path)
            self.sessions.append(session)
            faults = (Fault(session.path, f"{reason}; the other lines count", line) for line, reason in session.damaged)
            self.skipped.extend(faults)
            self.notes += [f"{path}{'' if note.startswith(':') else ': '}{note}" for note in session.notes]


@dataclass(slots=True)
class SessionReading:
    """Reads files into `found`; `store` remembers them (None: nothing is remembered).

    Files whose format is named are not remembered: with another name they would be read otherwise. Nor is what is at a
    URL, as only some servers say when it changes. Of a file in one of
    `folders` that belongs to another log only that log is read.
    """

    store: SessionStore | None
    format_: str = "auto"
    progress: Progress = lambda path, size: None
    folders: Sequence[Path] = ()
    found: SessionFiles = field(default_factory=SessionFiles)
    _pending: list[tuple[str, RememberedFile, bytes]] = field(default_factory=list)
    _pending_bytes: int = 0
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.format_ != "auto":
            self.store = None

    def read_all(self, paths: Iterable[Path]) -> SessionFiles:
        """Read the files, each once. One that cannot be read is skipped, with its errors."""
        known = self._known()
        for path in paths:
            try:
                self._read(path, known.get(str(path.absolute())))
            except Unrecognized as error:
                self.found.skipped.append(Fault(str(path), f"{UNRECOGNIZED} ({error.hint})"))
            except InputError as error:
                self.found.skipped += error.faults
            except OSError as error:
                self.found.skipped.append(Fault(str(path), f"cannot be read: {error.strerror or error}"))
        self._flush()
        self._forget(known)
        return self.found

    def _known(self) -> Mapping[str, RememberedFile]:
        """What is remembered."""
        try:
            return self.store.files() if self.store else {}
        except (sqlite3.Error, ValueError, TypeError) as error:
            self._give_up(error)
            return {}

    def _give_up(self, error: Exception) -> None:
        """Go on without a store that is locked, full or damaged: the result does not depend on it."""
        if self.store and is_damage(error):
            self.store.put_aside()
        self.store, self.found.store_error = None, str(error)
        self._pending, self._pending_bytes = [], 0

    def _read(self, path: Path, remembered: RememberedFile | None) -> None:
        if not is_url(path):
            check_readable(path)
        status = path.stat()
        if (status.st_dev, status.st_ino) in self._seen:
            return
        self._seen.add((status.st_dev, status.st_ino))
        self.found.files += 1
        is_regular = S_ISREG(status.st_mode)
        if not is_regular and self.format_ == "auto":
            raise InputError([Fault(str(path), "is not a regular file; name its format with --format")])
        if is_regular and not status.st_size:
            self.found.notes.append(f"{path}: empty, ignored")
            return
        identity = FileIdentity(status.st_ino, status.st_size, status.st_mtime_ns)
        if not self._add_remembered(path, identity, remembered):
            self.progress(path, status.st_size)
            self._read_file(path, identity, remembered)

    def _add_remembered(self, path: Path, identity: FileIdentity, remembered: RememberedFile | None) -> bool:
        """Add the sessions of a file that is as it was; whether it is."""
        if remembered is None or remembered.identity != identity:
            return False
        try:
            self.found.add(decode_sessions(remembered.sessions), path)
        except (msgspec.DecodeError, TypeError):
            return False
        self.found.remembered += 1
        return True

    def _read_file(self, path: Path, identity: FileIdentity, remembered: RememberedFile | None) -> None:
        format_ = self._format(path)
        reader = BILL_READERS.get(format_)
        if any(folder in path.parents and is_companion(path, format_, folder) for folder in self.folders):
            return
        if reader is None:
            self.found.logs.append(path)
            return
        state = b""
        if remembered and self.store and _has_grown(path, identity, remembered):
            state = self._state(str(path.absolute()))
        try:
            sessions, state = reader.read(path, state)
        except (msgspec.DecodeError, TypeError):  # a damaged state
            sessions, state = reader.read(path, b"")
        if sessions and (note := comment_note(path)):
            sessions[0].notes += (note,)
        self.found.add(sessions, path)
        self.found.read_bytes += identity.size
        if self.store and reader.is_whole and is_unicode(str(path)) and not is_url(path):
            tail = tail_digest(path, identity.size)
            self._remember(str(path.absolute()), RememberedFile(identity, tail, encode(sessions)), state)

    def _state(self, path: str) -> bytes:
        try:
            return self.store.state(path) if self.store else b""
        except (sqlite3.Error, ValueError) as error:
            self._give_up(error)
            return b""

    def _format(self, path: Path) -> str:
        """The format of a file. Transcripts are known by their first lines, without the looks of most other readers."""
        if self.format_ == "auto":
            with path.open("rb") as stream:
                head, _ = skip_comments(stream.read(HEAD_BYTES))
            if sniff(head) and not _is_lookalike(head):
                return TRANSCRIPT
        return detect(path, self.format_)[0]

    def _remember(self, path: str, file: RememberedFile, state: bytes) -> None:
        self._pending.append((path, file, state))
        self._pending_bytes += len(state) + len(file.sessions)
        if self._pending_bytes > BATCH_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Write what was read."""
        if not self.store or not self._pending:
            return
        try:
            with self.store.writing():
                for row in self._pending:
                    self.store.put(*row)
        except (sqlite3.Error, ValueError) as error:
            self._give_up(error)
        self._pending, self._pending_bytes = [], 0

    def _forget(self, known: Iterable[str]) -> None:
        """Remove files that no longer exist from the store."""
        gone = [path for path in known if not Path(path).exists()]
        if not self.store or not gone:
            return
        try:
            self.store.forget(gone)
        except (sqlite3.Error, ValueError) as error:
            self._give_up(error)


def _is_lookalike(head: bytes) -> bool:
    """Whether a file that begins as a transcript does is one of another format."""
    signs = ((name, sign.encode()) for name in LOOKALIKES for sign in READERS.table[name][1])
    return any(sign in head and READERS[name].sniff(head) for name, sign in signs)


def is_unicode(text: str) -> bool:
    """Whether a text can be stored: a path of other bytes cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _has_grown(path: Path, identity: FileIdentity, remembered: RememberedFile) -> bool:
    """Whether a file is the one that was read, with more at its end."""
    old = remembered.identity
    may_be = old.inode == identity.inode and isinstance(old.size, int) and identity.size > old.size
    return may_be and tail_digest(path, old.size) == remembered.tail
