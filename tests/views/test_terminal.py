"""The output of `cachecost run`, as text."""

from __future__ import annotations

from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest
from fake_results import comparison, ledger, result, row, small, ten_arms, wholly_refused
from rich.cells import cell_len

from cachecost.ledger.results import Ledger, RunResult
from cachecost.ledger.rows import Cost
from cachecost.providers.usage import Usage
from cachecost.views.run.report import print_run, run_text
from goldens import Golden

REPORT = Path("reports/answer-inquiry/report.md")


@pytest.mark.parametrize("width", [80, 120])
def test_ten_arms(golden: Golden, width: int) -> None:
    golden.check(run_text(ten_arms(), width=width, report=REPORT))


@pytest.mark.parametrize("width", [80, 120])
def test_three_strategies(golden: Golden, width: int) -> None:
    golden.check(run_text(small(), width=width, report=REPORT))


def test_ascii(golden: Golden) -> None:
    text = run_text(ten_arms(), width=120, encoding="ascii", report=REPORT)
    assert text.isascii()
    golden.check(text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_an_encoding_that_has_every_sign_gets_every_sign(encoding: str) -> None:
    assert "−61%" in run_text(ten_arms(), encoding=encoding)


def test_signs_fall_back_only_where_one_is_lacking() -> None:
    assert "±" not in run_text(ten_arms(), encoding="cp1252")
    assert "+-3.1%" in run_text(ten_arms(), encoding="cp1252")


@pytest.mark.parametrize("width", range(60, 200, 7))
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for shown in (ten_arms(), small()):
        assert max(map(cell_len, run_text(shown, width=width).splitlines())) <= width


@pytest.mark.parametrize("width", [80, 120, 200])
def test_each_strategy_is_one_line_and_keeps_its_place(width: int) -> None:
    shown = ten_arms()
    lines = run_text(shown, width=width).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("  strategy"))
    for line, of in zip(lines[start + 1 :], shown.main.ledgers, strict=False):
        assert line.startswith("  " + of.strategy[:10])


def test_colours_change_no_letter() -> None:
    plain = run_text(small(), width=100)
    coloured = run_text(small(), width=100, colours="truecolor")
    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    legend = "  read write 5m write 1h uncached output\n"
    assert _without_codes(coloured).replace(legend, "") == plain


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    return monkeypatch


def test_a_terminal_gets_its_width_and_colours(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("COLUMNS", "90")
    stream = Terminal()
    print_run(small(), stream, REPORT)
    assert stream.getvalue() == run_text(small(), width=90, colours="truecolor", report=REPORT)


def test_no_color_is_respected(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("COLUMNS", "90")
    environment.setenv("NO_COLOR", "1")
    stream = Terminal()
    print_run(small(), stream)
    assert stream.getvalue() == run_text(small(), width=90)


def test_a_pipe_gets_plain_text_of_120_columns(environment: pytest.MonkeyPatch) -> None:
    stream = StringIO()
    print_run(small(), stream)
    assert stream.getvalue() == run_text(small(), width=120)


def test_a_pipe_that_cannot_say_it_gets_ascii(environment: pytest.MonkeyPatch) -> None:
    buffer = BytesIO()
    stream = TextIOWrapper(buffer, encoding="ascii", newline="\n")
    print_run(small(), stream)
    stream.flush()
    assert buffer.getvalue().decode("ascii") == run_text(small(), encoding="ascii")


def test_a_long_path_of_the_report_stays_whole() -> None:
    path = Path("/a/long/way/" + "down/" * 30 + "report.md")
    assert f"  report   {path}\n" in run_text(small(), width=60, report=path)


def odd_results() -> dict[str, RunResult]:
    free = row("free", 1, Usage(input_tokens=5), cost=Cost(), cost_by_layer={})
    return {
        "no strategy": result(comparison([])),
        "one strategy": result(comparison([ledger("alone")])),
        "no calls": result(comparison([Ledger("idle", [])])),
        "nothing costs": result(comparison([Ledger("free", [free]), Ledger("free too", [free])])),
        "all refused": result(comparison([wholly_refused("a", "no"), wholly_refused("b", "no")])),
        "no words": result(comparison([ledger("a")]), about="", verdict="", question="", assumptions=[], versions={}),
        "wide letters": result(comparison([ledger("構造化出力、ツールなし" * 3), ledger("a [bold]b[/] :smile: | c")])),
    }


@pytest.mark.parametrize("case", odd_results())
def test_odd_results(golden: Golden, case: str) -> None:
    text = run_text(odd_results()[case], width=100)
    assert max(map(cell_len, text.splitlines())) <= 100
    golden.check(text)


def _without_codes(text: str) -> str:
    import re

    return "".join(f"{line.rstrip()}\n" for line in re.sub(r"\x1b\[[\d;]*m", "", text).splitlines())
