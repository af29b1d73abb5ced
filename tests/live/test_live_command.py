"""`cachecost live`, as it is called: what it says before, what it refuses, and a run against the simulated API."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_fakes import served_by

from cachecost.cli import exit_code
from cachecost.commands.live import live
from cachecost.live.driver.sending import read_journal
from cachecost.live.server.app import app_of, serving
from cachecost.live.server.state import Meter
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup

KEY = "sk-ant-api03-planted-for-the-command"
SCENARIO = """\
format: 1
name: tiny
model: claude-sonnet-4-5
tokens: bytes
conversation:
  synthetic: {turns: 2, calls: 2, sizes: {thinking: 0}}
  head: {tools: {count: 2, tokens: 6_000}}
strategies: [progressive, none]
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "tiny.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def address() -> Iterator[str]:
    meter = Meter(ReplaySetup(RuleBook(), PriceBook.load(), "anthropic", "bytes"))
    served = served_by(meters=meter, clock=_Now())
    with serving(app_of(served), served.pauses) as url:
        yield url


class _Now:
    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        pass


def called(*args: object) -> int:
    """The exit code of `cachecost live ARGS`."""
    return exit_code(lambda: live.main([str(one) for one in args], prog_name="cachecost live", standalone_mode=False))


def test_a_dry_run_says_what_would_be_sent_and_needs_no_key(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(scenario, "--max-usd", "0.5", "--dry-run") == 0
    said = capsys.readouterr()
    assert "tiny   what would be sent, within $0.50" in said.out
    assert [line.split()[0] for line in said.out.splitlines()[2:]] == ["strategy", "progressive", "none", "all"]
    assert "Within budget: at most $" in said.err
    assert "Answers are limited to 16 tokens, so output costs differ from the scenario's." in said.err
    assert "Blocks without content are sent as filler text of about the same token count." in said.err
    assert [path.name for path in scenario.parent.iterdir()] == ["tiny.yaml"]


def test_a_dry_run_says_the_same_each_time(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = set()
    for _ in range(6):  # with a nonce of its own, one in six was a token longer
        assert called(scenario, "--max-usd", "0.5", "--dry-run", "--json") == 0
        told.add(capsys.readouterr().out)
    assert len(told) == 1


def test_a_dry_run_as_json(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(scenario, "--max-usd", "0.001", "--dry-run", "--json", "--pace", "0.1") == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert (told["format"], told["max_usd"], told["strategies"][0]["calls"]) == (1, "0.001", 4)
    assert float(told["predicted_usd"]) < float(told["worst_usd"])
    assert "Over budget: " in said.err and "TTLs are not" in said.err


def test_without_a_key_it_says_what_to_do(scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called(scenario, "--max-usd", "1", "--yes") == 2
    said = capsys.readouterr().err
    assert "ANTHROPIC_API_KEY is not set; nothing was sent. To try it for free, start `cachecost serve`" in said
    assert "cachecost serve" in said and "--base-url http://127.0.0.1:8787" in said


def test_nobody_to_ask_and_no_yes(
    scenario: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert called(scenario, "--max-usd", "1") == 2
    assert "stdin is not a terminal; nothing was sent. Add --yes to confirm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--max-usd", "0"], "expected dollars above 0, like 0.50; got '0'"),
        (["--max-usd", "nan"], "got 'nan'"),
        (
            ["--max-usd", "1", "--base-url", "http://example.org"],
            "expected https, as the key would be sent in the clear",
        ),
        (["--max-usd", "1", "--base-url", "ftp://example.org"], "expected a URL like https://api.anthropic.com"),
        (["--max-usd", "1", "--base-url", "https://u:pw@example.org"], "expected no user or password in it"),
        (["--max-usd", "1", "--strategy", "progresive"], "got 'progresive' (did you mean 'progressive'?)"),
        (
            ["--max-usd", "1", "--set", "host=bedrock"],
            "live supports only Anthropic's API; the scenario's host is bedrock",
        ),
        (
            ["--max-usd", "1", "--set", "conversation.params.thinking={type: enabled, budget_tokens: 2000}"],
            "run with --set conversation.params.thinking.type=adaptive or =disabled",
        ),
    ],
)
def test_what_is_refused_before_anything_is_sent(
    scenario: Path, capsys: pytest.CaptureFixture[str], args: list[str], why: str
) -> None:
    assert called(scenario, *args, "--dry-run") in (2, 3)
    assert why in " ".join(capsys.readouterr().err.split())


def test_a_recording_that_is_of_no_run_is_not_overwritten(
    scenario: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    Path("out").mkdir()
    Path("out/recording.jsonl").write_text("mine")
    assert called(scenario, "--max-usd", "2", "--yes", "--out", "out") == 2
    assert "out/recording.jsonl exists already and is of no run here; choose another --out" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in Path("out").iterdir()} == {"recording.jsonl": "mine"}


def test_a_run_against_the_simulated_api(
    scenario: Path, address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    args: list[Any] = [scenario, "--max-usd", "2", "--yes", "--pace", "0.0001", "--out", "out", "--json"]
    assert called(*args) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert [(one["name"], one["done"], one["exact"]) for one in told["strategies"]] == [
        ("progressive", 4, 4),
        ("none", 4, 4),
    ]
    assert told["strategies"][0]["predicted_usd"] == told["strategies"][0]["billed_usd"]
    assert told["validate"]["hits"] == {"knowable": 3, "exact": 3} and told["stopped"] is None
    assert KEY not in said.out + said.err
    assert all(KEY not in path.read_text() for path in Path("out").iterdir())
    assert called(*args) == 2
    assert "out contains a run already; continue it with --resume out/journal.jsonl" in capsys.readouterr().err
    assert called(*args, "--resume", "out/journal.jsonl") == 0
    assert json.loads(capsys.readouterr().out)["billed_usd"] == told["billed_usd"]


def test_the_text_of_a_run_that_stops(
    scenario: Path, address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    args: list[Any] = [scenario, "--max-usd", "0.05", "--yes", "--pace", "0.0001", "--out", "out"]
    assert called(*args, "--base-url", address) == 3
    said = capsys.readouterr()
    assert "predicted against billed" in said.out and "cachecost validate out/recording.jsonl" in said.out
    assert "stopped before progressive/" in said.err
    assert "not sent: " in said.err and "continue with --resume out/journal.jsonl" in said.err


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL there")
@pytest.mark.slow
def test_a_run_killed_in_the_middle_goes_on_without_paying_again(
    scenario: Path, address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    args = [str(scenario), "--max-usd", "2", "--yes", "--out", "out", "--base-url", address]
    code = "import sys; from cachecost.commands.live import live; live.main(sys.argv[1:])"
    process = subprocess.Popen([sys.executable, "-c", code, *args], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stderr is not None
    with process.stderr:
        for line in process.stderr:
            if line.startswith(b"progressive/1"):
                break
    os.kill(process.pid, signal.SIGKILL)  # it is in the pause after the first call
    process.wait()
    before = read_journal(Path("out/journal.jsonl"))
    assert list(before.done) == ["progressive/1"]
    assert called(*args, "--pace", "0.0001", "--resume", "out/journal.jsonl") == 0
    after = read_journal(Path("out/journal.jsonl"))
    assert len(after.done) == 8 and after.done["progressive/1"] == before.done["progressive/1"]
    capsys.readouterr()
