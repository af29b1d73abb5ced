"""A planted change in every format of `check`, through the command: the same answer, at the source line."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cachecost.base.version import __version__
from cachecost.views.charts.palette import PAGE_COLOURS
from cachecost.views.check.badge import badge_svg, badge_words
from cachecost.views.check.markdown import render as render_markdown
from cachecost.views.check.text import call_ranges, session_words, volume_words
from check_projects import (
    REGRESSION,
    Body,
    Spoil,
    accept,
    longer_system,
    moved_breakpoint,
    new_tool,
    other_model,
    project,
    reordered,
    timestamp,
)
from command_runs import run_here
from conversations.session_stores import write_lines
from goldens import Golden

AGENT = """\
import time

MODEL = "claude-sonnet-4-6"
TOOLS = ["fs_read_file", "fs_modify_file", "fs_list", "fs_move"]
SYSTEM = f"Current time: {time.ctime()}. You are an agent that works on a project. "
RULES = "Always answer with care and cite your sources. "
"""
FILES = {"--markdown": "c.md", "--junit": "j.xml", "--sarif": "s.sarif", "--gitlab": "g.json"}
PLANTED = (timestamp, reordered, new_tool, moved_breakpoint, longer_system, other_model)
GITLAB_SEVERITIES = {"info", "minor", "major", "critical", "blocker"}


def timestamp_and_tool(number: int, body: Body) -> None:
    timestamp(number, body)
    new_tool(number, body)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose calls were accepted, with its source code."""
    accept(tmp_path)
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


def check(folder: Path, how: Spoil | None, *options: str) -> tuple[int, str]:
    """The exit code and what is printed, after a change of what is sent."""
    project(folder / "scenarios", how)
    ended = run_here("check", *options, cwd=folder)
    return ended.returncode, ended.stdout


def check_json(folder: Path, how: Spoil | None, *options: str) -> Any:
    return json.loads(check(folder, how, "--json", *options)[1])


@pytest.mark.parametrize("how", PLANTED, ids=lambda how: how.__name__)
def test_what_a_person_reads(folder: Path, how: Spoil, golden: Golden) -> None:
    code, shown = check(folder, how, "--github", "--markdown", "c.md", "--sessions-per-day", "40")
    golden.check(f"{shown}exit code {code}\n\n{(folder / 'c.md').read_text()}")


@pytest.mark.parametrize("option", FILES)
def test_a_file_of_each_format(folder: Path, option: str, golden: Golden) -> None:
    code, _ = check(folder, timestamp_and_tool, option, FILES[option])
    assert code == 1
    golden.check((folder / FILES[option]).read_text().replace(f'"{__version__}"', '"VERSION"') + "\n")


def test_the_json(folder: Path, golden: Golden) -> None:
    parsed = check_json(folder, timestamp_and_tool, "--sessions-per-day", "40")
    golden.check(json.dumps({name: parsed[name] for name in ("sessions", "prompt_changes")}, indent=1) + "\n")


def test_gitlab_has_the_documented_fields_and_stable_fingerprints(folder: Path) -> None:
    found = []
    for how in (timestamp_and_tool, timestamp):
        check(folder, how, "--gitlab", "g.json")
        found.append(json.loads((folder / "g.json").read_text()))
    for finding in found[0]:
        assert set(finding) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert finding["severity"] in GITLAB_SEVERITIES and finding["description"]
        assert set(finding["location"]) == {"path", "lines"} and finding["location"]["lines"]["begin"] >= 1
        assert not Path(finding["location"]["path"]).is_absolute()
    prints = [[one["fingerprint"] for one in findings] for findings in found]
    assert len(set(prints[0])) == 3 and prints[1] == prints[0][:2], "the same finding with other figures"


def test_harmless_is_green_and_silent(folder: Path) -> None:
    assert check(folder, None, "--github", *(word for pair in FILES.items() for word in pair)) == (
        0,
        "✓ mine: as recorded costs $0.20, the same as the baseline; the limit is 5%.\n",
    )
    assert (folder / "c.md").read_text() == "" and json.loads((folder / "g.json").read_text()) == []


def test_a_damaged_accepted_recording_is_an_error_with_its_line(folder: Path) -> None:
    recording = folder / "reports" / "mine" / "recording.jsonl"
    recording.write_text(recording.read_text() + "{\n")
    ended = run_here("check", cwd=folder)
    assert ended.returncode == 2 and "reports/mine/recording.jsonl:7" in ended.stderr


