"""What stands before the first record of a JSON Lines file: comments, blank lines, a byte order mark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from case_files import Run, json_of

from cachecost.conversations.readers.detect import CALLS, detect, read_calls
from cachecost.sessions.reading import SessionReading
from hostile.seeds import log_files

BOM = b"\xef\xbb\xbf"
HEADS = {
    "comments": (b"// Source: made up\n// two calls\n", 2),
    "comment with a carriage return": (b"// Source: made up\r\n\r\n", 1),
    "byte order mark, then a comment": (BOM + b"// Source\n", 1),
    "blank lines around a comment": (b"\n  \n // Source\n\n", 1),
    "byte order mark alone": (BOM + b"\n", 0),
    "byte order mark": (BOM, 0),
}


def test_a_session_after_two_comment_lines(run_case: Run) -> None:
    """$0.0477 = (6 × 5 + 34,000 × 0.5 + 4,300 × 6.25 + 150 × 25) / 10^6."""
    done = run_case("20-comment-lines-first", "bill", "session.jsonl", "--json")
    found = json_of(done)
    assert (found["calls"], found["billed_usd"], found["skipped"]) == (2, "0.047655", [])
    assert "session.jsonl: 2 comment lines before the first record: skipped" in done.stderr
    replayed = run_case("20-comment-lines-first", "replay", "session.jsonl")
    assert replayed.returncode == 0
    assert "2 comment lines before the first record: skipped" in replayed.stderr


def bills(path: Path) -> list[list[object]]:
    found = SessionReading(None).read_all([path])
    assert not found.skipped
    return [[(call.tokens, call.id, call.start) for call in session.calls] for session in found.sessions]


def is_lines(path: Path) -> bool:
    """Whether a file is JSON Lines of calls."""
    try:
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    except ValueError:
        return False
    return path.suffix == ".jsonl" and all(isinstance(line, dict) for line in lines) and detect(path)[0] in CALLS


@pytest.mark.parametrize("head", HEADS)
def test_a_head_changes_no_call_of_any_format(tmp_path: Path, head: str) -> None:
    before, comments = HEADS[head]
    formats = set()
    for path in filter(is_lines, log_files(tmp_path)):
        format_, plain = detect(path)[0], list(read_calls(path))
        billed = bills(path)
        path.write_bytes(before + path.read_bytes())
        said = list[str]()
        assert detect(path)[0] == format_, path
        moved = [(call.start, call.billed, call.request.model) for call in read_calls(path, warn=said.append)]
        assert moved == [(call.start, call.billed, call.request.model) for call in plain], format_
        assert bills(path) == billed, format_
        assert sum("before the first record: skipped" in one for one in said) == bool(comments), (format_, said)
        formats.add(format_)
    assert formats >= {"claude-code", "codex", "gemini-cli", "qwen-code", "request-log", "openai-log", "otel"}


@pytest.mark.parametrize("line", [b"// later\n", b"# no comment\n"])
def test_a_comment_after_the_first_record_is_a_damaged_line(tmp_path: Path, line: bytes) -> None:
    path = next(one for one in log_files(tmp_path) if one.exists() and detect(one)[0] == "codex")
    first, _, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(first + b"\n" + line + rest)
    assert [fault.line for fault in SessionReading(None).read_all([path]).skipped] == [2]
