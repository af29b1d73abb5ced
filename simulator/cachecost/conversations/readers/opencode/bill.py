"""The bill of opencode's sessions, without their content."""

from __future__ import annotations

from pathlib import Path

from cachecost.base.formatting import count_text
from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.common.json_values import StoredCall, billed_calls, number_calls
from cachecost.conversations.readers.opencode.steps import MISSING, SessionCalls
from cachecost.conversations.readers.opencode.store import read_store

CLIENT = "opencode"


def session_files(path: Path) -> list[SessionFile]:
    """The sessions of a database or of a session's file: each with its sub-agents and the sessions forked from it.

    What is damaged stands in the first of them, with the place in its reason; the rest is counted. Raises InputError
    where the file cannot be read at all.
    """
    store = read_store(path, with_content=False)
    sessions = SessionCalls(store.sessions, with_content=False)
    found = list(sessions.calls())
    families: dict[str, list[StoredCall]] = {}
    for call in found:
        families.setdefault(sessions.families.get(call.session, call.session), []).append(call)
    made = [_session_file(path, number_calls(calls)) for calls in families.values()]
    for session, tokens in sessions.missing.items():
        family = sessions.families[session]
        file = next((file for file, name in zip(made, families, strict=True) if name == family), None)
        if file is not None:
            file.notes = (*file.notes, f"session {session}: {count_text(tokens, 'token')} {MISSING}")
    damaged = [(fault.line or 0, _place(path, fault.file) + fault.message) for fault in store.faults]
    damaged += [(0, reason) for reason in sessions.damaged]
    if damaged:
        made = made or [SessionFile(str(path), CLIENT)]
        made[0].damaged = tuple(damaged)
    return made


def _session_file(path: Path, calls: list[StoredCall]) -> SessionFile:
    return SessionFile(str(path), CLIENT, calls[0].project, billed_calls(calls))


def _place(path: Path, file: str) -> str:
    return "" if file == str(path) else f"{Path(file).name}: "
