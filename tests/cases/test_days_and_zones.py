"""A day is one of a zone, which is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from case_files import Run, json_of

from bill_sessions import SessionWriter
from command_runs import run_apart, run_here

CASE, HOME = "47-local-day", "home/.claude/projects"
ANGELES = {"TZ": "America/Los_Angeles"}


def test_the_day_is_that_of_this_machine_as_next_has_it(run_case: Run, tmp_path: Path) -> None:
    found = json_of(run_case(CASE, "bill", HOME, "--by", "day", "--json", **ANGELES))
    assert [row["key"] for row in found["rows"]] == ["2026-11-19"] and found["timezone"] == "America/Los_Angeles"
    text = run_case(CASE, "bill", HOME, "--by", "day", **ANGELES).stdout
    assert "  day (America/Los_Angeles)  " in text and ", 19 Nov 2026 " in text
    done = run_apart("next", tmp_path / CASE / HOME, "--at", "2026-11-20T02:03:00Z", CACHECOST_STORE="off", **ANGELES)
    assert "warm until 2026-11-19 18:05" in done.stdout


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("UTC", "2026-11-20"),
        ("utc", "2026-11-20"),
        ("local", "2026-11-19"),
        ("Europe/Berlin", "2026-11-20"),
        ("Pacific/Honolulu", "2026-11-19"),
        ("Pacific/Kiritimati", "2026-11-20"),
        ("Etc/GMT+12", "2026-11-19"),
    ],
)
def test_a_zone_can_be_chosen(run_case: Run, zone: str, day: str) -> None:
    """The call was at 2:00 UTC on 20 November."""
    options = ("--by", "day", "--json", "--timezone", zone)
    assert [row["key"] for row in json_of(run_case(CASE, "bill", HOME, *options, **ANGELES))["rows"]] == [day]


def test_dates_are_of_the_same_zone(run_case: Run) -> None:
    def calls(zone: str) -> Any:
        options = ("--since", "2026-11-20", "--json", "--timezone", zone)
        return json_of(run_case(CASE, "bill", HOME, *options))["calls"]

    assert (calls("UTC"), calls("America/Los_Angeles")) == (4, 0)


@pytest.mark.parametrize("zone", ["Mars/Phobos", "../etc/passwd", ""])
def test_a_zone_that_there_is_not(run_case: Run, zone: str) -> None:
    done = run_case(CASE, "bill", HOME, "--timezone", zone)
    assert done.returncode == 2 and "no time zone" in done.stderr and "Traceback" not in done.stderr


def test_a_tz_that_is_none_is_no_error(run_case: Run) -> None:
    assert run_case(CASE, "bill", HOME, "--by", "day", TZ="Nowhere/Land").returncode == 0


@pytest.mark.parametrize(("by", "key"), [("day", "2027-01-01"), ("week", "2026-W53"), ("month", "2027-01")])
def test_periods_of_a_zone(tmp_path: Path, by: str, key: str) -> None:
    """23:50 UTC on 31 December is the first of January in Berlin, and still of the last week of 2026."""
    made = SessionWriter("s", "/p", at=(304 * 86_400) - 30)
    made.write_message("begin")
    made.answer(0, 5_000)
    made.save(tmp_path / "s.jsonl")
    found = json_of(run_here("bill", tmp_path, "--by", by, "--json", "--timezone", "Europe/Berlin"))
    assert [row["key"] for row in found["rows"]] == [key]


def test_a_session_has_its_times_in_the_zone(run_case: Run) -> None:
    text = run_case(CASE, "bill", HOME, "--session", "44fdec47", **ANGELES).stdout
    assert "19 Nov 2026 18:00 – " in text and "19 November 2026 (America/Los_Angeles)" in text
