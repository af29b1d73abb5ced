"""Reads Crush's database (`.crush/crush.db` in the folder of a project) as calls.

They have messages, models and times, but no bill: Crush does not store it. An assistant message is one call. After a
summary (`is_summary_message`) a request begins with it. A session with a parent is a sub-agent's: its calls belong to
the session at the top.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cachecost.base import limits
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.base.times import known_time
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import SessionFile, Warn, billed_call, quiet
from cachecost.conversations.json_object import parse_json, reason
from cachecost.conversations.readers.common.session_calls import (
    Body,
    Piece,
    Session,
    SessionCall,
    StoreRequests,
    number_calls,
    text_body,
    top_sessions,
)
from cachecost.conversations.readers.common.sqlite_files import is_database, open_database, table_names
from cachecost.prompts.request import show_found
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

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


def is_crush_database(path: Path) -> bool:
    """Whether a database has Crush's tables. Raises nothing."""
    if not table_names(path) >= TABLES:
        return False
    try:
        with open_database(path) as database:
            return _columns(database) >= COLUMNS
    except InputError:
        return False


def read_store(path: Path) -> tuple[dict[str, CrushSession], list[Fault]]:
    """The sessions of a database with their messages in order of time, and the errors. Raises nothing."""
    sessions, faults = dict[str, CrushSession](), list[Fault]()
    try:
        with open_database(path) as database:
            query = "SELECT id, parent_session_id, created_at FROM sessions ORDER BY created_at, rowid"
            for session, parent, created in database.execute(query):
                sessions[str(session)] = CrushSession(str(session), str(parent or ""), _seconds(created))
            known = _columns(database)
            more = [name if name in known else "NULL" for name in ("provider", "is_summary_message")]  # since 2025
            query = (
                f"SELECT id, session_id, role, CAST(parts AS BLOB), model, created_at, {', '.join(more)} FROM messages"
                " ORDER BY created_at, rowid"
            )
            for message, session, role, data, model, created, provider, is_summary in database.execute(query):
                parts = _parse_parts(data or b"[]")
                if isinstance(parts, str):
                    faults.append(Fault(str(path), f"message {message}: {parts}"))
                elif session in sessions:
                    facts = str(role), parts, str(model or ""), str(provider or ""), _seconds(created), bool(is_summary)
                    sessions[session].messages.append(CrushMessage(str(message), *facts))
    except InputError as error:
        faults += error.faults
    return sessions, faults


def _columns(database: sqlite3.Connection) -> set[str]:
    return {str(row[1]) for row in database.execute("PRAGMA table_info(messages)")}


def _parse_parts(data: bytes) -> list[Mapping[str, Any]] | str:
    found = limits.LINE.error() if len(data) > limits.LINE.value() else parse_json(data)
    if isinstance(found, ValueError):
        return reason(found)
    if not isinstance(found, list):
        return f"parts: expected an array; got {show_found(found)}"
    if others := [number for number, part in enumerate(found) if not isinstance(part, Mapping)]:
        return f"parts[{others[0]}]: expected an object; got {show_found(found[others[0]])}"
    return found


def parts_of(message: CrushMessage, kind: str) -> Iterable[Mapping[str, Any]]:
    """The data of the parts of one type."""
    found = (part.get("data") for part in message.parts if part.get("type") == kind)
    return [data for data in found if isinstance(data, Mapping)]


def _seconds(at: object) -> float | None:
    if not limits.is_number(at):
        return None
    return known_time(at / 1000 if at >= FIRST_MILLISECONDS else float(at))


def calls_of(sessions: Mapping[str, CrushSession]) -> Iterator[SessionCall]:
    """The calls of all sessions, session by session."""
    parents = {name: session.parent for name, session in sessions.items()}
    for session, root, number in top_sessions(parents):
        agent = f"agent {number}" if number else ""
        for call in _session_calls(sessions[session], is_agent=bool(agent)):
            call.bill.session, call.bill.agent, call.thread = root, agent, agent
            yield call


def _session_calls(session: CrushSession, *, is_agent: bool) -> Iterator[SessionCall]:
    last: SessionCall | None = None
    waiting, events = list[Piece](), set[str]()
    for message in session.messages:
        texts = [text_body(data.get("text")) for data in parts_of(message, "text")]
        if message.role != "assistant":
            if message.role == "user" and not is_agent:
                events.add("human")
            results: list[Body] = [
                {
                    "type": "tool_result",
                    "tool_use_id": str(data.get("tool_call_id") or ""),
                    "content": str(data.get("content") or ""),
                    **({"is_error": True} if data.get("is_error") else {}),
                }
                for data in parts_of(message, "tool_result")
            ]
            waiting.append(Piece("user", 0, results + texts))
            continue
        if message.is_summary:
            events.add("compaction")
        if not message.parts or not message.model:
            continue
        texts = [body for body in texts if body["text"]]
        call = _new_call(message, last, events, texts)
        call.request = waiting
        yield call
        if message.is_summary:  # it takes the place of all before it
            waiting, events, last = [Piece("user", 0, texts)], {"compaction"}, last or call
        else:
            waiting, events, last = [], set(), call


def _new_call(message: CrushMessage, before: SessionCall | None, events: set[str], texts: list[Body]) -> SessionCall:
    model, host = parse_model_name(message.model, message.provider)
    times = [part.get("time") for part in parts_of(message, "finish")]
    end = next((float(at) for at in times if limits.is_number(at) and at), None)
    end = known_time(end if end is None or end < FIRST_MILLISECONDS else end / 1000)
    thinking: list[Body] = [
        {"type": "thinking", "thinking": str(data.get("thinking") or ""), "signature": str(data.get("signature") or "")}
        for data in parts_of(message, "reasoning")
    ]
    tools: list[Body] = []
    for data in parts_of(message, "tool_call"):  # the input is stored as a text of JSON
        values = parse_json(str(data.get("input") or "{}").encode("utf-8", "replace"))
        use = {"type": "tool_use", "id": str(data.get("id") or ""), "name": str(data.get("name") or "")}
        tools.append({**use, "input": values if isinstance(values, Mapping) else {}})
    call = SessionCall(
        billed_call(0, model, Usage(), message.created, end, host=host or "", id=f"crush {message.id}"),
        before,
        set(events),
        answer=[Piece("assistant", 0, [*thinking, *texts, *tools])],
        is_billed=False,
    )
    call.is_cut = "compaction" in events and not message.is_summary
    call.prefix = "summary" if message.is_summary else ""
    return call


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
    sessions, faults = read_store(path)
    found = number_calls(calls_of(sessions))
    for call in found:
        call.project = project_of(path)
    yield from StoreRequests(path, "Crush", keep_content, faults, marked=2).calls(Session(calls=found))


def session_files(path: Path) -> list[SessionFile]:
    """One for the database, without calls: its notes say how many of them have no usage. What is damaged is listed."""
    sessions, faults = read_store(path)
    found = sum(1 for _ in calls_of(sessions))
    note = f"{count_text(found, 'call')} without usage: Crush stores only the dollars of each session"
    damaged = tuple((fault.line or 0, fault.message) for fault in faults)
    return [SessionFile(str(path), "crush", project_of(path), [], damaged, (note,) if found else ())]
