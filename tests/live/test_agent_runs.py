"""Scenarios whose conversation is what a command sends, through `cachecost check`: its recording, and how it fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agent_projects import TURNS, accepted, agent_project, check

import terminal
from cachecost.live.agent_runs.processes import Launcher
from command_runs import run_apart, run_here
from slow_cases import mostly_slow

KEY = "sk-ant-very-secret-0123456789"
PLACE = "scenarios/mine.yaml:3:16 conversation.command: "
COMMAND = f"{sys.executable} agent.py"


def no_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a system that allows no network namespace."""
    begin = Launcher.__init__

    def refused(self: Launcher) -> None:
        begin(self)
        self.level, self.refusal = "none", "Operation not permitted"

    monkeypatch.setattr(Launcher, "__init__", refused)


def texts_of(folder: Path, role: str) -> list[str]:
    """The texts of the accepted recording's blocks of this role."""
    lines = map(json.loads, accepted(folder).splitlines())
    return [line["content"].get("text", "") for line in lines if line.get("role") == role]


def test_a_command_is_recorded_and_checked(tmp_path: Path) -> None:
    agent_project(tmp_path)
    code, out, err = check(tmp_path)
    assert code == 3
    assert "? mine: as recorded has no baseline yet: write one with `cachecost check --update`." in out
    assert f"scenarios/mine.yaml: ran {COMMAND}, 2 times: 6 calls; no internet access: " in err
    code, out, err = check(tmp_path, "--update")
    assert (code, out) == (0, "✓ mine: 3 limits hold.\n")
    assert "reports/mine/baseline.json updated\nreports/mine/recording.jsonl updated\n" in err
    assert check(tmp_path)[:2] == (0, "✓ mine: 3 limits hold.\n")
    assert [text for text in texts_of(tmp_path, "user") if text] == list(TURNS)


def test_the_same_calls_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        agent_project(tmp_path / name, turns=TURNS[:1], runs=1)
        assert check(tmp_path / name, "--update")[0] == 0
    assert accepted(tmp_path / "one") == accepted(tmp_path / "two")
    assert b"mine.yaml" not in accepted(tmp_path / "one") and str(tmp_path).encode() not in accepted(tmp_path / "one")


def test_parallel_calls_are_in_the_same_order_each_time(tmp_path: Path) -> None:
    turns = tuple(f"Look at part {number}." for number in range(5))
    agent_project(tmp_path, "at once", turns)
    code, out, _ = check(tmp_path, "--update")
    assert (code, out) == (0, "✓ mine: 3 limits hold.\n"), "threads begin in another order in each run"


def test_a_longer_prompt_is_red_with_its_line(tmp_path: Path) -> None:
    agent_project(tmp_path, runs=1)
    assert check(tmp_path, "--update")[0] == 0
    agent = tmp_path / "agent.py"
    agent.write_text(agent.read_text().replace("about a project. ", "about a project, in short. "))
    before = accepted(tmp_path)
    code, out, _ = check(tmp_path)
    assert code == 1
    assert out.startswith("✗ mine: as recorded costs $")
    assert accepted(tmp_path) == before, "check without --update writes nothing"


def test_a_turn_in_the_command_runs_it_once_per_turn(tmp_path: Path) -> None:
    agent_project(tmp_path, turns=("one\ntwo", "$HOME 'x'"), runs=1, command=[sys.executable, "agent.py", "{turn}"])
    code, _, err = check(tmp_path, "--update")
    assert (code, "6 calls" in err) == (0, True)
    assert [text for text in texts_of(tmp_path, "user") if text] == ["one\ntwo", "$HOME 'x'"]


def test_line_breaks_of_a_turn_on_stdin_become_blanks(tmp_path: Path) -> None:
    agent_project(tmp_path, turns=("one\ntwo",), runs=1)
    assert check(tmp_path, "--update")[0] == 0
    assert [text for text in texts_of(tmp_path, "user") if text] == ["one two"]


def test_the_answers_of_the_scenario_are_given(tmp_path: Path) -> None:
    replies = [{"tool": "search_text", "input": {"path": "a"}}, {"text": "Found it."}]
    agent_project(tmp_path, turns=("Hello",), answers=replies, runs=1)
    assert check(tmp_path, "--update")[0] == 0
    assert texts_of(tmp_path, "assistant") == ["", "Found it."]


def test_a_recording_without_content(tmp_path: Path) -> None:
    agent_project(tmp_path, content="digest", runs=1)
    assert check(tmp_path, "--update")[:2] == (0, "✓ mine: 2 limits hold.\n")
    assert b"README" not in accepted(tmp_path) and b"questions" not in accepted(tmp_path)
    assert check(tmp_path)[0] == 0


# ------------------------------------------------------------------------------------------------ how it fails


