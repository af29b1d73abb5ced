"""The beginning of a person's message before a call, found again in the transcript."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cachecost.conversations.input_files import SessionFile
from cachecost.conversations.readers.claude_code.messages import LETTERS, first_words
from cachecost.sessions.locations import first_words as words_of_file

Line = dict[str, Any]


def user(uuid: str, content: object, parent: str | None = None, **fields: object) -> Line:
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "message": {"content": content}, **fields}


def answer(uuid: str, parent: str) -> Line:
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "message": {"content": []}}


def save(path: Path, *lines: Line) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("Fix\n  it,\tplease", "Fix it, please"),
        ([{"type": "text", "text": "Fix it"}], "Fix it"),
        (
            [{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "Fix it"}],
            "Fix it",
        ),
        ("<command-name>/compact</command-name>\n<command-args></command-args>", "/compact"),
        ("<command-message>x is running</command-message>\n<command-name>/x</command-name>", "/x"),
        ("What does <command-name> mean?", "What does <command-name> mean?"),
        ("x" * LETTERS, "x" * LETTERS),
        ("x" * (LETTERS + 1), "x" * LETTERS + "…"),
    ],
)
def test_the_words(tmp_path: Path, content: object, words: str) -> None:
    path = save(tmp_path / "s.jsonl", user("u", content), answer("a", "u"))
    assert first_words(path, [2]) == {2: words}


@pytest.mark.parametrize(
    "line",
    [
        user("u", [{"type": "tool_result", "content": "secret"}]),
        user("u", "secret", isMeta=True),
        user("u", "secret", isCompactSummary=True),
        user("u", "<local-command-stdout>secret</local-command-stdout>"),
        user("u", 7),
        user("u", [None, {"type": "text", "text": 7}]),
    ],
)
def test_what_the_client_wrote_is_not_shown(tmp_path: Path, line: Line) -> None:
    assert first_words(save(tmp_path / "s.jsonl", line, answer("a", "u")), [2]) == {}


def test_they_follow_the_tree_of_records(tmp_path: Path) -> None:
    lines = (
        user("u1", "First"),
        answer("a1", "u1"),
        user("u2", [{"type": "tool_result"}], "a1"),
        answer("a2", "u2"),
        user("u3", "Other branch", "a1"),
        {"type": "attachment", "uuid": "x", "parentUuid": "u3"},
        answer("a3", "x"),
    )
    path = save(tmp_path / "s.jsonl", *lines)
    assert first_words(path, range(1, 8)) == {2: "First", 7: "Other branch"}
    assert first_words(path, [7]) == {7: "Other branch"}


def test_damaged_lines_are_passed_over(tmp_path: Path) -> None:
    path = save(tmp_path / "s.jsonl", user("u", "Hello"), answer("a", "u"))
    text = path.read_bytes()
    path.write_bytes(b"{\n" + b"\xff\xfe\n" + b"[" * 100_000 + b"\n" + text)
    assert first_words(path, [5]) == {5: "Hello"}


def test_a_file_that_is_gone_or_of_another_client_has_none(tmp_path: Path) -> None:
    path = save(tmp_path / "s.jsonl", user("u", "Hello"), answer("a", "u"))
    assert words_of_file(SessionFile(str(path), "claude-code"), [2]) == {2: "Hello"}
    assert words_of_file(SessionFile(str(path), "codex"), [2]) == {}
    assert words_of_file(SessionFile(str(tmp_path / "gone.jsonl"), "claude-code"), [2]) == {}
