"""`check`: a planted regression breaks it, with the same first sentence in every format; nothing changed is no news."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cachecost.cli import cachecost, exit_code
from check_projects import Body, Spoil, fifth_breakpoint, modified_tool, project, reordered, timestamp

TIMESTAMP = "as recorded costs $0.79, 284% more than the baseline ($0.20); the limit is 5%."
REORDERED = "as recorded costs $0.45, 119% more than the baseline ($0.20); the limit is 5%."
FIFTH = (
    "as recorded sends 4 of 6 calls that the API refuses, first call 3: "
    "A maximum of 4 blocks with cache_control may be provided. Found 5."
)
PLANTED: list[tuple[Spoil, str, str]] = [
    (timestamp, TIMESTAMP, "$0.20 → $0.79 a session, cache hit rate 82% → 0%"),
    (reordered, REORDERED, "$0.20 → $0.45 a session, cache hit rate 82% → 47%"),
    (fifth_breakpoint, FIFTH, "1 budget broken"),
]
ALL = ("--markdown", "c.md", "--junit", "j.xml", "--sarif", "s.sarif", "--github")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose costs were accepted, as the working folder."""
    project(tmp_path / "scenarios")
    monkeypatch.chdir(tmp_path)
    assert run("check", "--update") == 0
    place = tmp_path / "reports" / "mine" / "baseline.json"
    place.write_text("".join(line for line in _undated(place)))
    return tmp_path


def _undated(place: Path) -> list[str]:
    lines = place.read_text().splitlines(keepends=True)
    return [' "accepted": null,\n' if line.startswith(' "accepted"') else line for line in lines]


def run(*arguments: str) -> int:
    return exit_code(lambda: cachecost.main(args=arguments, prog_name="cachecost", standalone_mode=False))


def spoil(folder: Path, how: Spoil | None) -> None:
    project(folder / "scenarios", how)


