"""opencode's sessions as they are stored: in a database (since 1.2), or before in a folder of JSON files.

- `opencode.db` (also `opencode-CHANNEL.db`): tables session, message and part; the last two have their record as JSON
  in `data`. Sessions of older versions were moved into it; their JSON files stayed.
  Version 2 has its messages in session_message instead (records.py).
- `storage/session/PROJECT/SESSION.json`, `storage/message/SESSION/MESSAGE.json`, `storage/part/MESSAGE/PART.json`
  (0.6 to 1.1). The file of a session is its log; the other two folders belong to it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from cachecost.base import limits
from cachecost.base.errors import Fault, InputError
from cachecost.conversations.input_files import read_input
from cachecost.conversations.readers.common.sqlite_files import MAGIC, open_database, table_names
from cachecost.conversations.readers.opencode import records
from cachecost.conversations.readers.opencode.records import (
    MessageRecord,
    PartRecord,
    SessionRecord,
    StoredMessage,
    StoredPart,
    StoredSession,
)

SESSION_TABLES = ("session", "session_v2")
"""Of opencode 1 and of 2, which has either name."""
MESSAGE_TABLE = "message"
COLUMNS = frozenset(("session_id", "time_created", "data"))
"""Columns that opencode's tables of messages have together."""
Kind = TypeVar("Kind", MessageRecord, PartRecord, SessionRecord, records.LaterMessage)
MESSAGES, PARTS = msgspec.json.Decoder(MessageRecord), msgspec.json.Decoder(PartRecord)
SESSIONS, LATER_MESSAGES = msgspec.json.Decoder(SessionRecord), msgspec.json.Decoder(records.LaterMessage)
MESSAGE_FILE, PART_FILE = "msg_", "prt_"


@dataclass(slots=True)
class OpencodeStore:
    """What was read: the sessions with their messages in order of time, and the errors."""

    sessions: list[StoredSession] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def is_opencode_database(path: Path) -> bool:
    """Whether a database has opencode's tables. Raises nothing."""
    tables = table_names(path)
    messages = [name for name in (MESSAGE_TABLE, records.TABLE) if name in tables]
    if not messages or not tables & set(SESSION_TABLES):
        return False
    try:
        with open_database(path) as database:
            columns = [{row[1] for row in database.execute(f"PRAGMA table_info({name})")} for name in messages]
            return all(found >= COLUMNS for found in columns)
    except InputError:
        return False


def read_store(path: Path, with_content: bool) -> OpencodeStore:
    """The sessions of a database, of a session's file, or the one message of a message's file."""
    with path.open("rb") as stream:
        head = stream.read(len(MAGIC))
    reading = _DatabaseReading if head == MAGIC else _FileReading
    made = reading(path, with_content)
    try:
        made.read()
    except InputError as error:
        made.store.faults += error.faults
    for session in made.store.sessions:
        session.messages.sort(key=_message_order)
        for message in session.messages:
            message.parts.sort(key=_part_order)
    made.store.sessions.sort(key=attrgetter("created"))
    return made.store


def _message_order(message: StoredMessage) -> tuple[float, str]:
    return float(message.record.time.created or 0), message.id


def _part_order(part: StoredPart) -> str:
    return part.record.id


@dataclass(slots=True)
class _Reading:
    """What reading a store needs. Each record is decoded by `_decode`."""

    path: Path
    with_content: bool
    store: OpencodeStore = field(default_factory=OpencodeStore)
    most: int = field(default_factory=limits.LINE.value)

    def _decode(self, decoder: msgspec.json.Decoder[Kind], data: bytes, file: Path, place: str) -> Kind | None:
        """The record, or None and an error."""
        try:
            if len(data) > self.most:
                raise limits.LINE.error()
            return decoder.decode(data)
        except (msgspec.DecodeError, limits.OutOfLimits, UnicodeDecodeError, RecursionError) as error:
            self.store.faults.append(Fault(str(file), f"{place}{_reason(error)}"))
            return None

    def _add_part(self, message: StoredMessage, data: bytes, record: PartRecord) -> None:
        message.parts.append(StoredPart(record, len(data), data if self.with_content else b""))


def _reason(error: Exception) -> str:
    if isinstance(error, limits.OutOfLimits):
        return str(error)
    return f"damaged record: {'too many levels of nesting' if isinstance(error, RecursionError) else error}"


