"""`cachecost recording`: exit codes, what goes to stdout and what to stderr, files whole or absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachecost.cli import exit_code
from cachecost.commands.recording import recording
from cachecost.conversations.readers import call_recording as calls
from conversations.session_stores import write_lines

ROW: dict[str, Any] = {
    "timestamp": "2026-03-07T10:00:00Z",
    "request": {"model": "claude-opus-4-6", "messages": [{"role": "user", "content": "hi"}]},
}


class Done:
    """What the command left behind."""

    def __init__(self, *arguments: str) -> None:
        runner = CliRunner()
        with runner.isolation() as (out, err, _):
            self.code = exit_code(lambda: recording.main(list(arguments), "recording", standalone_mode=False))
            self.out, self.err = out.getvalue().decode(), err.getvalue().decode()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    log_file("a.jsonl", ROW, {**ROW, "timestamp": "2026-03-07T10:00:05Z"})
    log_file("b.jsonl", ROW, {**ROW, "timestamp": "2026-03-07T10:00:06Z"})
    return tmp_path


def log_file(name: str, *rows: Any) -> None:
    write_lines(Path(name), rows)


def test_recordings_are_put_together(folder: Path) -> None:
    done = Done("concat", "a.jsonl", "b.jsonl", "-o", "c.jsonl")
    assert (done.code, done.out, done.err) == (0, "c.jsonl  4 calls of 2 recordings\n", "")
    seconds = [call.timestamp[-3:-1] for call in calls.calls(folder / "c.jsonl") if call.timestamp]
    assert seconds == ["00", "00", "05", "06"]


def test_a_part_is_cut_out(folder: Path) -> None:
    done = Done("cut", "a.jsonl", "-o", "c.jsonl", "--calls", "2-")
    assert (done.code, done.out, done.err) == (0, "c.jsonl  1 of 2 calls\n", "")
    done = Done("cut", "a.jsonl", "-o", "c.jsonl", "--from", "2026-03-07", "--to", "2026-03-07T10:00:05Z", "--force")
    assert (done.code, done.out) == (0, "c.jsonl  1 of 2 calls\n")
    (call,) = calls.calls(folder / "c.jsonl")
    assert call.timestamp == "2026-03-07T10:00:00Z"


@pytest.mark.parametrize(
    ("wishes", "why"),
    [
        ((), "expected at least one of --calls, --from, --to and --session"),
        (("--calls", "3-2"), "expected numbers from 1, the smaller first; got '3-2'"),
        (("--from", "noon"), "expected an ISO 8601 time like 2026-03-07T10:00:00Z; got 'noon'"),
        (("--calls", "7"), "a.jsonl no call matches; the recording has 2"),
        (("--session", "x"), "a.jsonl no call has session 'x'; no call has a session"),
    ],
)
def test_a_cut_that_is_none_exits_with_2_and_writes_nothing(folder: Path, wishes: tuple[str, ...], why: str) -> None:
    done = Done("cut", "a.jsonl", "-o", "c.jsonl", *wishes)
    assert (done.code, done.out) == (2, "") and why in done.err.replace("\n", " ")
    assert not Path("c.jsonl").exists()


def test_the_schema_is_printed(folder: Path) -> None:
    done = Done("schema")
    assert done.code == 0 and json.loads(done.out)["title"].startswith("A line of a cachecost recording")
