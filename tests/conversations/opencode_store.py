"""Small stores of opencode: records as it writes them, in a database and in files."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

Record = dict[str, Any]
START = 1_772_877_600_000
"""2026-03-07T10:00:00Z, in milliseconds."""
TABLES = (
    "CREATE TABLE `session` (`id` text PRIMARY KEY, `parent_id` text, `directory` text NOT NULL,"
    " `version` text NOT NULL, `time_created` integer NOT NULL, `title` text)",
    "CREATE TABLE `message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, `time_created` integer NOT NULL,"
    " `data` text NOT NULL)",
    "CREATE TABLE `part` (`id` text PRIMARY KEY, `message_id` text NOT NULL, `session_id` text NOT NULL,"
    " `data` text NOT NULL)",
)


def session(name: str = "ses_1", at: int = 0, directory: str = "/home/me/app", **more: Any) -> Record:
    time = {"created": START + at, "updated": START + at}
    return {
        "id": name,
        "projectID": "p",
        "directory": directory,
        "version": "1.1.0",
        "title": "t",
        "time": time,
        **more,
    }


def user(name: str, at: int, *texts: str, session: str = "ses_1", **more: Any) -> list[Record]:
    """A message of a person, and its parts."""
    record = {
        "id": name,
        "sessionID": session,
        "role": "user",
        "time": {"created": START + at},
        "agent": "build",
        **more,
    }
    return [record, *(part(name, number, session, type="text", text=text) for number, text in enumerate(texts))]


def answer(
    name: str, at: int, tokens: tuple[int, int, int, int], *parts: Record, session: str = "ses_1", **more: Any
) -> list[Record]:
    """An answer with (input, read, written, output) tokens, and its parts."""
    record = {
        "id": name,
        "sessionID": session,
        "role": "assistant",
        "mode": "build",
        "agent": "build",
        "cost": 0.5,
        "path": {"cwd": "/home/me/app", "root": "/"},
        "modelID": "claude-opus-4-6",
        "providerID": "anthropic",
        "time": {"created": START + at, "completed": START + at + 900},
        "tokens": usage(*tokens),
        **more,
    }
    return [record, *(part(name, number, session, **one) for number, one in enumerate(parts))]


def usage(uncached: int, read: int, written: int, output: int, **more: Any) -> Record:
    return {"input": uncached, "output": output, "reasoning": 0, "cache": {"read": read, "write": written}, **more}


def part(message: str, number: int, session: str = "ses_1", **more: Any) -> Record:
    return {"id": f"prt_{message}_{number}", "messageID": message, "sessionID": session, **more}


def says(text: str) -> Record:
    return {"type": "text", "text": text}


def calls_tool(output: str = "done", **state: Any) -> Record:
    time = {"start": START, "end": START + 50}
    told = {"status": "completed", "input": {"command": "ls"}, "output": output, "time": time, **state}
    return {"type": "tool", "tool": "bash", "callID": "toolu_1", "state": told}


TURN = [
    *user("msg_1", 100, "list the files"),
    *answer("msg_2", 200, (2, 0, 5000, 60), {"type": "reasoning", "text": "hm"}, calls_tool()),
    *answer("msg_3", 1200, (2, 5000, 80, 20), says("there are none")),
]
"""A turn of one session: two calls."""


def database(folder: Path, sessions: list[Record], records: list[Record], name: str = "opencode.db") -> Path:
    """A database, as opencode 1.2 and later have it."""
    path = folder / name
    connection = sqlite3.connect(path)
    fill(connection, sessions, records)
    connection.close()
    return path


def fill(connection: sqlite3.Connection, sessions: list[Record], records: list[Record]) -> None:
    for table in TABLES:
        connection.execute(table)
    for one in sessions:
        row = one["id"], one.get("parentID"), one["directory"], one["version"], one["time"]["created"], one["title"]
        connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", row)
    for one in records:
        data = {key: value for key, value in one.items() if key not in ("id", "sessionID", "messageID")}
        if "role" in one:
            row = one["id"], one["sessionID"], one["time"]["created"], json.dumps(data)
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
        else:
            row = one["id"], one["messageID"], one["sessionID"], json.dumps(data)
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", row)
    connection.commit()


def storage(folder: Path, sessions: list[Record], records: list[Record]) -> list[Path]:
    """The folder of files that opencode 0.6 to 1.1 have; the files of the sessions."""
    for one in records:
        place = f"message/{one['sessionID']}" if "role" in one else f"part/{one['messageID']}"
        write(folder / "storage" / place / f"{one['id']}.json", one)
    return [write(folder / "storage/session/p" / f"{one['id']}.json", one) for one in sessions]


def write(path: Path, record: Record) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=2))
    return path


def later_database(folder: Path, sessions: list[Record], rows: list[tuple[str, str, Record]]) -> Path:
    """A database of opencode 2: rows of (session, type, data)."""
    path = folder / "opencode.db"
    connection = sqlite3.connect(path)
    connection.execute(TABLES[0].replace("`session`", "`session_v2`"))
    connection.execute(
        "CREATE TABLE `session_message` (`id` text PRIMARY KEY, `session_id` text NOT NULL, `type` text NOT NULL,"
        " `seq` integer NOT NULL, `time_created` integer NOT NULL, `data` text NOT NULL)"
    )
    for one in sessions:
        row = one["id"], one.get("parentID"), one["directory"], one["version"], one["time"]["created"], one["title"]
        connection.execute("INSERT INTO session_v2 VALUES (?, ?, ?, ?, ?, ?)", row)
    for number, (name, kind, data) in enumerate(rows):
        created = data["time"]["created"]
        row = (f"msg_{number}", name, kind, number, created, json.dumps(data))
        connection.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()
    return path
