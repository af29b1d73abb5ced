"""opencode's sessions as they are stored: in a database (since 1.2), or before in a folder of JSON files.

- `opencode.db` (also `opencode-CHANNEL.db`): tables session, message and part; the last two have their record as JSON
  in `data`. Sessions of older versions were moved into it; their JSON files stayed. Version 2 has its messages in
  session_message instead.
- `storage/session/PROJECT/SESSION.json`, `storage/message/SESSION/MESSAGE.json`, `storage/part/MESSAGE/PART.json`
  (0.6 to 1.1). The file of a session is its log; the other two folders belong to it.

Of each record only the fields that a bill needs are decoded. Seen in opencode 1.18.33, and read in its source
(session/message-v2.ts, session/session.ts) and in that of 0.6 to 1.2. Times are milliseconds since the epoch.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

import msgspec

from cachecost.base import limits
from cachecost.base.errors import Fault, InputError
from cachecost.conversations.input_files import read_input
from cachecost.conversations.readers.common.json_values import DAMAGED, Value, damage_in, decode, decode_record
from cachecost.conversations.readers.common.session_calls import text_body
from cachecost.conversations.readers.common.sqlite_files import MAGIC, columns_of, is_database, open_database

Number = int | float | None
STEP_END = "step-finish"


def wire_name(name: str) -> str:
    """ "session_id" -> "sessionID"."""
    head, _, end = name.partition("_id")
    return f"{head}ID" if head and not end and name.endswith("_id") else name


class CacheTokens(msgspec.Struct):
    read: Number = None
    write: Number = None


class StepTokens(msgspec.Struct):
    """The usage of a message or of one step. `total` is there since 1.2."""

    input: Number = None
    output: Number = None
    reasoning: Number = None
    cache: CacheTokens = msgspec.field(default_factory=CacheTokens)
    total: Number = None


class RecordTimes(msgspec.Struct):
    """`compacted` is when the output of a tool was cleared; opencode 2 says `pruned`."""

    created: Number = None
    completed: Number = None
    start: Number = None
    end: Number = None
    compacted: Number = None
    pruned: Number = None


class ModelChoice(msgspec.Struct, rename=wire_name):
    provider_id: str = ""
    model_id: str = ""
    variant: str | None = None


class WorkingFolder(msgspec.Struct):
    cwd: str = ""


class MessageRecord(msgspec.Struct, rename=wire_name):
    """A message without its parts. An assistant message is one call; before 1.0 it could be several, one a step."""

    role: str
    id: str = ""
    session_id: str = ""
    time: RecordTimes = msgspec.field(default_factory=RecordTimes)
    tokens: StepTokens | None = None
    model_id: str = ""
    provider_id: str = ""
    agent: str | None = None
    mode: str | None = None
    variant: str | None = None
    model: ModelChoice | None = None
    path: WorkingFolder | None = None
    summary: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")

    @property
    def is_summary(self) -> bool:
        """Whether it is the answer to a compaction. (A user message has an object here.)"""
        return bytes(self.summary) == b"true"

    @property
    def has_error(self) -> bool:
        return bytes(self.error) not in (b"", b"null")

    @property
    def effort(self) -> str:
        return self.variant or (self.model.variant if self.model else None) or ""


class ToolState(msgspec.Struct):
    status: str = ""
    time: RecordTimes | None = None


class PartRecord(msgspec.Struct, rename=wire_name):
    """A part of a message: text, reasoning, tool, step-finish, compaction …"""

    type: str
    id: str = ""
    message_id: str = ""
    session_id: str = ""
    tokens: StepTokens | None = None
    state: ToolState | None = None
    synthetic: bool | None = None


class SessionRecord(msgspec.Struct, rename=wire_name):
    """A session: a conversation with a person, or a sub-agent's (`parentID`). `tokens` are all that its calls were
    billed, as it counts them itself (since 1.16; 0: unknown)."""

    id: str
    directory: str = ""
    parent_id: str | None = None
    version: str = ""
    time: RecordTimes = msgspec.field(default_factory=RecordTimes)
    project_id: str = ""
    tokens: int = 0


@dataclass(slots=True, eq=False)
class StoredPart:
    """A part, its size in bytes, and its JSON where content is wanted."""

    record: PartRecord
    size: int
    raw: bytes = b""


@dataclass(slots=True, eq=False)
class StoredMessage:
    id: str
    record: MessageRecord
    parts: list[StoredPart] = field(default_factory=list)

    def add_part(self, record: PartRecord, data: bytes, with_content: bool) -> None:
        self.parts.append(StoredPart(record, len(data), data if with_content else b""))

    def steps(self) -> list[tuple[StepTokens, list[StoredPart]]]:
        """The usage and the parts of each call of the message: one, unless it has several ends of steps."""
        found: list[tuple[StepTokens, list[StoredPart]]] = []
        parts: list[StoredPart] = []
        for part in self.parts:
            parts.append(part)
            if part.record.type == STEP_END and part.record.tokens:
                found.append((part.record.tokens, parts))
                parts = []
        return found if len(found) > 1 else [(self.record.tokens or StepTokens(), self.parts)]


@dataclass(slots=True, eq=False)
class StoredSession:
    record: SessionRecord
    messages: list[StoredMessage] = field(default_factory=list)

    @property
    def created(self) -> float:
        first = self.messages[0].record.time.created if self.messages else None
        return float(self.record.time.created or first or 0)


LATER_MESSAGE_TABLE = "session_message"
"""Of opencode 2: a row's role is its type, in the form of earlier messages."""
ROLES = {"user": "user", "synthetic": "user", "assistant": "assistant", "compaction": "compaction"}
"""The role of a row by its type; rows of other types (switches of agent and model, shell …) are left out."""


