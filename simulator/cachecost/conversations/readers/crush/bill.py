"""The bill of Crush's sessions: there is none of single calls, and its notes say so."""

from __future__ import annotations

from pathlib import Path

from cachecost.base.formatting import count_text
from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.crush.reader import project_of
from cachecost.conversations.readers.crush.steps import calls_of, read_store

CLIENT = "crush"


def session_files(path: Path) -> list[SessionFile]:
    """One for the database, without calls: its notes say how many of them have no usage. What is damaged is listed."""
    store = read_store(path)
    calls = sum(1 for _ in calls_of(store))
    note = f"{count_text(calls, 'call')} without usage: Crush stores only the dollars of each session"
    damaged = tuple((fault.line or 0, fault.message) for fault in store.faults)
    return [SessionFile(str(path), CLIENT, project_of(path), [], damaged, (note,) if calls else ())]
