"""How far a sweep is, in a log: a line each half minute, with the time that the rest takes."""

from __future__ import annotations

import pytest

from cachecost.commands import workloads
from cachecost.commands.workloads import SECONDS_BETWEEN_LINES, cells_bar


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(workloads.time, "monotonic", lambda: self.now)


@pytest.mark.parametrize(("seconds", "lines"), [(SECONDS_BETWEEN_LINES - 1, 0), (SECONDS_BETWEEN_LINES, 1)])
def test_a_line_each_half_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seconds: float, lines: int
) -> None:
    clock = Clock(monkeypatch)
    with cells_bar("small", 2_000) as done:
        done(0)
        clock.now += seconds
        done(10)
        done(10)
    assert len(capsys.readouterr().err.splitlines()) == lines


def test_what_was_kept_says_nothing_of_how_long_the_rest_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock(monkeypatch)
    with cells_bar("small", 2_000) as done:
        done(1_000)
        clock.now += 100
        done(100)
        clock.now += 900
        done(900)
    assert capsys.readouterr().err == "small: 1,100 of 2,000 cells, 0:15:00 left\n"


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    clock = Clock(monkeypatch)
    with cells_bar("small", 2_000) as done:
        done(1_000)
        clock.now += 2
        done(100)
    told = capsys.readouterr().err
    assert "small" in told
    assert "1100/2000" in told
