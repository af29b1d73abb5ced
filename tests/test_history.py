"""The history of accepted costs: a line for a scenario and commit, never twice, and its chart."""

from __future__ import annotations

import json
import subprocess
from datetime import date
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cachecost.base.errors import InputError
from cachecost.budgets.history import HistoryEntry, HistoryFigures, add_entries, history_text, parse_history
from cachecost.views.check.history_chart import history_svg, history_title, scenario_histories
from check_projects import accept, longer_system, project
from command_runs import run_here

DAY = date(2026, 11, 20)
SVG = "{http://www.w3.org/2000/svg}"


def entry(commit: str | None, cost: str = "0.20", rate: str | None = "0.8", scenario: str = "chat") -> HistoryEntry:
    share = None if rate is None else Decimal(rate)
    return HistoryEntry(scenario, commit, DAY, {"as recorded": HistoryFigures(Decimal(cost), share, 6)})


def test_a_line_is_read_as_it_was_written() -> None:
    entries = [entry("3f2a9c1"), entry(None, rate=None)]
    text = history_text(entries)
    assert text.splitlines()[0] == (
        '{"scenario": "chat", "commit": "3f2a9c1", "date": "2026-11-20", '
        '"strategies": {"as recorded": {"cost_usd": "0.2", "hit_rate": "0.8", "calls": 6}}}'
    )
    assert parse_history(text, "history.jsonl") == entries


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"scenario": 1, "commit": null, "date": null, "strategies": {}}', '{"strategies": 3}']
)
def test_every_line_that_is_none_is_named(line: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_history(f"{line}\n{history_text([entry('a')])}{line}\n", "history.jsonl")
    assert [str(fault).split(" got")[0] for fault in raised.value.faults] == [
        f"history.jsonl:{number} expected a line like "
        '{"scenario": "chat", "commit": null, "date": "2026-03-07", "strategies": {}};'
        for number in (1, 3)
    ]


def test_the_same_figures_of_a_commit_are_added_once() -> None:
    once = add_entries([], [entry("a")])
    assert add_entries(once, [entry("a")]) == once
    again = add_entries(once, [entry("a", "0.30"), entry("b"), entry("a", scenario="other")])
    assert len(again) == 4 and add_entries(again, [entry("b")]) == again


# ------------------------------------------------------------------------------------------- the command


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def rows(folder: Path) -> list[dict[str, object]]:
    text = (folder / "reports" / "history.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_update_writes_a_line_for_each_commit_and_figure(tmp_path: Path) -> None:
    accept(tmp_path)
    for _ in range(2):
        assert run_here("check", "--update", cwd=tmp_path).returncode == 0
    (first,) = rows(tmp_path)
    assert (first["scenario"], first["commit"]) == ("mine", None)
    assert first["strategies"] == {
        name: {"cost_usd": "0.20451125", "hit_rate": "0.819197", "calls": 6} for name in ("progressive", "as recorded")
    }
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
    project(tmp_path / "scenarios", longer_system)
    for _ in range(2):
        assert run_here("check", "--update", cwd=tmp_path).returncode == 0
    assert [len(str(row["commit"])) for row in rows(tmp_path)] == [4, 40]
    chart = tmp_path / "h.svg"
    assert run_here("check", "--history", chart, cwd=tmp_path).returncode == 0
    title = ET.parse(chart).getroot().find(f"{SVG}title")
    assert title is not None and title.text is not None
    assert title.text.startswith("mine, as recorded: $0.22, 6% more than at 20")


def test_a_chart_of_nothing_is_an_error(tmp_path: Path) -> None:
    accept(tmp_path)
    ended = run_here("check", "--history", "h.svg", cwd=tmp_path)
    assert ended.returncode == 2 and not (tmp_path / "h.svg").exists()
    assert "expected accepted costs; there are none: write them with `--update`" in ended.stderr


# --------------------------------------------------------------------------------------------- the chart

TITLES = [
    ([entry("3f2a9c1aaaa")], "chat, as recorded: $0.20, cache hit rate 80% at 3f2a9c1"),
    (
        [entry("3f2a9c1aaaa"), entry("77aa01b", "0.79", "0.1")],
        "chat, as recorded: $0.79, 295% more than at 3f2a9c1; cache hit rate 80% → 10%",
    ),
    (
        [entry("a"), entry("b", "0.1"), entry("a", scenario="other"), entry("b", scenario="other")],
        "2 scenarios over 2 commits: 0 cost more than at first, 1 less",
    ),
    ([], "No costs have been accepted yet"),
]


@pytest.mark.parametrize(("entries", "title"), TITLES)
def test_the_title_says_the_answer(entries: list[HistoryEntry], title: str) -> None:
    assert history_title(scenario_histories(entries)) == title


def test_a_chart_is_the_same_bytes_and_follows_the_readers_system() -> None:
    entries = [entry(f"{number:07x}", str(0.1 + number % 7 / 100), "0.8") for number in range(30)]
    text = history_svg(entries)
    assert text == history_svg(entries)
    root = ET.fromstring(text)
    assert root.get("role") == "img" and "prefers-color-scheme:dark" in text
    assert "http" not in text.replace("http://www.w3.org/", ""), "nothing is loaded"


def test_a_name_is_no_markup() -> None:
    strange = '<script>"&\x1b[1m\n::error::x'
    text = history_svg([entry(strange, scenario=strange), entry(None, scenario="two", rate=None)])
    ET.fromstring(text)
    assert "<script>" not in text and "\x1b" not in text
