"""`cachecost bill` on projects whose events are known: each is found at its call with its dollars, and nothing else."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachecost.cli import cachecost
from event_project import Project, event_project, random_project
from slow_cases import mostly_slow

PROJECTS = {
    "5m": event_project(),
    "1h": event_project(ttl="1h"),
    "three sessions": event_project(sessions=3),
    "copied": event_project(copied=True),
    "2.1.290": event_project(version="2.1.290"),
}
SEEDS = range(40)


def run(command: str, folder: Path) -> dict[str, Any]:
    done = CliRunner().invoke(cachecost, [command, str(folder), "--json"], standalone_mode=False)
    assert done.exception is None, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def place(folder: Path, row: dict[str, Any]) -> tuple[str, int]:
    return (str(Path(row["file"]).relative_to(folder)), row["line"])


def check(project: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(folder)
    monkeypatch.setenv("CACHECOST_STORE", "off")
    made = run("bill", folder)
    found = {
        place(folder, row): (row["cause"], row["tokens"], Decimal(row["cost_usd"]), row["session"], row["agent"])
        for row in made["rewrites"]
        if row["cause"] != "cold_start"
    }
    expected = {
        (one.file, one.line): (one.cause, one.tokens, one.cost_usd, one.session, one.agent) for one in project.findings
    }
    assert found == expected
    assert Decimal(made["billed_usd"]) == project.billed_usd
    assert made["calls"] == len(project.calls)
    check_agreement(made, run("explain", folder))


def check_agreement(bill: dict[str, Any], explanation: dict[str, Any]) -> None:
    """`explain` names what `bill` finds, with what was paid again, and both account for every dollar."""
    findings = [*explanation["findings"], *explanation["notes"], *explanation["not_explained"]]
    assert {(one["file"], one["line"]): (one["cause"], one["tokens"], one["paid_again_usd"]) for one in findings} == {
        (one["file"], one["line"]): (one["cause"], one["tokens"], one["cost_usd"]) for one in bill["rewrites"]
    }
    assert all(Decimal(one["cost_usd"]) <= Decimal(one["paid_again_usd"]) for one in findings)
    parts = ("necessary_usd", "avoidable_usd", "not_explained_usd")
    assert sum(Decimal(explanation[part]) for part in parts) == Decimal(explanation["billed_usd"])
    assert explanation["billed_usd"] == bill["billed_usd"]
    assert Decimal(bill["necessary_usd"]) + Decimal(bill["rewritten_usd"]) == Decimal(bill["billed_usd"])


@pytest.mark.parametrize("name", PROJECTS)
def test_every_event_is_found_and_nothing_else(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = PROJECTS[name]
    assert {one.cause for one in project.findings} >= {"ttl_expired", "compaction", "concurrent_write", "tools_changed"}
    check(project, tmp_path, monkeypatch)


@pytest.mark.parametrize("seed", mostly_slow(SEEDS, 12))
def test_events_at_random_places(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(random_project(seed), tmp_path, monkeypatch)
