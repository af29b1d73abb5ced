"""Ctrl-C and SIGTERM: a command ends at once, says so, and leaves nothing half-written and no process behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cachecost.base import atomic_files
from cachecost.base.atomic_files import remove_unfinished, replace_when_done
from terminal import LINE, ROOT, SECONDS, Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals and pipes with names")
AT_ONCE_S = 1.0
ENDS = {signal.SIGINT: 130, signal.SIGTERM: -signal.SIGTERM}


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("number", ENDS)
def test_a_folder_that_is_being_written_is_removed(tmp_path: Path, number: signal.Signals) -> None:
    pipe = tmp_path / "log"
    os.mkfifo(pipe)
    terminal = Terminal("recording", "split", pipe, "-o", tmp_path / "out")
    with pipe.open("wb", buffering=0) as log:
        log.write(LINE * 2)
        wait_until(lambda: list(tmp_path.glob(".out.*.part/*.jsonl")))
        assert terminal.send(number) < AT_ONCE_S
    assert terminal.process.returncode == ENDS[number]
    assert terminal.shown.split()[-1] == "interrupted"
    assert "Traceback" not in terminal.shown
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_sweep_leaves_no_helper(tmp_path: Path) -> None:
    scenario = ROOT / "scenarios" / "ttl.yaml"
    terminal = Terminal("sweep", scenario, "--seeds", 100_000, "--jobs", 2, "--out", tmp_path / "rows.csv")
    terminal.wait_for("/100000")
    assert terminal.send(signal.SIGINT) < AT_ONCE_S
    assert terminal.process.returncode == 130
    assert "--resume to continue" in terminal.shown
    assert "Traceback" not in terminal.shown
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv.parts"]
    wait_until(lambda: not _is_alive(terminal.process.pid))


def _is_alive(group: int) -> bool:
    """Whether any process of a group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_no_block_removed_is_removed_at_the_end(tmp_path: Path) -> None:
    writing = replace_when_done(tmp_path / "page.html")
    part = writing.__enter__()
    part.write_text("half")
    remove_unfinished()
    assert not list(tmp_path.iterdir())
    assert part not in atomic_files._unfinished
