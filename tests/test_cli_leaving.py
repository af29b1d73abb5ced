"""A replay ends without freeing what it holds: what it wrote and its exit code are there all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CODES = {"claude-opus-4-6": 0, "claude-none-1": 3, "": 2}


def replayed(log: Path, *before: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, *(before or ("-m", "cachecost")), "replay", str(log), "--tokens", "bytes", "--json"]
    return subprocess.run(command, capture_output=True, check=False)


def a_log(folder: Path, model: str, calls: int) -> Path:
    log = folder / "log.jsonl"
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
    log.write_text("".join(json.dumps({"request": body}) + "\n" for _ in range(calls)))
    return log


@pytest.mark.parametrize(("model", "code"), CODES.items())
def test_all_is_written_and_the_code_is_told(tmp_path: Path, model: str, code: int) -> None:
    done = replayed(a_log(tmp_path, model, 1000), "-m", "cachecost")
    assert done.returncode == code
    assert len(done.stdout.splitlines()) == (0 if code == 2 else 1000)
    assert bool(done.stderr) == (code == 2)


def test_where_somebody_traces_it_ends_as_any_other(tmp_path: Path) -> None:
    traced = (
        "import atexit, sys; atexit.register(print, 'the end'); sys.argv[0] = 'cachecost'; sys.settrace({}); "
        "from cachecost.cli import main; main()"
    )
    log = a_log(tmp_path, "claude-opus-4-6", 1)
    assert replayed(log, "-c", traced.format("lambda *_: None")).stdout.splitlines()[-1] == b"the end"
    assert b"the end" not in replayed(log, "-c", traced.format("None")).stdout
