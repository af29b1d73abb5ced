"""Reads session files for their bills: from the store where nothing changed, else the file, or what was added to it.

The store remembers on disk what was read, so that a file is read once and then only where it has grown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import Any
from zlib import crc32

import msgspec

from cachecost.base.atomic_files import check_readable
from cachecost.base.errors import Fault, InputError
from cachecost.base.store import DiskStore, StoreTable, tail_digest
from cachecost.base.version import __version__
from cachecost.conversations.input_files import SessionFile, comment_note, is_url, skip_comments
from cachecost.conversations.readers.claude_code import steps as transcripts
from cachecost.conversations.readers.detect import READERS, UNRECOGNIZED, Unrecognized, detect, is_companion

CONTENT = 7
"""To be raised when a reader changes what it reads."""
VERSION = crc32(f"{CONTENT} {__version__}".encode()) & 0x7FFFFFFF
"""What another content, or another version of cachecost, left in the store is read anew."""
FILES, STATES = StoreTable("files", VERSION), StoreTable("states", VERSION)
"""By path. States stand apart: they are large, and read only for files that have grown."""


class FileIdentity(msgspec.Struct, frozen=True, array_like=True):
    """What tells whether a file changed: inode, size in bytes, time of the last change in nanoseconds."""

    inode: int
    size: int
    mtime_ns: int


class RememberedFile(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was read last: `tail` is the digest of its last bytes, `sessions` are encoded."""

    identity: FileIdentity
    tail: bytes
    sessions: bytes


decode_file = msgspec.msgpack.Decoder(RememberedFile).decode
BATCH_BYTES = 32 << 20
"""Written to the store at once: states are not kept in memory for longer."""
decode_sessions = msgspec.msgpack.Decoder(list[SessionFile]).decode
encode = msgspec.msgpack.Encoder().encode
HEAD_BYTES = 1 << 16
TRANSCRIPT = "claude-code"
WHOLE = (TRANSCRIPT, "codex", "gemini-cli", "qwen-code")
"""Formats whose logs are one file each, so that what was read of it holds until that file changes."""
LOOKALIKES = ("qwen-code", "langfuse")
"""Formats whose lines have the keys of a transcript's; `detect` asks their readers first, too."""
Progress = Callable[[Path, int], None]


@dataclass(slots=True)
class SessionFiles:
    """Sessions that were read. `skipped` are the files and lines that could not be, `notes` what else is to be said.
    `store_error` says why what was read is not remembered."""

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

    store: DiskStore | None
    format_: str = "auto"
    progress: Progress = lambda path, size: None
    folders: Sequence[Path] = ()
    found: SessionFiles = field(default_factory=SessionFiles)
    _pending: list[tuple[StoreTable, bytes, bytes | None]] = field(default_factory=list)
    _pending_bytes: int = 0
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.format_ != "auto":
            self.store = None

    def read_all(self, paths: Iterable[Path]) -> SessionFiles:
        """Read the files, each once. One that cannot be read is skipped, with its errors."""
        remembered = self.store.items(FILES) if self.store else {}
        for path in paths:
            try:
                self._read(path, remembered.get(_key(path)))
            except Unrecognized as error:
                self.found.skipped.append(Fault(str(path), f"{UNRECOGNIZED} ({error.hint})"))
            except InputError as error:
                self.found.skipped += error.faults
            except OSError as error:
                self.found.skipped.append(Fault(str(path), f"cannot be read: {error.strerror or error}"))
        gone = [key for key in remembered if not Path(os.fsdecode(key)).exists()]
        self._pending += [(table, key, None) for key in gone for table in (FILES, STATES)]
        self._flush()
        if self.store and self.store.error:
            self.found.store_error = f"{self.store.path}: sessions are not remembered: {self.store.error}"
        return self.found

    def _read(self, path: Path, remembered: bytes | None) -> None:
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
        known = None
        with suppress(msgspec.MsgspecError):
            known = decode_file(remembered) if remembered else None
            if known and known.identity == identity:
                self.found.add(decode_sessions(known.sessions), path)
                self.found.remembered += 1
                return
        self.progress(path, status.st_size)
        self._read_file(path, identity, known)

    def _read_file(self, path: Path, identity: FileIdentity, known: RememberedFile | None) -> None:
        format_ = self._format(path)
        if any(folder in path.parents and is_companion(path, format_, folder) for folder in self.folders):
            return
        if format_ != TRANSCRIPT and not hasattr(READERS[format_], "session_files"):
            self.found.logs.append(path)  # its bills are not read without content
            return
        state = b""
        was = known.identity if known else identity
        may_be = was.inode == identity.inode and was.size < identity.size
        if self.store and known and may_be and tail_digest(path, was.size) == known.tail:  # it has only grown
            state = self.store.get(STATES, _key(path)) or b""
        try:
            sessions, state = _read_sessions(format_, path, state)
        except msgspec.MsgspecError:  # what another state of this reader has left
            sessions, state = _read_sessions(format_, path, b"")
        if sessions and (note := comment_note(path)):
            sessions[0].notes += (note,)
        self.found.add(sessions, path)
        self.found.read_bytes += identity.size
        is_unicode = str(path).encode(errors="ignore").decode() == str(path)  # no other path can be stored
        if self.store and format_ in WHOLE and is_unicode and not is_url(path):
            file = encode(RememberedFile(identity, tail_digest(path, identity.size), encode(sessions)))
            self._pending += [(FILES, _key(path), file), (STATES, _key(path), state)]
            self._pending_bytes += len(state) + len(file)
            if self._pending_bytes > BATCH_BYTES:
                self._flush()

    def _format(self, path: Path) -> str:
        """The format of a file. Transcripts are known by their first lines, without the looks of most other readers."""
        if self.format_ == "auto":
            with path.open("rb") as stream:
                head, _ = skip_comments(stream.read(HEAD_BYTES))
            signs = ((name, sign.encode()) for name in LOOKALIKES for sign in READERS.table[name][1])
            if transcripts.sniff(head) and not any(sign in head and READERS[name].sniff(head) for name, sign in signs):
                return TRANSCRIPT
        return detect(path, self.format_)[0]

    def _flush(self) -> None:
        if self.store:
            self.store.write(self._pending)
        self._pending, self._pending_bytes = [], 0


def _key(path: Path) -> bytes:
    return os.fsencode(str(path.absolute()))  # a URL has a name, but no place on a disk


def _read_sessions(format_: str, path: Path, state: bytes) -> tuple[list[SessionFile], bytes]:
    """The sessions in a file, and what is needed to go on where it ends now (b"": nothing helps). `state` is what an
    earlier reading left. Raises InputError where the file cannot be read."""
    if format_ == TRANSCRIPT:
        return transcripts.read_sessions(path, state)
    reader: Any = READERS[format_]
    return [one for one in reader.session_files(path) if one.calls or one.damaged or one.notes], b""
