"""Reads Crush's database as calls. They have messages, models and times, but no bill: Crush does not store it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cachecost.base.errors import InputError
from cachecost.base.formatting import count_text
from cachecost.conversations.calls import RecordedCall
from cachecost.conversations.input_files import SessionFile, Warn, quiet
from cachecost.conversations.readers.common.session_calls import Session, StoreRequests, number_calls
from cachecost.conversations.readers.common.sqlite_files import is_database
from cachecost.conversations.readers.crush.steps import calls_of, is_crush_database, read_store

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


def calls(path: Path, warn: Warn = quiet, keep_content: bool = True) -> Iterator[RecordedCall]:
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
