"""A log as one file a session: the same lines, in the same order, whatever else is in the log."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachecost.base.errors import InputError
from cachecost.commands.recording import recording
from cachecost.conversations.editing import cutting
from cachecost.conversations.editing.cutting import MOST_OPEN, split
from cachecost.conversations.readers.detect import read_calls


def line(session: str | None, number: int, timed: bool = True) -> bytes:
    request = {"model": "claude-opus-4-6", "messages": [{"role": "user", "content": f"{number}"}]}
    time = {"timestamp": f"2026-11-01T10:00:{number % 60:02}Z"} if timed else {}
    return json.dumps({**time, "request": request, **({"session": session} if session else {})}).encode() + b"\n"


def sessions_of(folder: Path) -> dict[str, bytes]:
    return {path.stem: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("packed", [False, True])
def test_each_line_is_in_the_file_of_its_session(tmp_path: Path, packed: bool) -> None:
    """More sessions than files that are open at once, in turns; some calls name none."""
    names = [None, *(f"s{number}" for number in range(MOST_OPEN + 5))]
    lines = [(name, line(name, number)) for number in range(3) for name in names]
    data = b"\n".join(one for _, one in lines)[:-1]
    log = tmp_path / "log.jsonl"
    log.write_bytes(gzip.compress(data) if packed else data)
    assert split(log, tmp_path / "out") == len(names)
    found = sessions_of(tmp_path / "out")
    assert found == {name or "without-session": b"".join(one for of, one in lines if of == name) for name in names}
    assert {call.session for call in read_calls(tmp_path / "out" / "s3.jsonl")} == {"s3"}


def test_names_that_no_file_can_have_stay_apart(tmp_path: Path) -> None:
    names = ["a/b", "a:b", "..", "x" * 300, "é"]
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"".join(line(name, number) for number, name in enumerate(names)))
    assert split(log, tmp_path / "out") == len(names)
    assert {call.session for path in (tmp_path / "out").iterdir() for call in read_calls(path)} == set(names)


def test_a_damaged_line_is_told_and_nothing_is_written(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(line("a", 1) + b"{\n" + line("a", 2) + b'{"session": "a"}\n')
    with pytest.raises(InputError) as caught:
        split(log, tmp_path / "out")
    assert [fault.line for fault in caught.value.faults] == [2, 4]
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_what_is_there_and_what_does_not_stand_alone_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(b'{"kind": "recording", "format": 1}\n')
    with pytest.raises(InputError, match="which cannot be split by line"):
        split(log, tmp_path / "out")
    with pytest.raises(InputError, match="already exists: choose another place"):
        split(log, tmp_path)


def test_calls_without_a_time_are_told(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(line("a", 1) + line("a", 2, timed=False))
    told: list[str] = []
    split(log, tmp_path / "out", told.append)
    assert [words.partition(": ")[2] for words in told] == [
        "1 call without a timestamp: in their session's file they are 2 s apart"
    ]


def test_only_one_line_at_a_time_is_in_memory(tmp_path: Path) -> None:
    """Of 40 MB in lines of 1 MB; the whole of it would be ten times the limit."""
    import tracemalloc

    log = tmp_path / "log.jsonl"
    with log.open("wb") as file:
        for number in range(40):
            text = line(f"s{number % 3}", number)
            file.write(text[:-2] + b', "extra": "' + b"x" * (1 << 20) + b'"}\n')
    tracemalloc.start()
    try:
        split(log, tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_log_may_come_through_a_pipe(tmp_path: Path) -> None:
    """So it may lie wherever something can read it from: object storage, another machine."""
    code = "from cachecost.commands.recording import recording; recording()"
    command = [sys.executable, "-c", code, "split", "/dev/stdin", "-o", str(tmp_path / "out")]
    data = line("a", 1) + line("b", 2)
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    assert done.stdout.decode() == f"{tmp_path / 'out'}  2 sessions\n"
    assert sessions_of(tmp_path / "out") == {"a": line("a", 1), "b": line("b", 2)}


def test_the_command_says_how_many(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(line("a", 1))
    result = CliRunner().invoke(recording, ["split", str(log), "-o", str(tmp_path / "out")], catch_exceptions=False)
    assert result.output == f"{tmp_path / 'out'}  1 session\n"
    assert cutting.WITHOUT not in sessions_of(tmp_path / "out")