class _DatabaseReading(_Reading):
    """Reads a database. Records of sessions or messages that are gone are left out, as opencode deletes them."""

    def read(self) -> None:
        """Raises InputError where the database cannot be read to its end."""
        with open_database(self.path) as database:
            tables = {name for (name,) in _rows(database, "SELECT name FROM sqlite_master WHERE type = 'table'")}
            sessions = {session.record.id: session for session in self._sessions(database, tables)}
            self.store.sessions += sessions.values()
            if MESSAGE_TABLE in tables:
                messages = dict(self._messages(database, sessions))
                for part_id, message_id, data in _rows(database, "SELECT id, message_id, CAST(data AS BLOB) FROM part"):
                    if message_id in messages:
                        self._take_part(str(part_id), messages[message_id], data)
            if records.TABLE in tables:
                self._read_later_messages(database, sessions)

    def _read_later_messages(self, database: sqlite3.Connection, sessions: dict[str, StoredSession]) -> None:
        query = f"SELECT id, session_id, type, CAST(data AS BLOB) FROM {records.TABLE} ORDER BY session_id, seq"
        for message_id, session_id, kind, data in _rows(database, query):
            place = f"message {message_id}: "
            told = self._decode(LATER_MESSAGES, data or b"", self.path, place) if kind in records.ROLES else None
            if told is None or session_id not in sessions:
                continue
            try:
                made = records.message_of(str(message_id), kind, told, with_content=self.with_content)
                sessions[session_id].messages.append(made)
            except (ValueError, RecursionError) as error:
                self.store.faults.append(Fault(str(self.path), f"{place}{_reason(error)}"))

    def _sessions(self, database: sqlite3.Connection, tables: set[str]) -> Iterator[StoredSession]:
        for name in (name for name in SESSION_TABLES if name in tables):
            for session_id, directory, parent, version, created, tokens in _rows(
                database, _session_query(database, name)
            ):
                time = {"created": created if isinstance(created, (int, float)) else None}
                row = {"id": session_id, "directory": directory or "", "parentID": parent, "version": version or ""}
                try:
                    row |= {"tokens": tokens if limits.is_tokens(tokens) else 0, "time": time}
                    yield StoredSession(msgspec.convert(row, SessionRecord))
                except msgspec.ValidationError as error:
                    self.store.faults.append(Fault(str(self.path), f"session {session_id!r}: damaged record: {error}"))

    def _messages(
        self, database: sqlite3.Connection, sessions: dict[str, StoredSession]
    ) -> Iterator[tuple[str, StoredMessage]]:
        for message_id, session_id, data in _rows(database, "SELECT id, session_id, CAST(data AS BLOB) FROM message"):
            record = self._decode(MESSAGES, data or b"", self.path, f"message {message_id}: ")
            if record is None or session_id not in sessions:
                continue
            message = StoredMessage(str(message_id), record)
            sessions[session_id].messages.append(message)
            yield str(message_id), message

    def _take_part(self, part_id: str, message: StoredMessage, data: bytes) -> None:
        record = self._decode(PARTS, data or b"", self.path, f"part {part_id}: ")
        if record is not None:
            record.id = part_id
            self._add_part(message, data, record)


def _session_query(database: sqlite3.Connection, name: str) -> str:
    known = [str(row[1]) for row in database.execute(f"PRAGMA table_info({name})")]
    sums = [f"coalesce({column}, 0)" for column in known if column.startswith("tokens_")]
    return f"SELECT id, directory, parent_id, version, time_created, {' + '.join(sums) or 0} FROM {name}"


def _rows(database: sqlite3.Connection, query: str) -> Iterable[Any]:
    rows: Iterable[Any] = database.execute(query)
    return rows


class _FileReading(_Reading):
    """Reads the file of a session with the folders that belong to it, or the file of one message."""

    def read(self) -> None:
        """Raises InputError where the file cannot be read."""
        if self.path.name.startswith(MESSAGE_FILE):
            self._read_message_alone()
            return
        session = self._decode(SESSIONS, read_input(self.path), self.path, "")
        if session is None:
            return
        stored = StoredSession(session)
        self.store.sessions.append(stored)
        storage = storage_of(self.path)
        for file in sorted((storage / "message" / _name(session.id)).glob("*.json")):
            stored.messages += self._message(file, storage)

    def _read_message_alone(self) -> None:
        """One message: its session is known by its name alone, unless its file is there."""
        storage = storage_of(self.path)
        for message in self._message(self.path, storage):
            session = SessionRecord(message.record.session_id, message.record.path.cwd if message.record.path else "")
            for file in sorted(storage.glob(f"session/*/{_name(session.id)}.json")):
                session = self._decode(SESSIONS, read_input(file), file, "") or session
            self.store.sessions.append(StoredSession(session, [message]))

    def _message(self, file: Path, storage: Path) -> Iterator[StoredMessage]:
        record = self._decode(MESSAGES, read_input(file), file, "")
        if record is None:
            return
        message = StoredMessage(record.id or file.stem, record)
        for part_file in sorted((storage / "part" / _name(message.id)).glob("*.json")):
            data = read_input(part_file)
            part = self._decode(PARTS, data, part_file, "")
            if part is not None:
                self._add_part(message, data, part)
        yield message


def storage_of(path: Path) -> Path:
    """The folder that a record's file is three levels below."""
    folders = path.absolute().parents
    return folders[min(2, len(folders) - 1)]


def _name(identifier: str) -> str:
    """An id as the name of a file or folder: nothing that leads elsewhere."""
    return re.sub(r"[^\w.-]|\.\.", "_", identifier) or "_"