class LaterModel(ModelChoice, rename=wire_name):
    id: str = ""


class LaterPart(msgspec.Struct):
    type: str = ""
    time: RecordTimes | None = None


class LaterMessage(msgspec.Struct):
    """The fields of all types of rows that matter."""

    time: RecordTimes = msgspec.field(default_factory=RecordTimes)
    tokens: StepTokens | None = None
    model: LaterModel | None = None
    agent: str | None = None
    text: str = ""
    summary: str = ""
    content: list[msgspec.Raw] = []
    error: msgspec.Raw = msgspec.Raw(b"")


def _message_of_row(row_id: str, kind: str, row: LaterMessage, *, with_content: bool) -> StoredMessage:
    """A row as a message of the earlier form, but for the JSON of its parts. Raises msgspec.DecodeError."""
    record = MessageRecord(ROLES[kind], id=row_id, agent=row.agent, error=row.error, tokens=row.tokens)
    record.time = RecordTimes(created=row.time.created, completed=row.time.completed)
    if model := row.model:
        record.model_id, record.provider_id, record.variant = model.id, model.provider_id, model.variant
        record.model = ModelChoice(model.provider_id, model.id, model.variant)
    if tokens := row.tokens:
        counts = tokens.input, tokens.output, tokens.reasoning, tokens.cache.read, tokens.cache.write
        tokens.total = sum(count or 0 for count in counts)
    message = StoredMessage(row_id, record)
    if kind != "assistant":
        raw = msgspec.json.encode(text_body(row.text or row.summary))
        message.add_part(PartRecord("text", id="000000", synthetic=kind != "user"), raw, with_content)
    for number, content in enumerate(row.content):
        later = decode(content, LaterPart)
        part = PartRecord(later.type, id=f"{number:06}")
        if later.type == "tool":
            times = later.time or RecordTimes()
            part.state = ToolState(time=RecordTimes(end=times.completed, compacted=times.pruned))
        message.add_part(part, bytes(content), with_content)
    return message


SESSION_TABLES = ("session", "session_v2")
"""Of opencode 1 and of 2, which has either name."""
MESSAGE_TABLE = "message"
COLUMNS = frozenset(("session_id", "time_created", "data"))
"""Columns that opencode's tables of messages have together."""
MESSAGE_FILE, PART_FILE = "msg_", "prt_"


def has_opencode_tables(columns: Mapping[str, set[str]]) -> bool:
    """Whether the tables of a database, with their columns, are opencode's."""
    messages = [columns[name] for name in (MESSAGE_TABLE, LATER_MESSAGE_TABLE) if name in columns]
    return bool(messages) and bool(columns.keys() & SESSION_TABLES) and all(found >= COLUMNS for found in messages)


