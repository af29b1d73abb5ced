"""`cachecost watch` on a terminal and in a pipe, while a session goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from tests.bill_sessions import BEGIN, SessionWriter
from tests.command_runs import printed, run_here
from tests.terminal import Terminal

ID = "1e0816ef-0000-4000-8000-000000000001"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the sessions of this machine."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CACHECOST_STORE", "off")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)


class RunningSession:
    """A transcript whose last call is as old as `age_s`; `add` appends a call that reads all, or nothing."""

    def __init__(self, path: Path, age_s: float = 20, session: str = ID) -> None:
        self.path, self.cached = path, 0
        self._written = 0
        self._writer = SessionWriter(session, "/work", at=time.time() - BEGIN.timestamp() - age_s)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.add()

    def add(self, reads_all: bool = True) -> None:
        self._writer.write_message("Next.", 1)
        read = self.cached if reads_all else 0
        self._writer.answer(read, self.cached + 20_000 - read)
        self.cached += 20_000
        new, self._written = self._writer.lines[self._written :], len(self._writer.lines)
        with self.path.open("a") as file:
            file.writelines(json.dumps(line) + "\n" for line in new)


def test_the_screen_follows_a_growing_file_and_q_ends_it(tmp_path: Path) -> None:
    session = RunningSession(tmp_path / f"{ID}.jsonl")
    terminal = Terminal("watch", session.path, "--every", 0.1, has_keys=True)
    terminal.wait_for("1e0816ef · claude-opus-4-5-20251101 · 1 call ")
    terminal.wait_for("20k tokens are warm until")
    session.add()
    terminal.wait_for("2 calls")
    with session.path.open("a") as file:
        file.write('{"type": "assist')
    time.sleep(0.3)
    terminal.resize(60, 12)
    terminal.shown = ""
    terminal.wait_for("uncached")
    terminal.shown = ""
    terminal.wait_for("next message")
    assert max(map(len, terminal.shown.split("\r\n"))) <= 60
    terminal.type("xq")
    assert terminal.end() == 0


def test_a_rewrite_and_an_expiry_are_alarms(tmp_path: Path) -> None:
    session = RunningSession(tmp_path / f"{ID}.jsonl", age_s=255)
    session.add(reads_all=False)
    terminal = Terminal("watch", session.path, "--every", 0.1, "--alarm-usd", 0.01, has_keys=True)
    terminal.wait_for("call 2 wrote 20k tokens again")
    terminal.wait_for("40k tokens expire at")
    terminal.type("q")
    assert terminal.end() == 0


def test_ctrl_c_ends_at_once_and_restores_the_terminal(tmp_path: Path) -> None:
    session = RunningSession(tmp_path / f"{ID}.jsonl")
    terminal = Terminal("watch", session.path, has_keys=True)
    terminal.wait_for("next message")
    assert terminal.send(signal.SIGINT) < 2
    assert terminal.process.returncode == 130
    assert terminal.shown.rstrip().endswith("interrupted")


def test_a_file_that_is_replaced_and_removed(tmp_path: Path) -> None:
    session = RunningSession(tmp_path / f"{ID}.jsonl")
    session.add()
    terminal = Terminal("watch", session.path, "--every", 0.1, has_keys=True)
    terminal.wait_for("2 calls")
    other = RunningSession(tmp_path / "other.jsonl", session=ID.replace("1e08", "2f08"))
    other.path.replace(session.path)
    terminal.wait_for("2f0816ef")
    session.path.unlink()
    terminal.wait_for("the file is gone")
    terminal.type("q")
    assert terminal.end() == 0


@contextmanager
def in_pipe(*words: object) -> Iterator[tuple[subprocess.Popen[str], list[str], list[str]]]:
    """`watch` without a terminal: its process, and the lines of stdout and stderr so far."""
    command = [sys.executable, "-m", "cachecost", "watch", *map(str, words)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        lines: tuple[list[str], list[str]] = [], []
        threads = [
            Thread(target=kept.extend, args=(stream,))
            for kept, stream in zip(lines, (process.stdout, process.stderr), strict=True)
        ]
        for thread in threads:
            thread.start()
        try:
            yield process, *lines
        finally:
            process.kill()
            for thread in threads:
                thread.join()


def wait_for(lines: list[str], text: str) -> None:
    until = time.monotonic() + 30
    while not any(text in line for line in list(lines)):
        assert time.monotonic() < until, (text, lines)
        time.sleep(0.05)


def test_in_a_pipe_each_call_is_a_line_and_alarms_go_to_stderr(tmp_path: Path) -> None:
    session = RunningSession(tmp_path / f"{ID}.jsonl")
    with in_pipe(session.path, "--every", 0.1, "--alarm-usd", 0.01) as (process, out, err):
        wait_for(out, "1e0816ef · claude-opus-4-5-20251101 · 1 call · ")
        session.add()
        wait_for(out, "read 20k · written 20k · uncached 3 · $")
        wait_for(out, "next message $")
        session.add(reads_all=False)
        wait_for(err, "call 3 wrote 40k tokens again: $0.2")
        process.send_signal(signal.SIGTERM)
        process.wait(10)
    assert not any("\x1b" in line for line in out)
    assert len([line for line in out if " read " in f" {line}" and "uncached" in line]) == 2


def test_once_prints_the_present_state(tmp_path: Path) -> None:
    session = RunningSession(tmp_path / f"{ID}.jsonl")
    text = printed("watch", session.path, "--once")
    assert text.startswith("1e0816ef · claude-opus-4-5-20251101 · 1 call · $")
    assert "next message" in text and "first call" in text


def test_without_argument_it_is_the_newest_session_and_an_id_names_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "home" / ".claude" / "projects" / "work"
    old = RunningSession(folder / f"{ID}.jsonl")
    os.utime(old.path, (1, 1))
    other = ID.replace("1e08", "2f08")
    RunningSession(folder / f"{other}.jsonl", session=other)
    assert printed("watch", "--once").startswith("2f0816ef")
    assert printed("watch", "1e08", "--once").startswith("1e0816ef")
    assert printed("watch", folder, "--once").startswith("2f0816ef")
    done = run_here("watch", "3a", "--once")
    assert done.returncode == 2 and "no session begins with '3a'" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["none.jsonl"], 2, "no such file or folder"),
        (["https://example.com"], 2, "servers of this machine only"),
        (["--once"], 3, "no session files found"),
        (["http://127.0.0.1:9", "--once"], 3, ""),
        (["x", "--alarm-usd", "nan"], 2, "expected dollars"),
    ],
)
def test_what_cannot_be_watched(words: list[str], code: int, text: str) -> None:
    done = run_here("watch", *words)
    assert done.returncode == code and text in done.stderr


def test_an_empty_and_a_binary_file(tmp_path: Path) -> None:
    empty, binary = tmp_path / "empty.jsonl", tmp_path / "binary.jsonl"
    empty.write_text("")
    binary.write_bytes(bytes(range(256)))
    for path in (empty, binary):
        done = run_here("watch", path, "--once")
        assert done.returncode == 3 and "no calls yet" in done.stdout
