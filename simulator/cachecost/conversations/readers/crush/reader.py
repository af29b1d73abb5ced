"""Reads Crush's database (`.crush/crush.db` in the folder of a project) as calls.

They have messages, models and times, but no bill: Crush does not store it. An assistant message is one call. After a
summary (`is_summary_message`) a request begins with it. A session with a parent is a sub-agent's: its calls belong to
the session at the top.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base import limits
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.base.limits import is_number
from cachecost.base.times import known_time
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import SessionFile, Warn, quiet
from cachecost.conversations.json_object import parse_json, reason
from cachecost.conversations.readers.common.session_calls import (
    Piece,
    Session,
    SessionCall,
    StoreRequests,
    number_calls,
)
from cachecost.conversations.readers.common.sqlite_files import is_database, open_database, table_names
from cachecost.prompts.request import show_found
from cachecost.providers.hosts import parse_model_name

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


Body = dict[str, Any]
TITLE = "title-"
"""How the sessions began in which versions of 2025 made titles."""


@dataclass(slots=True)
class _MessageChain:
    last: SessionCall | None = None
    waiting: list[Piece] = field(default_factory=list)
    events: set[str] = field(default_factory=set)


def calls_of(store: CrushStore) -> Iterator[SessionCall]:
    """The calls of all sessions, session by session."""
    agents: Counter[str] = Counter()
    for session in store.sessions.values():
        root = _root(store, session)
        agent = ""
        if root is not session:
            agents[root.id] += 1
            agent = f"agent {agents[root.id]}"
        for call in _session_calls(session, is_agent=bool(agent)):
            call.session, call.agent, call.thread = root.id, agent, agent
            yield call


def _root(store: CrushStore, session: CrushSession) -> CrushSession:
    seen = {session.id}
    while (parent := store.sessions.get(session.parent)) and parent.id not in seen:
        session = parent
        seen.add(session.id)
    return session


def _session_calls(session: CrushSession, *, is_agent: bool) -> Iterator[SessionCall]:
    chain = _MessageChain()
    for message in session.messages:
        if message.role != "assistant":
            if message.role == "user" and not is_agent:
                chain.events.add("human")
            results = [_result(data) for data in parts_of(message, "tool_result")]
            texts = [_text(data) for data in parts_of(message, "text")]
            chain.waiting.append(Piece("user", 0, results + texts))
            continue
        if message.is_summary:
            chain.events.add("compaction")
        if not message.parts or not message.model:
            continue
        texts = [_text(data) for data in parts_of(message, "text") if data.get("text")]
        call = _new_call(message, chain, texts)
        yield call
        _continue(chain, call, texts, is_summary=message.is_summary)


def _new_call(message: CrushMessage, chain: _MessageChain, texts: list[Body]) -> SessionCall:
    model, stated = parse_model_name(message.model, message.provider)
    host = stated or ""
    if chain.last is not None and (chain.last.model, chain.last.host) != (model, host):
        chain.events.add("model")
    times = [part.get("time") for part in parts_of(message, "finish")]
    end = next((float(at) for at in times if is_number(at) and at), None)
    thinking: list[Body] = [
        {"type": "thinking", "thinking": str(data.get("thinking") or ""), "signature": str(data.get("signature") or "")}
        for data in parts_of(message, "reasoning")
    ]
    tools = [_tool_use(data) for data in parts_of(message, "tool_call")]
    return SessionCall(
        model=model,
        host=host,
        start=message.created,
        end=known_time(end if end is None or end < FIRST_MILLISECONDS else end / 1000),
        before=chain.last,
        events=set(chain.events),
        id=f"crush {message.id}",
        request=chain.waiting,
        answer=[Piece("assistant", 0, [*thinking, *texts, *tools])],
        is_billed=False,
        is_cut="compaction" in chain.events and not message.is_summary,
        prefix="summary" if message.is_summary else "",
    )


def _continue(chain: _MessageChain, call: SessionCall, texts: list[Body], *, is_summary: bool) -> None:
    """What the session has after this call: a summary takes the place of all before it."""
    if is_summary:
        chain.waiting, chain.events = [Piece("user", 0, texts)], {"compaction"}
        chain.last = chain.last or call
    else:
        chain.waiting, chain.last, chain.events = [], call, set()


def _text(data: Mapping[str, Any]) -> Body:
    return {"type": "text", "text": str(data.get("text") or "")}


def _tool_use(data: Mapping[str, Any]) -> Body:
    """A call of a tool; its input is stored as a text of JSON."""
    told = parse_json(str(data.get("input") or "{}").encode("utf-8", "replace"))
    parsed = told if isinstance(told, Mapping) else {}
    return {"type": "tool_use", "id": str(data.get("id") or ""), "name": str(data.get("name") or ""), "input": parsed}


def _result(data: Mapping[str, Any]) -> Body:
    made = {"type": "tool_result", "tool_use_id": str(data.get("tool_call_id") or "")}
    return {**made, "content": str(data.get("content") or ""), **({"is_error": True} if data.get("is_error") else {})}


LACKS = (
    "Crush stores no usage of single calls (only the dollars of a session), neither system prompt, tools nor"
    " breakpoints: costs are those of the messages alone"
)
TABLE = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?[`\"]?(?:sessions|messages|files)[`\"]?\s*\(")
FOLDER = ".crush"


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is Crush's database; None if it is not, or if only its tables can show it."""
    names = {match[0].rstrip(b"( \n").split()[-1].strip(b'`"') for match in TABLE.finditer(head)}
    is_one = is_database(head) and len(names) == 3 and b"prompt_tokens" in head
    return "a database with the tables sessions, messages and files" if is_one else None


def sniff_file(path: Path, head: bytes) -> str | None:
    """The same for a file, whose tables may all be in its write-ahead log."""
    return "a database with Crush's tables" if is_database(head) and is_crush_database(path) else None


def project_of(path: Path) -> str:
    """The folder of the project: the one that the database's folder is in."""
    folder = path.absolute().parent
    return str(folder.parent if folder.name == FOLDER else folder)


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in the order of their times. Raises InputError with every error."""
    store = read_store(path)
    found = number_calls(calls_of(store))
    for call in found:
        call.project = project_of(path)
    yield from StoreRequests(path, "Crush", keep_content, store.faults, marked=2).calls(Session(calls=found))
    if store.faults:
        raise InputError(store.faults)


def session_files(path: Path) -> list[SessionFile]:
    """One for the database, without calls: its notes say how many of them have no usage. What is damaged is listed."""
    store = read_store(path)
    found = sum(1 for _ in calls_of(store))
    note = f"{count_text(found, 'call')} without usage: Crush stores only the dollars of each session"
    damaged = tuple((fault.line or 0, fault.message) for fault in store.faults)
    return [SessionFile(str(path), "crush", project_of(path), [], damaged, (note,) if found else ())]