@pytest.mark.parametrize(("how", "sentence", "headline"), PLANTED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_regression_in_every_format(
    folder: Path, capsys: pytest.CaptureFixture[str], how: Spoil, sentence: str, headline: str
) -> None:
    spoil(folder, how)
    assert run("check", *ALL) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"✗ mine: {sentence}"
    assert any("accept it with" in line for line in out) is (how is not fifth_breakpoint), "no baseline mends a refusal"
    annotation = next(line for line in out if line.startswith("::"))
    place, message = annotation.removeprefix("::error ").split("::", 1)
    assert place == "file=scenarios/mine.yaml,line=9,col=29,title=cachecost max_regression"
    assert message.replace("%25", "%").split("%0A")[0] == f"mine: {sentence}"
    comment = Path("c.md").read_text().splitlines()
    assert comment[:2] == ["<!-- cachecost -->", f"### ✗ cachecost: {headline}"]
    assert next(line for line in comment if line.startswith("- ✗")).replace("\\", "") == f"- ✗ **mine**: {sentence}"
    (failure,) = ET.parse("j.xml").getroot().iter("failure")
    assert failure.get("message") == sentence
    results = json.loads(Path("s.sarif").read_text())["runs"][0]["results"]
    assert (results[0]["ruleId"], results[0]["message"]["text"]) == ("max_regression", f"mine: {sentence}")
    assert run("check", "--json") == 1
    (budget,) = json.loads(capsys.readouterr().out)["budgets"]
    assert (budget["verdict"], budget["message"]) == ("fail", sentence)


def test_nothing_changed_is_no_comment_and_the_same_bytes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("c.md").write_text("an older comment")
    kept = {path: path.read_bytes() for path in folder.rglob("*.json")}
    seen = set()
    for _ in range(2):
        assert run("check", *ALL) == 0
        assert Path("c.md").read_text() == ""
        seen.add((capsys.readouterr().out, Path("j.xml").read_bytes(), Path("s.sarif").read_bytes()))
    ((out, _, _),) = seen
    assert out == "✓ mine: as recorded costs $0.20, the same as the baseline; the limit is 5%.\n"
    assert run("check", "--update") == 0
    assert {path: path.read_bytes() for path in folder.rglob("*.json")} == kept
    assert "updated" not in capsys.readouterr().err


def test_a_change_within_the_limits_is_news(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = Path("scenarios/mine.yaml")
    scenario.write_text(scenario.read_text().replace("5%", "400%"))
    project(Path("scenarios"), timestamp, "  - {strategy: as recorded, max_regression: 400%}\n")
    assert run("check", "--markdown", "c.md") == 0
    assert Path("c.md").read_text().splitlines() == [
        "<!-- cachecost -->",
        "### ✓ cachecost: $0.20 → $0.79 a session, cache hit rate 82% → 0%",
        "",
        "mine, as recorded. 1 budget holds.",
        "",
        "| scenario | strategy | baseline | now | change | cache hit rate |",
        "| :--- | :--- | ---: | ---: | ---: | ---: |",
        "| mine | progressive | $0.20 | $0.79 | +284% | 82% → 0% |",
        "| mine | as recorded | $0.20 | $0.79 | +284% | 82% → 0% |",
    ]


def test_accepting_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(folder, modified_tool)
    assert run("check") == 1
    accept = capsys.readouterr().out.splitlines()[-1]
    assert accept == "  accept it with: cachecost check --update scenarios/mine.yaml"
    assert run(*accept.split("cachecost ")[1].split()) == 0
    assert capsys.readouterr().err == "reports/mine/baseline.json updated\nreports/history.jsonl updated\n"
    assert run("check") == 0


def test_no_baseline_cannot_be_judged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", "--reports", "elsewhere", *ALL) == 3
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "? mine: as recorded has no baseline yet: write one with `cachecost check --update`."
    assert out[-1].startswith("::warning file=scenarios/mine.yaml,line=9,")
    (error,) = ET.parse("j.xml").getroot().iter("error")
    assert error.get("type") == "max_regression"
    (result,) = json.loads(Path("s.sarif").read_text())["runs"][0]["results"]
    assert result["level"] == "warning"
    assert Path("c.md").read_text().splitlines()[1] == "### ? cachecost: 1 not comparable"


def test_the_json_of_the_contract_and_more(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(folder, modified_tool)
    assert run("check", "--json", "--github", "--sessions-per-day", "10") == 1
    captured = capsys.readouterr()
    parsed: dict[str, Any] = json.loads(captured.out)
    assert captured.err.startswith("::error file=")
    assert list(parsed) == [
        "format",
        "verdict",
        "budgets",
        "strategies",
        "accept",
        "sessions",
        "prompt_changes",
        "project",
    ]
    (budget,) = parsed["budgets"]
    assert list(budget)[:7] == ["scenario", "strategy", "budget", "limit", "actual", "verdict", "message"]
    assert (budget["limit"], budget["file"], budget["line"], budget["column"]) == (
        "0.05",
        "scenarios/mine.yaml",
        9,
        29,
    )
    first, rest = budget["changes"]
    assert (first["call"], first["calls"], first["code"], first["block"]) == (4, 1, "CC105", "tools.1")
    assert rest["what"] == "" and rest["calls"] == 2
    recorded = parsed["project"][1]
    cost = parsed["strategies"][1]["cost_usd"]
    assert (recorded["strategy"], recorded["days"]) == ("as recorded", 30)
    assert float(recorded["usd_per_month"]) == pytest.approx(float(cost) * 300)
    assert recorded["low_usd"] == recorded["high_usd"] == recorded["usd_per_month"], "bytes have no error error_margin"


def test_a_projection_has_the_band_of_its_tokens(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = Path("scenarios/mine.yaml")
    scenario.write_text(scenario.read_text().replace("tokens: bytes", "tokens: tiktoken"))
    assert run("check", "--sessions-per-day", "1") == 3
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.startswith("  mine, as recorded: $") and " a month of 30 days at 1 session a day, ±$" in line
    run("check", "--json", "--sessions-per-day", "1")
    one = json.loads(capsys.readouterr().out)["project"][0]
    assert float(one["low_usd"]) < float(one["usd_per_month"]) < float(one["high_usd"])


def test_all_faults_of_all_scenarios_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("scenarios/mine.yaml").read_text()
    Path("scenarios/other.yaml").write_text(
        text.replace("max_regression: 5%", "max_regresion: 5%, max_breakpoints: -1")
    )
    Path("scenarios/third.yaml").write_text(text.replace("as recorded", "as recordet").replace("5%", "5"))
    assert run("check") == 2
    assert capsys.readouterr().err.splitlines() == [
        "scenarios/other.yaml:9:29 budget[0].max_regresion: unknown key (did you mean 'max_regression'?)",
        "scenarios/other.yaml:9:48 budget[0].max_breakpoints: expected at least 0; got -1",
        "scenarios/third.yaml:9:6 budget[0].strategy: expected one of progressive, as recorded; got 'as recordet' "
        "(did you mean 'as recorded'?)",
        "scenarios/third.yaml:9:29 budget[0].max_regression: expected a percentage like 5%; got 5",
        "4 errors; nothing was run.",
    ]


def test_two_scenarios_of_one_name_would_share_a_baseline(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("scenarios/other.yaml").write_text(Path("scenarios/mine.yaml").read_text())
    assert run("check") == 2
    assert capsys.readouterr().err.startswith(
        "scenarios/other.yaml:2:1 name: expected a unique name, as the baseline is stored under it; "
        "got 'mine', as in scenarios/mine.yaml"
    )


LIMITS = [
    ("min_cache_hit_rate: 0.9", "expected a percentage like 5%; got 0.9"),
    ("min_cache_hit_rate: 101%", "expected at most 100%; got '101%'"),
    ("max_breakpoints: 4.5", "expected a whole number; got 4.5"),
    ("min_lookback_margin: -1", "expected at least 0; got -1"),
    ("no_write_never_read: maybe", "expected true or false; got 'maybe'"),
    ("prefix_stable: [tool]", "expected one of messages, system, tools; got 'tool' (did you mean 'tools'?)"),
    (
        "no_write_never_read: false",
        "expected a limit: max_breakpoints, max_cost_per_call_usd, max_cost_per_inquiry_usd, ",
    ),
]


@pytest.mark.parametrize(("limit", "expected"), LIMITS)
def test_a_limit_that_is_none(folder: Path, capsys: pytest.CaptureFixture[str], limit: str, expected: str) -> None:
    project(Path("scenarios"), None, f"  - {{{limit}}}\n")
    assert run("check") == 2
    assert expected in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("there").write_text("in the way")
    assert run("check", "--junit", "there/j.xml") == 2
    assert capsys.readouterr().err.startswith("there/j.xml cannot be written: ")


def longer_tool(number: int, body: Body) -> None:
    body["tools"][1]["description"] *= 3


WITHOUT_CONTENT: list[tuple[Spoil | None, int, str]] = [
    (None, 0, "✓ mine: as recorded costs $0.068, the same as the baseline"),
    (modified_tool, 1, "since call 4: tool 2 changed ("),
    (longer_tool, 1, "since call 1: tool 2 differs from the baseline (2,123 tokens instead of 730)"),
]


@pytest.mark.parametrize(("how", "code", "expected"), WITHOUT_CONTENT)
def test_a_recording_without_content_tells_the_block_and_its_sizes(
    folder: Path, capsys: pytest.CaptureFixture[str], how: Spoil | None, code: int, expected: str
) -> None:
    """Each import has a key of its own, so no digest of the baseline is found again: sizes are."""
    import_without_content(folder, None)
    assert run("check", "--update", "--reports", "free") == 0
    import_without_content(folder, how)
    capsys.readouterr()
    assert run("check", "--reports", "free") == code
    out = capsys.readouterr().out
    assert expected in out, out


def import_without_content(folder: Path, how: Spoil | None) -> None:
    spoil(folder, how)
    Path("scenarios/free.jsonl").unlink(missing_ok=True)
    assert run("import", "scenarios/calls.jsonl", "-o", "scenarios/free.jsonl", "--content", "digest") == 0
    scenario = Path("scenarios/mine.yaml")
    text = scenario.read_text().replace("calls.jsonl", "free.jsonl")
    scenario.write_text(text.replace("tokens: bytes\n", "tokens: tiktoken\n"))
