"""Reports of runs and pairs of recordings, as the page gets them from the real server."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.command_runs import run_here
from tests.live.viewer_client import Client
from tests.viewer_logs import listing_of, requests, write_log

from cachecost.analysis.viewing.listing import CallReading, pair_calls
from cachecost.live.viewer.sessions_source import ComparisonSource
from cachecost.live.viewer.source import ReportSource
from cachecost.views.viewer.sessions import parse_report

REPORTS = Path(__file__).parents[2] / "reports"
CLASSES = ("read", "write_5m", "write_1h", "input", "output")


def report_client(name: str) -> Client:
    files = [(REPORTS / name / file).read_text() for file in ("result.json", "calls.csv")]
    return Client(ReportSource(parse_report(name, files[0], files[1])))


@pytest.mark.parametrize("name", ["ttl", "agents-side-by-side", "answer-inquiry"])
def test_a_report_is_shown_as_its_files_have_it(name: str) -> None:
    client = report_client(name)
    start, answer = client.get("api/start").json, client.get("api/run").json
    told = json.loads((REPORTS / name / "result.json").read_text())
    with (REPORTS / name / "calls.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert (start["kind"], start["title"]) == ("run", told["scenario"])
    assert [answer["question"], answer["answer"]] == [told["question"], told["verdict"]]
    assert [one["name"] for one in answer["strategies"]] == [one["name"] for one in told["strategies"]]
    for shown, one in zip(answer["strategies"], told["strategies"], strict=True):
        own = [row for row in rows if row["strategy"] == one["name"]]
        assert shown["cost_usd"] == one["cost_usd"]
        for column in CLASSES:
            assert shown["calls"][column] == [int(row[column]) for row in own]
        assert shown["calls"]["cost_usd"] == [row["cost_usd"] for row in own]
        assert {len(column) for column in shown["calls"].values()} == {one["calls"]}
        assert set(shown["calls"]["cause"]) <= set(range(len(answer["causes"])))
    base = next(one for one in answer["strategies"] if one["name"] == told["compare_to"])
    for one in answer["strategies"]:
        assert Decimal(one["difference_usd"]) == Decimal(one["cost_usd"]) - Decimal(base["cost_usd"])


def test_calls_of_the_conversation_have_numbers_that_rise_and_others_none() -> None:
    answer = report_client("ttl").get("api/run").json
    kept = next(one for one in answer["strategies"] if "kept alive" in one["name"])["calls"]
    numbers = [number for number in kept["number"] if number]
    assert numbers == list(range(1, 201))
    assert Counter(kept["event"]) == {"": 200, "ping": 21}
    assert all(bool(number) != bool(event) for number, event in zip(kept["number"], kept["event"], strict=True))


def test_refused_calls_are_counted_and_found() -> None:
    answer = report_client("agents-side-by-side").get("api/run").json
    refused = [one for one in answer["strategies"] if one["refused"]]
    assert [one["refused"] for one in refused] == [61]
    assert refused[0]["findings"][0].startswith("61 × refused: A maximum of 4 blocks")


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


def test_a_report_beside_another_revision(tmp_path: Path) -> None:
    shutil.copytree(REPORTS / "progressive-caching", tmp_path / "r")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    path = tmp_path / "r" / "result.json"
    changed = json.loads(path.read_text())
    was, changed["strategies"][0]["cost_usd"] = changed["strategies"][0]["cost_usd"], "9"
    path.write_text(json.dumps(changed))
    source = reported(tmp_path / "r", "HEAD")
    answer = Client(source).get("api/run").json
    assert answer["strategies"][0]["cost_usd"] == "9"
    assert answer["other"]["title"] == "HEAD"
    assert answer["other"]["strategies"][0]["cost_usd"] == was
    assert answer["other"]["strategies"][0]["calls"] == answer["strategies"][0]["calls"]


def reported(folder: Path, revision: str) -> ReportSource:
    """The source that the command makes."""
    from cachecost.commands import view
    from cachecost.commands.options import SharedOptions

    options = view.ViewOptions((folder,), "auto", None, None, None, False, revision, SharedOptions())
    return view.report_source(view.report_folder((folder,)), options)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("r", "--against", "nothing"), "result.json is not in nothing: fatal: "),
        (("r", "--against", "--help"), "result.json is not in --help: fatal: "),
        (("r/calls.csv", "--against", "HEAD"), "--against: expected the report of a run"),
        (("broken",), "broken expected the report of a run; strategies is missing"),
        (("half",), "calls.csv cannot be read"),
        (("r", "--beside"), "--beside: expected two recordings; got 1"),
        (("r", "r", "--beside"), "no calls to show"),
        (("r", "--save", "x.html"), "--save, --session: for sessions only"),
    ],
)
def test_what_is_no_report_is_an_error(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    shutil.copytree(REPORTS / "progressive-caching", tmp_path / "r")
    for name, text in (("broken", '{"scenario":1,"question":1,"verdict":1,"compare_to":1}'), ("half", "{}")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(text)
    (tmp_path / "broken" / "calls.csv").write_text("")
    done = run_here("view", "--no-browser", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "Traceback" not in done.stderr


def test_without_git_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(REPORTS / "progressive-caching", tmp_path / "r")
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run_here("view", tmp_path / "r", "--against", "HEAD", cwd=tmp_path)
    assert done.returncode == 2 and "git cannot be asked for" in done.stderr


def compared(left: Path, right: Path) -> Any:
    listings = listing_of(left), listing_of(right)
    return Client(ComparisonSource(("a", "b"), listings, CallReading())).get("api/compare").json


def test_calls_correspond_by_what_they_add(tmp_path: Path) -> None:
    bodies = list(requests(6))
    left = write_log(tmp_path / "a.jsonl", bodies, session="s1")
    right = write_log(tmp_path / "b.jsonl", [bodies[0], *bodies[2:]], session="s2")
    answer = compared(left, right)
    assert answer["pairs"] == [[0, 0], [2, 1], [3, 2], [4, 3], [5, 4]]
    costs = [Decimal(answer[side]["cost_usd"]) for side in ("left", "right")]
    assert Decimal(answer["difference_usd"]) == costs[1] - costs[0]
    for side, calls in (("left", 6), ("right", 5)):
        assert answer[side]["calls"]["number"] == list(range(1, calls + 1))
        assert {len(column) for column in answer[side]["calls"].values()} == {calls}
    assert answer["words"].startswith("b against a: 5 calls instead of 6, cache hit rate ")


def test_where_nothing_is_known_calls_correspond_in_their_order(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 2_000, "output_tokens": 10}
    for name, calls in (("a", 3), ("b", 2)):
        rows = [
            {
                "timestamp": f"2026-03-02T10:0{number}:00Z",
                "request": {"model": "claude-opus-4-5", "messages": []},
                "usage": usage,
            }
            for number in range(calls)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert compared(tmp_path / "a.jsonl", tmp_path / "b.jsonl")["pairs"] == [[0, 0], [1, 1]]


@pytest.mark.parametrize(
    ("left", "right", "pairs"),
    [
        ("abc", "abc", [(0, 0), (1, 1), (2, 2)]),
        ("abc", "xyc", [(0, 0), (1, 1), (2, 2)]),
        ("abc", "ac", [(0, 0), (2, 1)]),
        ("", "ac", []),
        ("ab", "ba", [(0, 1)]),
    ],
)
def test_pairs_rise(left: str, right: str, pairs: list[tuple[int, int]]) -> None:
    assert pair_calls([one.encode() for one in left], [one.encode() for one in right]) == pairs
