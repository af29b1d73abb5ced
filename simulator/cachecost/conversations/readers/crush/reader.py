"""Reads Crush's database (`.crush/crush.db` in the folder of a project) as calls.

They have messages, models and times, but no bill: Crush does not store it. An assistant message is one call. After a
summary (`is_summary_message`) a request begins with it. A session with a parent is a sub-agent's: its calls belong to
the session at the top.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachecost.base import limits
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.base.times import known_time
from cachecost.conversations.input_files import Warn, billed_call
from cachecost.conversations.json_object import parse_json, reason
from cachecost.conversations.readers.common import session_calls as common
from cachecost.conversations.readers.common.sqlite_files import (
    columns_by_table,
    columns_of,
    created_tables,
    open_database,
)
from cachecost.prompts.request import show_found
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

LACKS = (
    "Crush stores no usage of single calls (only the dollars of a session), neither system prompt, tools nor"
    " breakpoints: costs are those of the messages alone"
)
TABLES = {"sessions", "messages", "files"}
COLUMNS = frozenset(("session_id", "role", "parts", "model"))
FOLDER = ".crush"
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

    def of_type(self, kind: str) -> Iterable[Mapping[str, Any]]:
        """The data of the parts of one type."""
        found = (part.get("data") for part in self.parts if part.get("type") == kind)
        return [data for data in found if isinstance(data, Mapping)]

    def texts(self) -> list[common.Body]:
        return [common.text_body(data.get("text")) for data in self.of_type("text")]


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is Crush's database; None if it is not, or if only its tables can show it."""
    is_one = created_tables(head) >= {name.encode() for name in TABLES} and b"prompt_tokens" in head
    return "a database with the tables sessions, messages and files" if is_one else None


def sniff_file(path: Path, head: bytes) -> str | None:
    """The same for a file, whose tables may all be in its write-ahead log."""
    columns = columns_by_table(path, head)
    return "a database with Crush's tables" if columns.keys() >= TABLES and columns["messages"] >= COLUMNS else None


class CrushStore(common.StoreParser):
    def stored_calls(self, faults: list[Fault]) -> Iterator[common.SessionCall]:
        parents, messages = _read_sessions(self.path, faults)
        for session, root, number in common.top_sessions(parents):
            agent = f"agent {number}" if number else ""
            for call in _session_calls(messages[session], common.CallChain(agent)):
                call.bill.session, call.bill.agent = root, agent
                call.project = self._project()
                yield call

    def _project(self) -> str:
        """The folder of the project: the one that the database's folder is in."""
        folder = self.path.absolute().parent
        return str(folder.parent if folder.name == FOLDER else folder)

    def read(self, faults: list[Fault], warn: Warn) -> common.Session:
        session = super().read(faults, warn)
        session.project = self._project()
        if session.calls:
            calls = count_text(len(session.calls), "call")
            session.notes.append(f"{calls} without usage: Crush stores only the dollars of each session")
        return session


def _read_sessions(path: Path, faults: list[Fault]) -> tuple[dict[str, str], dict[str, list[CrushMessage]]]:
    """The parents of the sessions of a database, and their messages, in order of time."""
    parents, sessions = dict[str, str](), dict[str, list[CrushMessage]]()
    try:
        with open_database(path) as database:
            query = "SELECT id, parent_session_id FROM sessions ORDER BY created_at, rowid"
            for session, parent in database.execute(query):
                parents[str(session)], sessions[str(session)] = str(parent or ""), []
            known = columns_of(database, "messages")
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
                    sessions[session].append(CrushMessage(str(message), *facts))
    except InputError as error:
        faults += error.faults
    return parents, sessions


def _parse_parts(data: bytes) -> list[Mapping[str, Any]] | str:
    found = limits.LINE.error() if len(data) > limits.LINE.value() else parse_json(data)
    if isinstance(found, ValueError):
        return reason(found)
    if not isinstance(found, list):
        return f"parts: expected an array; got {show_found(found)}"
    if others := [number for number, part in enumerate(found) if not isinstance(part, Mapping)]:
        return f"parts[{others[0]}]: expected an object; got {show_found(found[others[0]])}"
    return found


def _seconds(at: object) -> float | None:
    if not limits.is_number(at):
        return None
    return known_time(at / 1000 if at >= FIRST_MILLISECONDS else float(at))


def _session_calls(messages: list[CrushMessage], chain: common.CallChain) -> Iterator[common.SessionCall]:
    for message in messages:
        if message.role != "assistant":
            if message.role == "user" and not chain.thread:
                chain.events.add("human")
            results: list[common.Body] = [
                {
                    "type": "tool_result",
                    "tool_use_id": str(data.get("tool_call_id") or ""),
                    "content": str(data.get("content") or ""),
                    **({"is_error": True} if data.get("is_error") else {}),
                }
                for data in message.of_type("tool_result")
            ]
            chain.request.append(common.Piece("user", 0, results + message.texts()))
            continue
        if message.is_summary:
            chain.events.add("compaction")
        if not message.parts or not message.model:
            continue
        before, texts = chain.last, [body for body in message.texts() if body["text"]]
        call = _add_call(message, chain, texts)
        yield call
        if message.is_summary:  # it takes the place of all before it
            chain.cut(common.Piece("user", 0, texts))
            chain.last = before or call


def _add_call(message: CrushMessage, chain: common.CallChain, texts: list[common.Body]) -> common.SessionCall:
    model, host = parse_model_name(message.model, message.provider)
    times = [part.get("time") for part in message.of_type("finish")]
    end = _seconds(next((at for at in times if limits.is_number(at) and at), None))
    thinking: list[common.Body] = [
        {"type": "thinking", "thinking": str(data.get("thinking") or ""), "signature": str(data.get("signature") or "")}
        for data in message.of_type("reasoning")
    ]
    tools: list[common.Body] = []
    for data in message.of_type("tool_call"):  # the input is stored as a text of JSON
        values = parse_json(str(data.get("input") or "{}").encode("utf-8", "replace"))
        use = {"type": "tool_use", "id": str(data.get("id") or ""), "name": str(data.get("name") or "")}
        tools.append({**use, "input": values if isinstance(values, Mapping) else {}})
    chain.is_cut = "compaction" in chain.events and not message.is_summary
    bill = billed_call(0, model, Usage(), message.created, end, host=host or "", id=f"crush {message.id}")
    call = chain.add_call(bill, [common.Piece("assistant", 0, [*thinking, *texts, *tools])])
    call.is_billed, call.prefix = False, "summary" if message.is_summary else ""
    return call


FORMAT = common.SessionFormat("crush", "Crush", CrushStore)
calls, session_files = FORMAT.calls, FORMAT.session_files
