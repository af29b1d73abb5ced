"""A log that is written while calls go on reads at any moment, and goes on after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.readers.detect import read_calls
from cachecost.live.clock import moment
from cachecost.live.request_log import CallLog

BODY = b'{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}'


def test_a_call_reads_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "calls.jsonl"
    with CallLog(path) as log:
        log.append({"timestamp": moment(1.5), "usage": {"input_tokens": 3, "output_tokens": 1}, "status": None}, BODY)
    (call,) = read_calls(path)
    assert (call.start, call.request.model, call.billed and call.billed.input_tokens) == (1.5, "claude-sonnet-4-5", 3)
    assert BODY in path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0


def test_a_body_over_several_lines_becomes_one(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with CallLog(path) as log:
        log.append({}, json.dumps(json.loads(BODY), indent=1).replace("\n", "\r\n").encode())
    assert path.read_bytes().count(b"\n") == 1
    assert json.loads(path.read_bytes())["request"] == json.loads(BODY)


@pytest.mark.parametrize("kept", [0, 1, 40, 100])
def test_a_torn_line_is_cut_off_and_the_log_goes_on(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "calls.jsonl"
    with CallLog(path) as log:
        log.append({"status": 200}, BODY)
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:kept])
    with CallLog(path) as log:
        assert log.cut == kept
        log.append({"status": 529}, BODY)
    assert [call.status for call in read_calls(path)] == [200, 529]


def test_a_whole_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b'{"request":' + BODY + b"}")
    with CallLog(path) as log:
        assert log.cut == 0
        log.append({}, BODY)
    assert len(list(read_calls(path))) == 2


def test_another_file_is_never_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(b"# Notes\nwithout an end")
    with pytest.raises(
        InputError, match=r"notes.md expected a request log to continue, or a new file; got another format"
    ):
        CallLog(path)
    assert path.read_bytes() == b"# Notes\nwithout an end"


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written: Is a directory"):
        CallLog(tmp_path)
