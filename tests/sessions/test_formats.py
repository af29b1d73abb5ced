"""A bill reads every format as the other commands do: its look at transcripts first takes no other file for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachecost.conversations.readers.detect import detect
from cachecost.sessions.reading import SessionReading
from command_runs import run_here
from conversations.session_stores import qwen_session
from conversations.test_langfuse_reader import seen
from hostile.seeds import log_files


def test_a_file_of_any_format_has_the_same_for_a_bill(tmp_path: Path) -> None:
    reading, paths = SessionReading(None), log_files(tmp_path)
    found = {path.name: reading._format(path) for path in paths}
    assert found == {path.name: detect(path)[0] for path in paths}
    assert {"claude-code", "qwen-code", "langfuse", "cline"} <= set(found.values())


def test_sessions_of_qwen_code_are_found_on_this_machine(tmp_path: Path) -> None:
    path = tmp_path / ".qwen/projects/x/chats/q-1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in qwen_session()))
    done = run_here("bill", "--json", cwd=tmp_path, HOME=str(tmp_path), CACHECOST_STORE="off")
    (row,) = json.loads(done.stdout)["rows"]
    assert (row["client"], row["calls"], row["session"]) == ("qwen-code", 2, "q-1")


@pytest.mark.parametrize("number", [1, 3])
def test_observations_of_langfuse_have_a_bill(tmp_path: Path, number: int) -> None:
    """They have a "type" and a "sessionId" as transcripts do."""
    path = tmp_path / "observations.jsonl"
    path.write_text("".join(json.dumps(seen(at)) + "\n" for at in range(number)))
    done = run_here("bill", path.name, "--json", cwd=tmp_path, CACHECOST_STORE="off")
    assert json.loads(done.stdout)["calls"] == number
