"""The bar of a command: phases one after the other, with the time left where that is known."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console
from rich.progress import Progress

from cachecost.commands import options as work_bar
from cachecost.commands.optimize import search_progress
from cachecost.commands.options import WorkBar, amount_text, columns, time_text
from cachecost.conversations.input_files import WATCH, byte_lines
from command_runs import run_here
from slow_cases import mostly_slow
from terminal import LINE, Terminal


class Screen:
    """A bar on a terminal that keeps what is drawn."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(work_bar, "SECONDS_BETWEEN_UPDATES", 0.0)
        self._stream = io.StringIO()
        console = Console(file=self._stream, width=120, force_terminal=True, color_system=None)
        self._display = Progress(*columns(), console=console, auto_refresh=False)
        self.bar = WorkBar(self._display)

    def text(self) -> str:
        self._stream.seek(0)
        self._stream.truncate()
        self._display.console.print(self._display.get_renderable())
        return self._stream.getvalue().strip()


@pytest.mark.parametrize(
    ("done", "total", "unit", "text"),
    [
        (1, None, "replay", "1 replay"),
        (1_200, None, "call", "1,200 calls"),
        (1_200, 4_800, "call", "1,200 of 4,800 calls"),
        (1_500_000, 3_000_000, "bytes", "1.5 of 3.0 MB"),
        (3, None, "", ""),
    ],
)
def test_what_is_done(done: int, total: int | None, unit: str, text: str) -> None:
    assert amount_text(done, total, unit) == text


def test_the_time_left_where_it_is_known() -> None:
    assert time_text(61.6, 5.0) == "0:01:02 left"
    assert time_text(None, 5.9) == "0:00:05 so far"


def test_reading_and_working_are_two_phases(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen, log = Screen(monkeypatch), tmp_path / "log"
    log.write_bytes(b"x" * 999_999 + b"\n" + b"y" * 999_999 + b"\n")
    with screen.bar.reading([tmp_path]):
        lines = byte_lines(log)
        next(lines)
        assert screen.text().startswith("reading") and "1.0 of 2.0 MB" in screen.text()
        next(lines)
        assert " of " not in screen.text()
    assert screen.text().startswith("working")
    WATCH.get()(5)
    screen.bar.begin("replaying", 10, "call")
    assert list(screen.bar.count(range(4))) == [0, 1, 2, 3]
    assert screen.text().startswith("replaying") and "4 of 10 calls" in screen.text()


def test_files_that_need_not_be_read_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    screen, paths = Screen(monkeypatch), [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_bytes(b"x" * 3_000_000)
    with screen.bar.reading(paths) as files:
        remaining = iter(files)
        next(remaining)
        next(remaining)
        assert "3.0 of 6.0 MB" in screen.text()


def test_the_first_replay_tells_how_long_the_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    step = screen.bar.replays(3)
    step("none", 50)
    assert screen.text().startswith("replaying none") and " 50 calls" in screen.text()
    step("none", 100)
    step("auto", 1)
    assert screen.text().startswith("replaying auto") and "101 of 300 calls" in screen.text()


def test_the_search_of_a_plan_has_a_phase_for_each_kind_of_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    step = search_progress(screen.bar)
    step("placements", 15)
    step("placements", 15)
    assert screen.text().startswith("trying placements") and "2 of 15 plans" in screen.text()
    step("assumptions", 9)
    assert screen.text().startswith("trying assumptions") and "1 of 9 plans" in screen.text()


def test_replays_of_one_name_are_counted_each(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    step = screen.bar.replays()
    step("improving", 100)
    step("improving", 100)
    assert " 200 calls" in screen.text()


def test_replays_that_are_expected_later(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    steps = screen.bar.replays()
    steps("as recorded", 100)
    steps.expect(3)
    steps("ttl=1h", 100)
    assert "200 of 400 calls" in screen.text()
    steps.expect(1)
    steps("ttl=5m", 50)
    assert "250 of 300 calls" in screen.text()


def test_units_that_are_expected_later(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    screen.bar.begin("explaining", None, "replay")
    screen.bar.advance(2)
    assert "2 replays" in screen.text()
    screen.bar.expect(5)
    screen.bar.advance(1)
    assert "3 of 7 replays" in screen.text()
    screen.bar.expect(1)
    assert "3 of 4 replays" in screen.text()


@pytest.mark.skipif(sys.platform == "win32", reason="needs pseudo-terminals")
@pytest.mark.parametrize("command", mostly_slow(["replay --json", "explain", "bill", "optimize"], 2))
def test_stdout_is_the_same_with_a_bar(tmp_path: Path, command: str) -> None:
    log = tmp_path / "log.jsonl"
    log.write_bytes(LINE * 3)
    words = command.split()
    terminal = Terminal(*words, log, stdout=tmp_path / "out")
    code = terminal.end()
    plain = run_here(*words, log, TERM="xterm")
    assert (code, (tmp_path / "out").read_text()) == (plain.returncode, plain.stdout)
    assert "so far" in terminal.shown
    assert "so far" not in plain.stderr
