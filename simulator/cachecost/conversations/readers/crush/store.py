"""Crush's sessions as its database stores them (`.crush/crush.db` in the folder of a project).

Read in Crush's source (internal/db/migrations, internal/message/content.go, internal/agent/agent.go, to September
2026); no session of Crush itself was at hand. Tables sessions, messages and files; `messages.parts` is a JSON array of
`{"type", "data"}`. Times are seconds, in some versions milliseconds.

There is no usage of single calls: a session has the dollars of all its calls (`cost`) and the input and output of the
last one (`prompt_tokens`, `completion_tokens`, set anew by every call), so no bill can be made of it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base import limits
from cachecost.base.errors import Fault, InputError
from cachecost.base.times import known_time
from cachecost.conversations.json_object import parse_json, reason
from cachecost.conversations.readers.common.sqlite_files import open_database, table_names
from cachecost.prompts.wire import show_found

TABLES = frozenset(("sessions", "messages", "files"))
COLUMNS = frozenset(("session_id", "role", "parts", "model"))
FIRST_MILLISECONDS = 1e11
"""From here on a time counts milliseconds: as seconds it would be in the year 5138."""


@dataclass(slots=True, eq=False)
class CrushMessage:
    id: str
    role: str
    parts: list[Mapping[str, Any]]
    model: str
    provider: str
    created: float | None
    is_summary: bool


@dataclass(slots=True, eq=False)
class CrushSession:
    id: str
    parent: str
    created: float | None
    messages: list[CrushMessage] = field(default_factory=list)


@dataclass(slots=True)
class CrushStore:
    """What was read: the sessions with their messages in order of time, and the errors."""

    sessions: dict[str, CrushSession] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)


def is_crush_database(path: Path) -> bool:
    """Whether a database has Crush's tables. Raises nothing."""
    if not table_names(path) >= TABLES:
        return False
    try:
        with open_database(path) as database:
            return _columns(database) >= COLUMNS
    except InputError:
        return False


def read_store(path: Path) -> CrushStore:
    """The sessions of a database. Raises nothing: what cannot be read is among the errors."""
    store = CrushStore()
    try:
        with open_database(path) as database:
            _read_sessions(database, store)
            for message, session in _messages(database, path, store):
                store.sessions[session].messages.append(message)
    except InputError as error:
        store.faults += error.faults
    return store


def _columns(database: sqlite3.Connection) -> set[str]:
    return {str(row[1]) for row in database.execute("PRAGMA table_info(messages)")}


def _read_sessions(database: sqlite3.Connection, store: CrushStore) -> None:
    query = "SELECT id, parent_session_id, created_at FROM sessions ORDER BY created_at, rowid"
    for session, parent, created in database.execute(query):
        store.sessions[str(session)] = CrushSession(str(session), str(parent or ""), _seconds(created))


def _messages(database: sqlite3.Connection, path: Path, store: CrushStore) -> Iterator[tuple[CrushMessage, str]]:
    """(message, its session); `provider` and `is_summary_message` are columns since 2025."""
    known = _columns(database)
    more = [name if name in known else "NULL" for name in ("provider", "is_summary_message")]
    query = (
        f"SELECT id, session_id, role, CAST(parts AS BLOB), model, created_at, {', '.join(more)} FROM messages"
        " ORDER BY created_at, rowid"
    )
    for message, session, role, data, model, created, provider, is_summary in database.execute(query):
        parts = _parts(data or b"[]", path, str(message), store.faults)
        if parts is not None and session in store.sessions:
            told = str(role), parts, str(model or ""), str(provider or ""), _seconds(created), bool(is_summary)
            yield CrushMessage(str(message), *told), str(session)


def _parts(data: bytes, path: Path, message: str, faults: list[Fault]) -> list[Mapping[str, Any]] | None:
    """The parts of a message; None and an error where they are damaged."""
    found = limits.LINE.error() if len(data) > limits.LINE.value() else parse_json(data)
    if isinstance(found, ValueError):
        wrong = reason(found)
    elif not isinstance(found, list):
        wrong = f"parts: expected an array; got {show_found(found)}"
    elif others := [number for number, part in enumerate(found) if not isinstance(part, Mapping)]:
        wrong = f"parts[{others[0]}]: expected an object; got {show_found(found[others[0]])}"
    else:
        return found
    faults.append(Fault(str(path), f"message {message}: {wrong}"))
    return None


def parts_of(message: CrushMessage, kind: str) -> Iterable[Mapping[str, Any]]:
    """The data of the parts of one type."""
    found = (part.get("data") for part in message.parts if part.get("type") == kind)
    return [data for data in found if isinstance(data, Mapping)]


def _seconds(at: object) -> float | None:
    if not limits.is_number(at):
        return None
    return known_time(at / 1000 if at >= FIRST_MILLISECONDS else float(at))