@dataclass(slots=True)
class StoreReading:
    """Reads a store. Errors go to `faults`."""

    path: Path
    with_content: bool
    faults: list[Fault]
    most: int = field(default_factory=limits.LINE.value)

    def sessions(self) -> list[StoredSession]:
        """The sessions of a database, of a session's file, or the one message of a message's file, in order of time."""
        with self.path.open("rb") as stream:
            read = self._from_database if is_database(stream.read(len(MAGIC))) else self._from_files
        found: list[StoredSession] = []
        try:
            read(found)
        except InputError as error:
            self.faults += error.faults
        for session in found:
            session.messages.sort(key=lambda message: (float(message.record.time.created or 0), message.id))
            for message in session.messages:
                message.parts.sort(key=lambda part: part.record.id)
        return sorted(found, key=attrgetter("created"))

    def _decode(self, kind: type[Value], data: bytes, file: Path, place: str = "") -> Value | None:
        return decode_record(data, kind, file, self.faults, place, self.most)

    def _from_database(self, found: list[StoredSession]) -> None:
        """Records of sessions or messages that are gone are left out, as opencode deletes them. Raises InputError
        where the database cannot be read to its end."""
        with open_database(self.path) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            stored = (one for name in SESSION_TABLES if name in tables for one in self._sessions(database, name))
            sessions = {session.record.id: session for session in stored}
            found += sessions.values()
            if MESSAGE_TABLE in tables:
                self._read_messages(database, sessions)
            if LATER_MESSAGE_TABLE in tables:
                self._read_later_messages(database, sessions)

    def _sessions(self, database: sqlite3.Connection, table: str) -> Iterator[StoredSession]:
        sums = [f"coalesce({column}, 0)" for column in columns_of(database, table) if column.startswith("tokens_")]
        query = f"SELECT id, directory, parent_id, version, time_created, {' + '.join(sums) or 0} FROM {table}"
        for session_id, directory, parent, version, created, tokens in database.execute(query):
            row = {"id": session_id, "directory": directory or "", "parentID": parent, "version": version or ""}
            row["tokens"] = tokens if limits.is_tokens(tokens) else 0
            row["time"] = {"created": created if isinstance(created, (int, float)) else None}
            try:
                yield StoredSession(msgspec.convert(row, SessionRecord))
            except msgspec.ValidationError as error:
                self.faults.append(Fault(str(self.path), f"session {session_id!r}: damaged record: {error}"))

    def _read_messages(self, database: sqlite3.Connection, sessions: dict[str, StoredSession]) -> None:
        messages: dict[str, StoredMessage] = {}
        query = "SELECT id, session_id, CAST(data AS BLOB) FROM message"
        for message_id, session_id, data in database.execute(query):
            record = self._decode(MessageRecord, data or b"", self.path, f"message {message_id}: ")
            if record is not None and session_id in sessions:
                message = messages[str(message_id)] = StoredMessage(str(message_id), record)
                sessions[session_id].messages.append(message)
        for part_id, message_id, data in database.execute("SELECT id, message_id, CAST(data AS BLOB) FROM part"):
            if message_id in messages and (
                part := self._decode(PartRecord, data or b"", self.path, f"part {part_id}: ")
            ):
                part.id = str(part_id)
                messages[message_id].add_part(part, data, self.with_content)

    def _read_later_messages(self, database: sqlite3.Connection, sessions: dict[str, StoredSession]) -> None:
        query = f"SELECT id, session_id, type, CAST(data AS BLOB) FROM {LATER_MESSAGE_TABLE} ORDER BY session_id, seq"
        for message_id, session_id, kind, data in database.execute(query):
            place = f"message {message_id}: "
            row = self._decode(LaterMessage, data or b"", self.path, place) if kind in ROLES else None
            if row is None or session_id not in sessions:
                continue
            try:
                made = _message_of_row(str(message_id), kind, row, with_content=self.with_content)
                sessions[session_id].messages.append(made)
            except DAMAGED as error:
                self.faults.append(Fault(str(self.path), f"{place}{damage_in(error)}"))

    def _from_files(self, found: list[StoredSession]) -> None:
        """The file of a session with the folders that belong to it, or the file of one message. Raises InputError
        where a file cannot be read."""
        storage = storage_of(self.path)
        if self.path.name.startswith(MESSAGE_FILE):
            for message in self._message(self.path, storage):  # its session is known by its name, or by its file
                record, folder = message.record, message.record.path
                session = SessionRecord(record.session_id, folder.cwd if folder else "")
                for file in sorted(storage.glob(f"session/*/{_file_name(session.id)}.json")):
                    session = self._decode(SessionRecord, read_input(file), file) or session
                found.append(StoredSession(session, [message]))
        elif (known := self._decode(SessionRecord, read_input(self.path), self.path)) is not None:
            stored = StoredSession(known)
            found.append(stored)
            for file in sorted((storage / "message" / _file_name(known.id)).glob("*.json")):
                stored.messages += self._message(file, storage)

    def _message(self, file: Path, storage: Path) -> Iterator[StoredMessage]:
        if (record := self._decode(MessageRecord, read_input(file), file)) is not None:
            message = StoredMessage(record.id or file.stem, record)
            for part_file in sorted((storage / "part" / _file_name(message.id)).glob("*.json")):
                data = read_input(part_file)
                if (part := self._decode(PartRecord, data, part_file)) is not None:
                    message.add_part(part, data, self.with_content)
            yield message


def storage_of(path: Path) -> Path:
    """The folder that a record's file is three levels below."""
    folders = path.absolute().parents
    return folders[min(2, len(folders) - 1)]


def _file_name(identifier: str) -> str:
    """An id as the name of a file or folder: nothing that leads elsewhere."""
    return re.sub(r"[^\w.-]|\.\.", "_", identifier) or "_"