# ------------------------------------------------------------------------------------------ --fail-under

HIT_RATES = [("82%", 1), ("81.9%", 0), ("0.81", 0), ("81", 0), ("100%", 1), ("0%", 0)]


@pytest.mark.parametrize(("rate", "code"), HIT_RATES)
def test_a_minimum_of_the_cache_hit_rate(folder: Path, rate: str, code: int) -> None:
    assert check(folder, None, "--fail-under", rate)[0] == code


def test_fail_under_is_a_verdict_like_any_budget(folder: Path) -> None:
    parsed = check_json(folder, timestamp, "--fail-under", "90%")
    found = parsed["budgets"][1]
    assert (found["strategy"], found["budget"], found["limit"], found["verdict"]) == (
        "as recorded",
        "fail_under",
        "0.9",
        "fail",
    )
    assert found["message"] == "as recorded has a cache hit rate of 0%; the minimum is 90%."
    assert (found["file"], found["line"]) == ("scenarios/mine.yaml", None)


def test_fail_under_is_about_strategies_with_a_budget_else_about_the_recorded_calls(tmp_path: Path) -> None:
    def named(budgets: str) -> list[str]:
        scenario = project(tmp_path / "scenarios", None, budgets)
        if not budgets:
            scenario.write_text(scenario.read_text().replace("budget:\n", ""))
        parsed = json.loads(run_here("check", "--json", "--fail-under", "50%", cwd=tmp_path).stdout)
        return [one["strategy"] for one in parsed["budgets"] if one["budget"] == "fail_under"]

    assert named("") == ["as recorded"]
    assert named("  - {max_cost_usd: 9}\n") == ["progressive"]
    assert named("  - {max_cost_usd: 9}\n" + REGRESSION) == ["progressive", "as recorded"]


@pytest.mark.parametrize("rate", ["101%", "-1%", "much", "nan", "inf", ""])
def test_a_rate_that_is_none(folder: Path, rate: str) -> None:
    ended = run_here("check", "--fail-under", rate, cwd=folder)
    assert ended.returncode == 2
    assert f"expected a share from 0% to 100%, such as 90%; got '{rate}'" in " ".join(ended.stderr.split())


# ------------------------------------------------------------------------------------- days and months


def sessions_of(folder: Path, names: dict[int, str], days: dict[int, int], *options: str) -> Any:
    """The sessions of a check, after calls were given sessions and moved to other days."""
    recording = folder / "scenarios" / "calls.jsonl"
    rows = [json.loads(line) for line in recording.read_text().splitlines()]
    for number, row in enumerate(rows, 1):
        row["session"] = names.get(number, "a")
        row["timestamp"] = row["timestamp"].replace("03-07", f"03-{days.get(number, 7):02}")
    write_lines(recording, rows)
    return json.loads(run_here("check", "--json", *options, cwd=folder).stdout)["sessions"]


def test_without_a_volume_only_the_session_is_known(folder: Path) -> None:
    for one in sessions_of(folder, {}, {6: 9}):
        assert (one["sessions"], one["usd_per_day"], one["usd_per_month"], one["volume"]) == (1, None, None, None)
        assert (one["baseline_hit_rate"], one["input_tokens"]) == ("0.8191973352831261678446665042", 123_090)


def test_several_sessions_of_a_recording_are_its_volume(folder: Path) -> None:
    (_, one) = sessions_of(folder, {5: "b", 6: "c"}, {6: 8})
    total = json.loads(run_here("check", "--json", cwd=folder).stdout)["strategies"][1]["cost_usd"]
    assert one["sessions"] == 3 and one["volume"] == {"sessions_per_day": "1.5", "from": "recording", "days": 2}
    assert Decimal(one["usd_per_day"]) == Decimal(total) / 2 and Decimal(one["usd_per_month"]) == Decimal(total) * 15
    assert "at 1.5 sessions a day, as in the recording of 2 days" in volume_words(one)


def test_the_option_outweighs_the_recording(folder: Path) -> None:
    (_, one) = sessions_of(folder, {5: "b", 6: "c"}, {6: 8}, "--sessions-per-day", "3")
    assert one["volume"] == {"sessions_per_day": "3", "from": "option", "days": None}
    assert abs(Decimal(one["usd_per_day"]) - Decimal(one["cost_usd"]) * 3) < Decimal("1e-20")


