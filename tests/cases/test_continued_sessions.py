"""A session that goes on in a second file: its static prefix is in the first, and no file has its text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from case_files import DATA, Run, copy_case
from tests.live.viewer_client import Client
from tests.viewer_logs import source_of

from bill_sessions import SessionWriter
from command_runs import run_here

CASE, HOME = "45-session-in-two-files", "home/.claude/projects"


def hook(path: Path, **environment: str) -> str:
    asked = {"hook_event_name": "UserPromptSubmit", "transcript_path": str(path), "prompt": "go on"}
    done = run_here("hook", stdin=json.dumps(asked), **{"CACHECOST_STORE": "off", **environment})
    return str(json.loads(done.stdout)["systemMessage"]) if done.stdout else ""


def second_file(folder: Path) -> Path:
    (found,) = folder.rglob("*-37ec5ad7.jsonl")
    return found


def test_hook_and_next_agree_on_what_compact_keeps(run_case: Run, tmp_path: Path) -> None:
    """24,500 tokens are cached by the first call, its message included: 94k become 26k."""
    text = run_case(CASE, "next").stdout
    assert "break-even after 2 messages" in text and "session 55007205 · project · " in text
    state = json.loads(run_case(CASE, "next", "--json").stdout)["session"]
    assert 24_000 <= state["static_tokens"] <= 24_500
    assert hook(second_file(tmp_path / CASE)).endswith("/compact first: $0.52, cheaper after 2 messages")


def test_without_the_first_file_nothing_is_said_of_compact(tmp_path: Path) -> None:
    alone = tmp_path / "alone.jsonl"
    alone.write_bytes(second_file(DATA / CASE).read_bytes())
    assert "tokens again" in hook(alone) and "/compact" not in hook(alone)
    assert "/compact" not in run_here("next", alone).stdout


def test_it_is_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cachecost.commands import statusline_run as remembered_session

    folder = copy_case(CASE, tmp_path)
    store = {"CACHECOST_STORE": str(tmp_path / "kept")}
    path = second_file(folder)
    first = hook(path, **store)
    monkeypatch.setattr(remembered_session, "_earlier_static", None)
    lines = path.read_text().splitlines()
    line = json.loads(lines[-1])
    grown = {**line, "uuid": "new", "parentUuid": line["uuid"], "message": {"role": "user", "content": "more"}}
    path.write_text("\n".join([*lines, json.dumps({**grown, "type": "user"})]) + "\n")
    assert hook(path, **store).endswith(first[-24:])


def test_the_page_shows_no_block_of_what_a_transcript_lacks() -> None:
    client = Client(source_of(DATA / CASE / HOME))
    id_ = client.get("api/sessions").json["sessions"][0]["id"]
    for number in (1, 14):
        blocks = client.get(f"api/session/{id_}/call/{number}").json["blocks"]
        unknown = [one for one in blocks if one["layer"] != "messages"]
        assert unknown and all(
            (one["kind"], one["name"], one["size"], one["digest"], one["text"])
            == ("hidden", "not in the transcript", 0, "", "")
            for one in unknown
        )
        assert not [one for one in blocks if one["layer"] == "tools"]


# -------------------------------------------------------------------------------------------------- siblings


def two_files(folder: Path, first_read: int, name: str = "s-2.jsonl", session: str = "s") -> Path:
    """A session of two files; its first call reads `first_read` of 20,000 tokens, then its message."""
    made = SessionWriter(session, "/p")
    made.write_message("begin")
    made.answer(first_read, 20_000 - first_read)
    made.write_message("go on")
    made.answer(20_000, 60_000)
    later = SessionWriter(session, "/p", at=made.at + 5)
    later.add("user", message={"role": "user", "content": "on"})
    later.lines[0].update({"parentUuid": "elsewhere", "uuid": "later-0"})
    later.answer(80_000, 500)
    made.save(folder / "s.jsonl")
    return later.save(folder / name)


@pytest.mark.parametrize(
    ("first_read", "name", "session", "is_known"),
    [
        (0, "s-2.jsonl", "s", True),
        (12_000, "s-2.jsonl", "s", True),
        (0, "other.jsonl", "s", True),
        (0, "s-2.jsonl", "[s]*", False),
        (0, "s-2.jsonl", "", False),
    ],
)
def test_files_of_one_session(tmp_path: Path, first_read: int, name: str, session: str, is_known: bool) -> None:
    path = two_files(tmp_path, first_read, name, session)
    assert ("/compact first" in hook(path)) == is_known


def test_a_session_of_its_own_needs_no_other(tmp_path: Path) -> None:
    made: Any = SessionWriter("s", "/p")
    made.write_message("begin")
    made.answer(18_000, 60_000)
    assert "/compact first" in hook(made.save(tmp_path / "s.jsonl"))
