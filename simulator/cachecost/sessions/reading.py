"""Reads session files for their bills: from the store where nothing changed, else the file, or what was added to it.

The store remembers on disk what was read, so that a file is read once and then only where it has grown.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import Any
from zlib import crc32

import msgspec

from cachecost.base.atomic_files import check_readable
from cachecost.base.digests import blake2b
from cachecost.base.errors import Fault, InputError
from cachecost.base.sqlite_damage import identity_of, is_damage, put_aside
from cachecost.base.version import __version__
from cachecost.conversations.input_files import SessionFile, comment_note, is_url, skip_comments
from cachecost.conversations.readers.claude_code import steps as transcripts
from cachecost.conversations.readers.detect import READERS, UNRECOGNIZED, Unrecognized, detect, is_companion
from cachecost.sessions.file_tails import tail_digest

CONTENT = 6
"""To be raised when a reader changes what it reads."""
VERSION = crc32(f"{CONTENT} {__version__}".encode()) & 0x7FFFFFFF
"""A store of other content, or of another version of cachecost, is emptied."""
APPLICATION = 0x63616368
"""Marks the file as ours (SQLite's application_id), so that no other database is ever touched."""
APPLICATION_OFFSET, HEADER_BYTES = 68, 72
"""Where it stands in the file (sqlite.org/fileformat.html)."""
FOREIGN = "it is another program's file"
IN_MEMORY = Path(":memory:")
BUSY_S = 2.0
CHECKSUM_BYTES = 8
SCHEMA = """
DROP TABLE IF EXISTS files;
DROP TABLE IF EXISTS states;
CREATE TABLE files (
    path TEXT PRIMARY KEY, inode INTEGER, size INTEGER, mtime_ns INTEGER, tail BLOB, sessions BLOB, checksum BLOB
);
CREATE TABLE states (path TEXT PRIMARY KEY, state BLOB, checksum BLOB);
"""
"""A checksum is over the other columns: SQLite does not notice a flipped bit in a value. States stand apart: they are
large, and read only for files that have grown.
"""


def _checksum(*values: object) -> bytes:
    """Of the columns of a row, each with its type and length."""
    digest = blake2b(digest_size=CHECKSUM_BYTES)
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
        digest.update(f"{type(value).__name__} {len(data)} ".encode())
        digest.update(data)
    return digest.digest()


class FileIdentity(msgspec.Struct, frozen=True, array_like=True):
    """What tells whether a file changed: inode, size in bytes, time of the last change in nanoseconds."""

    inode: int
    size: int
    mtime_ns: int


class RememberedFile(msgspec.Struct, frozen=True):
    """A row without its state: `tail` is the digest of the last bytes that were read, `sessions` encoded."""

    identity: FileIdentity
    tail: bytes
    sessions: bytes


class SessionStore:
    """The store in the file `path`. Raises sqlite3.Error where it cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if path != IN_MEMORY:
            self._prepare_file()
        self._identity = identity_of(path)
        self._database = database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
        try:
            database.execute("PRAGMA synchronous=NORMAL")
            if self._stamps() == (APPLICATION, VERSION):
                return
            with self.writing():
                if self._stamps() != (APPLICATION, VERSION):  # no other process made it meanwhile
                    tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
                    if tables and self._stamps()[0] != APPLICATION:
                        raise sqlite3.DatabaseError(FOREIGN)
                    stamps = f"PRAGMA application_id={APPLICATION}", f"PRAGMA user_version={VERSION}"
                    for statement in (*filter(str.strip, SCHEMA.split(";")), *stamps):
                        database.execute(statement)
            with suppress(sqlite3.OperationalError):  # another process uses it already: it works without, too
                database.execute("PRAGMA journal_mode=WAL")
        except BaseException:
            database.close()
            raise

    def _prepare_file(self) -> None:
        """Make the file, for the user alone. Raises sqlite3.Error for one of another program, before SQLite opens it
        (and may change it)."""
        path = self._path
        if path.exists():
            with path.open("rb") as stream:
                header = stream.read(HEADER_BYTES)
            if header and int.from_bytes(header[APPLICATION_OFFSET:], "big") != APPLICATION:
                raise sqlite3.DatabaseError(FOREIGN)
        for folder in reversed([one for one in path.parents if not one.exists()]):
            folder.mkdir(mode=0o700, exist_ok=True)
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)
        except PermissionError as error:  # somebody else's file, or one that may only be read: SQLite says it too
            raise sqlite3.OperationalError(f"unable to open database file: {error.strerror}") from None

    def _stamps(self) -> tuple[int, int]:
        """(whose file it is, which version of it)."""
        application = self._database.execute("PRAGMA application_id").fetchone()[0]
        return int(application), int(self._database.execute("PRAGMA user_version").fetchone()[0])

    def put_aside(self) -> None:
        """Close a store that turned out to be damaged, and rename its file: the next command begins anew."""
        self._database.close()
        put_aside(self._path, self._identity)

    def __enter__(self) -> SessionStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def files(self) -> Mapping[str, RememberedFile]:
        """Every file that is remembered, by path. A damaged row is as good as none."""
        rows = self._database.execute("SELECT path, inode, size, mtime_ns, tail, sessions, checksum FROM files")
        return {
            path: RememberedFile(FileIdentity(*identity), tail, sessions)
            for path, *identity, tail, sessions, checksum in rows
            if checksum == _checksum(path, *identity, tail, sessions)
        }

    def state(self, path: str) -> bytes:
        """What is needed to go on reading a file; empty where nothing is, or where it is damaged."""
        row = self._database.execute("SELECT state, checksum FROM states WHERE path = ?", (path,)).fetchone()
        return row[0] if row and row[1] == _checksum(path, row[0]) else b""

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction: all or nothing."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._database.in_transaction:  # SQLite ends it by itself where the disk is full
                self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def put(self, path: str, file: RememberedFile, state: bytes) -> None:
        """Remember a file."""
        row = (path, *msgspec.structs.astuple(file.identity), file.tail, file.sessions)
        self._database.execute("INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, _checksum(*row)))
        self._database.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?)", (path, state, _checksum(path, state)))

    def forget(self, paths: Iterable[str]) -> None:
        """Remove files that no longer exist."""
        rows = [(path,) for path in paths]
        with self.writing():
            self._database.executemany("DELETE FROM files WHERE path = ?", rows)
            self._database.executemany("DELETE FROM states WHERE path = ?", rows)


def open_store(path: Path) -> SessionStore:
    """The store at `path`. A damaged one is put aside (`.damaged`) and begun anew: it holds nothing that files do not.
    Raises sqlite3.Error and OSError where it cannot be used: locked, another program's, no rights."""
    identity = identity_of(path)
    try:
        return SessionStore(path)
    except (sqlite3.Error, ValueError) as error:
        if str(error) == FOREIGN or not is_damage(error):
            raise
        put_aside(path, identity)
        return SessionStore(path)


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
        known: Mapping[str, RememberedFile] = {}
        with self._giving_up():
            known = self.store.files() if self.store else {}
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
        gone = [path for path in known if not Path(path).exists()]
        with self._giving_up():
            if self.store and gone:
                self.store.forget(gone)
        return self.found

    @contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Go on without a store that is locked, full or damaged: the result does not depend on it."""
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError) as error:
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
        if remembered is not None and remembered.identity == identity:
            with suppress(msgspec.DecodeError, TypeError):
                self.found.add(decode_sessions(remembered.sessions), path)
                self.found.remembered += 1
                return
        self.progress(path, status.st_size)
        self._read_file(path, identity, remembered)

    def _read_file(self, path: Path, identity: FileIdentity, remembered: RememberedFile | None) -> None:
        format_ = self._format(path)
        if any(folder in path.parents and is_companion(path, format_, folder) for folder in self.folders):
            return
        if format_ != TRANSCRIPT and not hasattr(READERS[format_], "session_files"):
            self.found.logs.append(path)  # its bills are not read without content
            return
        state = b""
        if remembered and self.store:
            old = remembered.identity
            may_be = old.inode == identity.inode and isinstance(old.size, int) and identity.size > old.size
            if may_be and tail_digest(path, old.size) == remembered.tail:  # it has only grown
                with self._giving_up():
                    state = self.store.state(str(path.absolute()))
        try:
            sessions, state = _read_sessions(format_, path, state)
        except (msgspec.DecodeError, TypeError):  # a damaged state
            sessions, state = _read_sessions(format_, path, b"")
        if sessions and (note := comment_note(path)):
            sessions[0].notes += (note,)
        self.found.add(sessions, path)
        self.found.read_bytes += identity.size
        is_unicode = str(path).encode(errors="ignore").decode() == str(path)  # no other path can be stored
        if self.store and format_ in WHOLE and is_unicode and not is_url(path):
            file = RememberedFile(identity, tail_digest(path, identity.size), encode(sessions))
            self._pending.append((str(path.absolute()), file, state))
            self._pending_bytes += len(state) + len(file.sessions)
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
        with self._giving_up():
            if self.store and self._pending:
                with self.store.writing():
                    for row in self._pending:
                        self.store.put(*row)
        self._pending, self._pending_bytes = [], 0


def _read_sessions(format_: str, path: Path, state: bytes) -> tuple[list[SessionFile], bytes]:
    """The sessions in a file, and what is needed to go on where it ends now (b"": nothing helps). `state` is what an
    earlier reading left. Raises InputError where the file cannot be read."""
    if format_ == TRANSCRIPT:
        return transcripts.read_sessions(path, state)
    reader: Any = READERS[format_]
    return [one for one in reader.session_files(path) if one.calls or one.damaged or one.notes], b""