# ---------------------------------------------------------------------------------------------- the badge


def session(scenario: str, cost: str, read: int, total: int, strategy: str = "plain") -> Any:
    rates = {"hit_rate": str(Decimal(read) / total), "baseline_hit_rate": None, "baseline_usd": None}
    tokens = {"cache_read_input_tokens": read, "input_tokens": total, "output_tokens": 600}
    return {"scenario": scenario, "strategy": strategy, "cost_usd": cost, **rates, **tokens}


def check_object(*sessions: Any, verdict: str = "pass", budgets: tuple[tuple[str, str], ...] = ()) -> Any:
    named = [{"scenario": scenario, "strategy": strategy} for scenario, strategy in budgets]
    return {"verdict": verdict, "budgets": named, "sessions": list(sessions)}


WORDS = [
    (check_object(session("a", "0.042", 94, 100)), "hit-rate", ("cache hit rate", "94%")),
    (check_object(session("a", "0.042", 94, 100)), "cost", ("prompts", "$0.042 a session")),
    (check_object(session("a", "0.042", 94, 100)), "both", ("cache", "94% hits · $0.042 a session")),
    (
        check_object(session("a", "0.1", 90, 100), session("b", "0.3", 0, 900)),
        "both",
        ("cache", "9% hits · $0.20 a session"),
    ),
    (
        check_object(session("a", "1", 0, 100), session("a", "2", 50, 100, "best"), budgets=(("a", "best"),)),
        "hit-rate",
        ("cache hit rate", "50%"),
    ),
    (check_object(), "both", ("cache", "– hits · – a session")),
]


@pytest.mark.parametrize(("report", "shows", "words"), WORDS)
def test_what_a_badge_says(report: Any, shows: str, words: tuple[str, str]) -> None:
    assert badge_words(report, shows) == words
    root = ET.fromstring(badge_svg(report, shows))
    title = root.find("{http://www.w3.org/2000/svg}title")
    assert title is not None and title.text == root.get("aria-label") == ": ".join(words)


@pytest.mark.parametrize(("verdict", "colour"), [("pass", "good"), ("fail", "bad"), ("not_comparable", "muted")])
def test_a_badge_has_the_colour_of_the_verdict(verdict: str, colour: str) -> None:
    text = badge_svg(check_object(session("a", "0.042", 94, 100), verdict=verdict), "hit-rate")
    assert f'fill="{PAGE_COLOURS[colour]}"' in text
    assert "http" not in text.replace("http://www.w3.org/", ""), "nothing is loaded"


def test_the_command_writes_a_badge(folder: Path) -> None:
    options = ("--badge", "b.svg", "--badge-shows", "both")
    assert check(folder, None, *options)[0] == 0
    first = (folder / "b.svg").read_bytes()
    assert check(folder, None, *options)[0] == 0 and (folder / "b.svg").read_bytes() == first
    assert "cache: 82% hits · $0.20 a session" in first.decode()


# ---------------------------------------------------------------------------------------------- words

RANGES = [
    ([3], "call 3"),
    ([2, 3, 4, 5, 6], "calls 2–6"),
    ([2, 4, 5, 9], "calls 2, 4–5, 9"),
    ([1, 3, 5, 7, 9, 10], "calls 1, 3, 5 and 3 more"),
]


@pytest.mark.parametrize(("calls", "words"), RANGES)
def test_calls_in_words(calls: list[int], words: str) -> None:
    assert call_ranges(calls) == words


def test_what_stays_the_same_is_said_once() -> None:
    one = {**session("a", "0.042", 94, 100), "baseline_usd": "0.042", "baseline_hit_rate": "0.94"}
    assert session_words(one) == "$0.042 a session, cache hit rate 94%"


def test_foreign_names_in_a_comment_ping_and_link_nobody(folder: Path) -> None:
    name = "@all https://evil.example #1 " + "x" * 5_000
    _, printed = check(folder, new_tool, "--json")
    comment = render_markdown(json.loads(printed.replace("fs_move", json.dumps(name)[1:-1])))
    plain = re.sub(r"(?ms)^ *```.*?^ *```$", "", comment)
    assert "evil.example" in plain
    assert not re.search(r"@\w|://|(?<!&)#\d", plain)
    assert max(map(len, comment.splitlines())) < 2_000
