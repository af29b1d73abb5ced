"""Small logs for the page of sessions: requests with text, billed as a replay of them says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cachecost.analysis.bill.found_sessions import account_of_found
from cachecost.analysis.viewing.listing import CallReading, LoggedSessions, SessionListing
from cachecost.conversations.logs import Logs, expand_folders, read_logs
from cachecost.live.viewer.sessions_source import SessionsSource
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.sessions.reading import SessionReading
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import recorded_workload
from conversations.session_stores import write_lines

BEGIN = datetime(2026, 10, 5, tzinfo=UTC)
MODEL = "claude-sonnet-4-5-20250929"
WORDS = "Read before you write, look at the tests and at who calls it, and change as little as the task needs. "
CACHED = {"cache_control": {"type": "ephemeral"}}
TOOL = {"name": "read_file", "description": "Read a file. " * 40, "input_schema": {"type": "object", "properties": {}}}


def requests(turns: int, now: str = "10:00") -> Iterator[dict[str, Any]]:
    """Requests of a conversation of so many turns; the time in the system prompt changes in the third."""
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": [{"type": "text", "text": f"Question {turn}. {WORDS * 20}"}]})
        clock = now if turn < 2 else "10:05"
        system = [{"type": "text", "text": f"{WORDS * 60} Current time: {clock}. {WORDS}", **CACHED}]
        yield {
            "model": MODEL,
            "max_tokens": 100,
            "tools": [TOOL],
            "system": system,
            "messages": [*messages[:-1], marked(messages[-1])],
        }
        messages.append({"role": "assistant", "content": [{"type": "text", "text": f"Answer {turn}."}]})


def marked(message: dict[str, Any]) -> dict[str, Any]:
    """The message with a breakpoint on its last block."""
    *first, last = message["content"]
    return {**message, "content": [*first, {**last, **CACHED}]}


def write_log(
    path: Path, bodies: Sequence[dict[str, Any]], is_billed: bool = True, session: str = "", every_s: float = 60
) -> Path:
    """A request log of these bodies, one every `every_s` seconds; billed as a replay of it says."""
    rows = [
        {"timestamp": _stamp(number * every_s), "request": body, **({"session": session} if session else {})}
        for number, body in enumerate(bodies)
    ]
    write_lines(path, rows)
    if is_billed:
        for row, usage in zip(rows, _usages(path), strict=True):
            row["usage"] = usage
        write_lines(path, rows)
    return path


def _usages(path: Path) -> list[dict[str, Any]]:
    calls = list(read_logs(Logs([path])))
    simulation = recorded_workload("log", calls, replay_setup().with_recorded(calls, None)).simulation()
    return [{**simulation.row(call).usage.wire(), "output_tokens": 50} for call in calls]


def _stamp(after_s: float) -> str:
    return (BEGIN + timedelta(seconds=after_s)).isoformat().replace("+00:00", "Z")


def replay_setup() -> ReplaySetup:
    return ReplaySetup(RuleBook(), PriceBook())


def listing_of(*paths: Path) -> SessionListing:
    """The sessions in these files and folders."""
    logged = LoggedSessions(replay_setup())
    found = SessionReading(None).read_all(expand_folders(paths))
    account = account_of_found(found, replay_setup(), complete=logged.complete)
    return SessionListing(account, logged, found.skipped)


def source_of(*paths: Path) -> SessionsSource:
    """The pages of the sessions in these files and folders."""
    return SessionsSource(listing_of(*paths), replay_setup(), CallReading())
