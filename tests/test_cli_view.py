"""`cachecost view` as it is typed: what it finds, what it says, how it ends."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.bill_sessions import MAIN, write_sessions
from tests.command_runs import run_here
from tests.live.viewer_client import STATIC
from tests.viewer_logs import requests, write_log

from cachecost.live.viewer import app as static_files

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/([\w-]{22})/(\S*)  \(Ctrl-C stops it\)\n")


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the sessions or the store of this machine, or opens a browser on it."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CACHECOST_STORE", "off")
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def served(*words: object) -> Iterator[tuple[subprocess.Popen[str], int, str, str]]:
    """A server in a process of its own: it, its port, its token and where the page opens."""
    command = [sys.executable, "-m", "cachecost", "view", *map(str, words)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stderr
        found = next(filter(None, map(ADDRESS.fullmatch, process.stderr)))
        try:
            yield process, int(found[1]), found[2], found[3]
        finally:
            process.kill()


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_it_serves_until_it_is_stopped(tmp_path: Path) -> None:
    write_sessions(tmp_path / "sessions")
    with served(tmp_path / "sessions", "--session", MAIN[:10]) as (process, port, token, opened):
        assert opened == f"#/session/{MAIN}"
        status, body = get(port, f"/{token}/api/sessions")
        assert status == 200
        assert {row["id"] for row in json.loads(body)["sessions"]} >= {MAIN}
        command = json.loads(get(port, f"/{token}/api/start")[1])["command"]
        assert command == f"cachecost view {tmp_path / 'sessions'} --session {MAIN[:10]}"
        assert get(port, "/") == (404, b"")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        assert process.stderr and process.stderr.read() == ""


@pytest.mark.slow
def test_each_start_has_a_token_of_its_own(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", list(requests(2)))
    with served(log, "--no-browser") as one, served(log, "--no-browser") as other:
        assert one[1] != other[1] and one[2] != other[2]
        assert get(one[1], f"/{other[2]}/api/start")[0] == 404


def test_sessions_of_this_machine_are_found(tmp_path: Path) -> None:
    write_sessions(tmp_path / "home" / ".claude" / "projects")
    with served() as (_, port, token, opened):
        assert opened == ""
        assert json.loads(get(port, f"/{token}/api/sessions")[1])["total"]["sessions"] == 2


@pytest.mark.parametrize("paths", [(), (".",)])
def test_where_nothing_is_found_nothing_is_served(tmp_path: Path, paths: tuple[str, ...]) -> None:
    done = run_here("view", *paths, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")  # as `bill`
    assert done.stderr.startswith("no sessions found in ") and "cachecost view PATH" in done.stderr


def test_calls_that_cannot_be_shown_are_said(tmp_path: Path) -> None:
    bodies = [{**body, "model": "nobody-1"} for body in requests(2)]
    log = write_log(tmp_path / "a.jsonl", bodies, is_billed=False)
    done = run_here("view", log)
    assert done.returncode == 0
    assert "2 calls without a bill left out: unknown model 'nobody-1'" in done.stderr
    assert done.stderr.endswith(
        "no sessions to show: no call has a bill or can be simulated; try cachecost view PATH\n"
    )


def test_files_of_which_none_can_be_read_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"x":\n')
    done = run_here("view", tmp_path / "a.jsonl")
    assert (done.returncode, done.stdout) == (2, "")
    assert "a.jsonl: unrecognized format" in done.stderr


def test_an_unknown_session_is_an_error(tmp_path: Path) -> None:
    done = run_here("view", write_sessions(tmp_path / "sessions"), "--session", "zzz")
    assert done.returncode == 2
    assert "--session: no session begins with 'zzz'; the most recent: " in done.stderr


def test_a_port_that_is_taken_is_an_error(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", list(requests(2)))
    with served(log) as (_, port, _, _):
        done = run_here("view", log, "--port", port)
    assert done.returncode == 2
    assert f"--port {port} is not available" in done.stderr


def test_the_extra_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachecost.base.extras.find_spec", lambda name: None if name == "starlette" else name)
    done = run_here("view", tmp_path)
    assert done.returncode == 3
    assert "cachecost view needs the extra 'server'" in done.stderr


@pytest.fixture
def _small_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static_files, "read_static_files", lambda: STATIC)


@pytest.mark.usefixtures("_small_page")
def test_a_session_is_saved_without_a_server(tmp_path: Path) -> None:
    sessions = write_sessions(tmp_path / "sessions")
    saved = tmp_path / "session.html"
    done = run_here("view", sessions, "--session", MAIN, "--save", saved)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"{saved} written\n")
    assert f'"home":"#/session/{MAIN}"' in saved.read_text()


@pytest.mark.usefixtures("_small_page")
def test_the_only_session_need_not_be_named(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", list(requests(2)), session="s1")
    saved = tmp_path / "session.html"
    assert run_here("view", log, "--save", saved).returncode == 0
    assert '"home":"#/session/s1"' in saved.read_text()
    sessions = write_sessions(tmp_path / "sessions")
    done = run_here("view", sessions, "--save", saved)
    assert done.returncode == 2 and "--save: there are 2 sessions; name one with --session ID" in done.stderr


def test_options_that_change_a_replay_are_in_its_command(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.jsonl", list(requests(3)), session="s1")
    given = ("--rule", "lookback_runs=counted", "--as-of", "2026-10-01")
    with served(log, *given) as (_, port, token, _):
        answer = json.loads(get(port, f"/{token}/api/session/s1/whatif?ttl=1h")[1])
    assert answer["command"].endswith("--jointly ttl=1h --as-of 2026-10-01 --rule lookback_runs=counted")
