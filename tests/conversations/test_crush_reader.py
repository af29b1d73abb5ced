"""Crush's database as calls: they have messages, models and times, and no bill."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.calls import Call
from cachecost.conversations.readers.crush.reader import calls, session_files, sniff
from cachecost.conversations.readers.detect import detect
from served_hosts import served_by

START = 1_772_877_600
"""2026-03-07T10:00:00Z, in seconds."""
TABLES = """
CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0,
    cost REAL NOT NULL DEFAULT 0.0, created_at INTEGER NOT NULL);
CREATE TABLE files (id TEXT PRIMARY KEY, session_id TEXT NOT NULL);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL,
    parts BLOB NOT NULL default '[]', model TEXT, created_at INTEGER NOT NULL{});
"""
LATER = ", provider TEXT, is_summary_message INTEGER DEFAULT 0 NOT NULL"
"""Columns that came in 2025."""
Part = dict[str, Any]


def part(kind: str, **data: Any) -> Part:
    return {"type": kind, "data": data}


ASKS = [part("text", text="list the files")]
USES = [
    part("reasoning", thinking="hm", signature="s"),
    part("tool_call", id="t1", name="ls", input='{"path": "."}', finished=True),
    part("finish", reason="tool_use", time=START + 5),
]
RESULTS = [part("tool_result", tool_call_id="t1", name="ls", content="none", is_error=False)]
SAYS = [part("text", text="there are none"), part("finish", reason="end_turn", time=START + 9)]
TURN = [("m1", "s1", "user", ASKS), ("m2", "s1", "assistant", USES), ("m3", "s1", "tool", RESULTS)]
TURN.append(("m4", "s1", "assistant", SAYS))


def database(
    folder: Path, rows: list[tuple[str, str, str, list[Part]]], *, columns: str = LATER, unit: int = 1, **parents: str
) -> Path:
    """A database with the sessions s1, s2 …; `parents` are the sessions that started others."""
    (folder / ".crush").mkdir()
    path = folder / ".crush" / "crush.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(TABLES.format(columns))
        for number, name in enumerate(sorted({row[1] for row in rows})):
            row = name, parents.get(name), "t", (START + number) * unit
            connection.execute(
                "INSERT INTO sessions (id, parent_session_id, title, created_at) VALUES (?, ?, ?, ?)", row
            )
        for number, (name, session, role, parts) in enumerate(rows):
            row = name, session, role, json.dumps(parts), "claude-opus-4-6" if role == "assistant" else None
            told = "id, session_id, role, parts, model, created_at"
            connection.execute(
                f"INSERT INTO messages ({told}) VALUES (?, ?, ?, ?, ?, ?)", (*row, (START + number) * unit)
            )
    connection.close()
    return path


def blocks(call: Call) -> list[tuple[str, list[str]]]:
    return [(message.role, [block.kind for block in message.blocks]) for message in call.request.thread.messages()]


@pytest.mark.parametrize(
    ("columns", "unit"), [(LATER, 1), ("", 1), (LATER, 1000)], ids=["seconds", "2025", "milliseconds"]
)
def test_each_answer_is_a_call_without_a_bill(tmp_path: Path, columns: str, unit: int) -> None:
    path = database(tmp_path, TURN, columns=columns, unit=unit)
    first, second = calls(path)
    assert (first.billed, first.request.model, served_by(first), first.session) == (
        None,
        "claude-opus-4-6",
        "anthropic",
        "s1",
    )
    assert (first.project, first.file, first.timestamp) == (str(tmp_path), str(path), "2026-03-07T10:00:01.000+00:00")
    assert blocks(second) == [("user", ["text"]), ("assistant", ["thinking", "tool_use"]), ("user", ["tool_result"])]
    assert [block.kind for block in second.response] == ["text"]


def test_the_bill_has_no_calls_and_says_why(tmp_path: Path) -> None:
    (file,) = session_files(database(tmp_path, TURN))
    assert (file.client, file.project, file.calls, file.damaged) == ("crush", str(tmp_path), [], ())
    assert file.notes == ("2 calls without usage: Crush stores only the dollars of each session",)


def test_a_sub_agent_belongs_to_the_session_that_started_it(tmp_path: Path) -> None:
    rows = [*TURN, ("m5", "s2", "user", ASKS), ("m6", "s2", "assistant", SAYS)]
    assert [(call.session, call.agent) for call in calls(database(tmp_path, rows, s2="s1"))] == [
        ("s1", ""),
        ("s1", ""),
        ("s1 agent 1", "agent 1"),
    ]


def test_after_a_summary_the_request_begins_with_it(tmp_path: Path) -> None:
    rows = [*TURN, ("m5", "s1", "assistant", SAYS), ("m6", "s1", "user", ASKS), ("m7", "s1", "assistant", SAYS)]
    path = database(tmp_path, rows)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE messages SET is_summary_message = 1 WHERE id = 'm5'")
    connection.close()
    found = list(calls(path))
    assert blocks(found[3]) == [("user", ["text", "text"])]


def test_damaged_parts_are_errors_and_the_rest_is_read(tmp_path: Path) -> None:
    path = database(tmp_path, TURN)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE messages SET parts = '[1]' WHERE id = 'm1'")
        connection.execute("UPDATE messages SET parts = '[' WHERE id = 'm4'")
    connection.close()
    wrong = [
        "message m1: parts[0]: expected an object; got 1",
        "message m4: damaged JSON: Expecting value at character 2",
    ]
    with pytest.raises(InputError) as error:
        list(calls(path))
    assert str(error.value).splitlines() == [f"{path} {reason}" for reason in wrong]
    assert [reason for _, reason in session_files(path)[0].damaged] == wrong


def test_it_is_known_by_its_tables(tmp_path: Path) -> None:
    path = database(tmp_path, TURN)
    assert detect(path) == ("crush", "a database with Crush's tables")
    assert sniff(path.read_bytes()) == "a database with the tables sessions, messages and files"
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE files")
        connection.execute("VACUUM")
    connection.close()
    assert sniff(path.read_bytes()) is None
    with pytest.raises(InputError, match="unrecognized format"):
        detect(path)