@pytest.mark.parametrize(
    ("mode", "options", "why"),
    [
        ("fails", {}, "ended with status 7\n  no luck with [key]"),
        ("hangs", {"timeout": 0.7}, "did not end within 0.7 s"),
        ("silent", {}, "made no call: does its client take the address from ANTHROPIC_BASE_URL, OPENAI_BASE_URL or"),
        ("unknown", {}, "asked for POST /v2/messages, which the simulated API does not have\n  "),
        ("plain", {"command": "no-such-program x"}, "no-such-program x cannot run: there is no such program"),
    ],
)
def test_a_command_that_fails(tmp_path: Path, mode: str, options: dict[str, Any], why: str) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    agent_project(tmp_path, mode, env={"MARK": mark, "MY_SERVICE": KEY}, **options)
    code, out, err = check(tmp_path, MY_SERVICE_KEY=KEY)
    assert (code, out) == (3, "")
    assert err.startswith(PLACE)
    assert why in err
    assert KEY not in err
    assert not (tmp_path / "reports").exists()
    assert mark.encode() not in _command_lines(), "no process is left over"


def _command_lines() -> bytes:
    """The command lines of all processes; an ended one has none."""
    time.sleep(0.05)
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(place.read_bytes())
        except OSError:
            continue
    return b"\n".join(found)


@pytest.mark.parametrize("has_namespaces", [True, False])
def test_no_key_and_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_namespaces: bool) -> None:
    if not has_namespaces:
        no_namespace(monkeypatch)
    names = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY")
    agent_project(tmp_path, "keys", runs=1)
    code, _, err = check(tmp_path, "--update", **dict.fromkeys(names, KEY))
    assert code == 0
    assert KEY.encode() not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    variables = texts_of(tmp_path, "system")[0]
    assert "ANTHROPIC_API_KEY=anything" in variables and "AWS_SECRET_ACCESS_KEY" not in variables
    agent_project(tmp_path, "network", runs=1)
    code, _, err = check(tmp_path, "--update")
    assert code == 0
    assert "refused: " in texts_of(tmp_path, "system")[0]
    assert has_namespaces or "no internet access: proxies that refuse (Operation not permitted)" in err


def test_the_command_runs_in_the_folder_of_the_project(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    agent_project(tmp_path)
    agent_project(inner, turns=("Hello",), cwd="../..", runs=1)
    (tmp_path / "agent.py").write_text((tmp_path / "agent.py").read_text().replace("500,", "501,"))
    assert check(inner, "--update")[0] == 0
    assert b'"max_tokens":501' in accepted(inner)


def test_other_commands_take_what_the_last_check_recorded(tmp_path: Path) -> None:
    place = agent_project(tmp_path)
    for words in (("explain",), ("optimize",)):
        assert run_here(*words, place, cwd=tmp_path).returncode == 2
    assert check(tmp_path, "--update")[0] == 0
    (tmp_path / "agent.py").write_text("raise SystemExit('never run again')")
    for words in (("explain",), ("optimize",)):
        done = run_here(*words, place, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "as recorded" in done.stdout
    for words in (("run", "--no-report"), ("sweep", "--seeds", "2", "--jobs", "1")):
        done = run_here(words[0], place, *words[1:], cwd=tmp_path)
        assert done.returncode == 2
        assert "strategies: expected a list" in done.stderr
    place.write_text(f"{place.read_text()}strategies: [progressive, none]\n")
    done = run_here("sweep", place, "--seeds", "2", "--jobs", "1", cwd=tmp_path)
    assert (done.returncode, "progressive" in done.stdout) == (0, True), done.stderr
    assert "never run again" in run_here("run", place, "--no-report", cwd=tmp_path).stderr


@pytest.mark.parametrize(("stop", "code"), mostly_slow([(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)], 1))
def test_an_interruption_ends_the_command_and_leaves_nothing(tmp_path: Path, stop: signal.Signals, code: int) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    agent_project(tmp_path, "hangs", env={"MARK": mark})
    (tmp_path / "tmp").mkdir()
    words = [sys.executable, "-c", terminal.HEEDED + terminal.COMMAND, "check"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while mark.encode() not in _command_lines():
            assert process.poll() is None
        process.send_signal(stop)
        _, err = process.communicate(timeout=20)
    assert process.returncode == code, err
    assert mark.encode() not in _command_lines()
    assert not [*(tmp_path / "tmp").iterdir()]


@pytest.mark.slow
def test_the_extra_may_be_missing(tmp_path: Path) -> None:
    agent_project(tmp_path)
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['uvicorn'] = None\n")
    done = run_apart("check", cwd=tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode == 3
    assert "a scenario with a command needs the extra 'server': uvicorn is not installed" in done.stderr
