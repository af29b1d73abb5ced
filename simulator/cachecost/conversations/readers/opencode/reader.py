"""Reads opencode's session stores as calls: its database, or the file of a session of versions before 1.2.

Usage, times, model, folder and messages are the store's own (see steps.py). Missing parts are filled in as
`readers/common/session_calls.py` says; breakpoints as opencode places them: on the system prompt and the last two
messages, for Claude.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text
from cachecost.conversations.calls import Call
from cachecost.conversations.input_files import SessionFile, Warn, quiet
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.common.session_calls import (
    Session,
    SessionCall,
    StoreRequests,
    billed_calls,
    number_calls,
)
from cachecost.conversations.readers.common.sqlite_files import is_database
from cachecost.conversations.readers.opencode.steps import MISSING, SessionCalls
from cachecost.conversations.readers.opencode.store import PART_FILE, is_opencode_database, read_store, storage_of

LACKS = (
    "opencode stores neither system prompt, tools nor breakpoints (sized by the bill; breakpoints as opencode places"
    " them), nor the calls that name a session, nor whether a write was for 5m or 1h (taken as 5m)"
)
TABLE = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?[`\"]?(?:session|message|part)[`\"]?\s*\(")
RECORDS = (
    ({"projectID", "directory", "version"}, "a session"),
    ({"sessionID", "role", "time"}, "a message"),
    ({"sessionID", "messageID", "type"}, "a part"),
)
"""Keys that only opencode's records have together, and which record that is."""


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is opencode's; None if it is not, or if only its tables can show it."""
    if is_database(head):
        names = {match[0].rstrip(b"( \n").split()[-1].strip(b'`"') for match in TABLE.finditer(head)}
        return "a database with the tables session, message and part" if len(names) == 3 else None
    keys = set(top_keys(head))
    record = next((name for own, name in RECORDS if own <= keys), None)
    return f"its keys are those of {record} of opencode" if record else None


def sniff_file(path: Path, head: bytes) -> str | None:
    """The same for a file, whose tables may all be in its write-ahead log."""
    if is_database(head):
        return "a database with opencode's tables" if is_opencode_database(path) else None
    return sniff(head)


def is_companion(path: Path, folder: Path) -> bool:
    """Whether a file in `folder` belongs to another one there: messages and parts to the file of their session."""
    if path.name.startswith(PART_FILE):
        return True
    storage = storage_of(path)
    has_session = next(storage.glob(f"session/*/{path.parent.name}.json"), None) is not None
    return path.parent.parent.name == "message" and has_session and folder.absolute() in (storage, *storage.parents)


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[Call]:
    """The calls in the order of their times. Raises InputError with every error."""
    store = read_store(path, with_content=True)
    sessions = SessionCalls(store.sessions, with_content=True)
    found = number_calls(sessions.calls())
    sessions.notes.report(path, warn)
    faults = [*store.faults, *(Fault(str(path), reason) for reason in sessions.damaged)]
    yield from StoreRequests(path, "opencode", keep_content, faults, marked=2).calls(Session(calls=found))
    if faults:
        raise InputError(faults)


def session_files(path: Path) -> list[SessionFile]:
    """The sessions of a database or of a session's file: each with its sub-agents and the sessions forked from it.

    What is damaged stands in the first of them, with the place in its reason; the rest is counted. Raises InputError
    where the file cannot be read at all.
    """
    store = read_store(path, with_content=False)
    sessions = SessionCalls(store.sessions, with_content=False)
    found = list(sessions.calls())
    families: dict[str, list[SessionCall]] = {}
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
        made = made or [SessionFile(str(path), "opencode")]
        made[0].damaged = tuple(damaged)
    return made


def _session_file(path: Path, calls: list[SessionCall]) -> SessionFile:
    return SessionFile(str(path), "opencode", calls[0].project, billed_calls(calls))


def _place(path: Path, file: str) -> str:
    return "" if file == str(path) else f"{Path(file).name}: "
