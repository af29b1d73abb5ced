"""How often each dated row of the rules was seen: which call counts for which row, and what `rules` says."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cachecost.account.causes import causes
from cachecost.analysis.fidelity.judging import CLAIMS, RULES
from cachecost.base.structs import replace
from cachecost.cli import cachecost
from cachecost.ledger.results import Judgement
from cachecost.providers import listing as sightings
from cachecost.providers.hosts import catalogue
from cachecost.providers.listing import Sighting, rule_rows, sightings_of_rows, sightings_text
from cachecost.providers.usage import Usage
from tools.rule_sightings import TESTED, find_sightings

DAY = date(2026, 6, 1)
HIT = Judgement(
    *("log.jsonl", 1, 1, "claude-sonnet-4-6", "hit", True, Usage(3, 1000), Usage(3, 1000), None, None, ""),
    rules=("8 reached", "9 lookback"),
    model_row="claude-sonnet-4-6",
    day=DAY,
)
READ = replace(HIT, host="xai", way="grid", model_row="grok-4.7", rules=("xai: step", "xai: kept"))
ROWS = ("lookback_positions", "minimum_tokens")


def counts(*judgements: Judgement) -> dict[str, tuple[int, int]]:
    return {one.rule: (one.held, one.failed) for one in find_sightings(judgements)}


def test_every_tested_rule_is_one_of_the_data() -> None:
    assert set(TESTED) <= {*RULES, *CLAIMS} and {row.tested_as for row in causes().values()} <= {"", *RULES}
    known = {rule for host in ("anthropic", "openai", "deepseek") for rule in catalogue(host).rules}
    assert {rule for rules in TESTED.values() for rule in rules} <= known


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, dict.fromkeys(ROWS, (1, 0))),
        ({"exact": False}, dict.fromkeys(ROWS, (0, 1))),
        ({"broken": ("8 reached",)}, {"lookback_positions": (1, 0), "minimum_tokens": (0, 1)}),
        ({"rules": ("8 below", "8 reached"), "broken": ("8 below",)}, {"minimum_tokens": (0, 1)}),
        ({"kind": "unknown", "exact": False}, {}),
        ({"rules": ("1", "10 nothing else")}, {}),
    ],
)
def test_a_call_counts_once_for_each_rule(change: dict[str, Any], expected: dict[str, tuple[int, int]]) -> None:
    assert counts(replace(HIT, **change)) == expected


def test_the_size_of_a_read_tells_of_a_grid_even_if_the_hit_was_another() -> None:
    wrong = replace(READ, exact=False)
    assert counts(READ, wrong) == {"matching": (1, 1), "reported_step_tokens": (2, 0), "step_tokens": (2, 0)}
    off = replace(READ, broken=("xai: step",))
    assert counts(off) == {"matching": (1, 0), "reported_step_tokens": (0, 1), "step_tokens": (0, 1)}


def test_models_and_days_stand_apart() -> None:
    other = replace(HIT, day=date(2026, 6, 2), rules=("9 lookback",))
    assert find_sightings([HIT, other, HIT, replace(other, model_row="claude-opus-5")]) == [
        Sighting("anthropic", "claude-opus-5", "2026-06-02", "lookback_positions", 1, 0),
        Sighting("anthropic", "claude-sonnet-4-6", "2026-06-01", "lookback_positions", 2, 0),
        Sighting("anthropic", "claude-sonnet-4-6", "2026-06-01", "minimum_tokens", 2, 0),
        Sighting("anthropic", "claude-sonnet-4-6", "2026-06-02", "lookback_positions", 1, 0),
    ]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes sightings that are read instead of the shipped ones."""

    def write(*rows: Sighting) -> None:
        path = tmp_path / "sightings.json"
        path.write_text(sightings_text(rows, DAY))
        monkeypatch.setattr(sightings, "DATA", path)
        sightings_of_rows.cache_clear()

    yield write
    sightings_of_rows.cache_clear()


def seen(rule: str, model: str) -> list[tuple[str, tuple[int, int] | None]]:
    rows = [row for row in rule_rows("anthropic") if (row.rule, row.model) == (rule, model)]
    return [(str(row.start), (row.seen.held, row.seen.failed) if row.seen else None) for row in rows]


def test_a_sighting_belongs_to_the_row_in_force_on_its_day(data: Any) -> None:
    """Sonnet 4.6 had another minimum from 2026-02-27 to 2026-05-13; other rules have one row for all."""
    days = ("2026-05-13", "2026-05-14", "2026-05-15")
    data(
        *(Sighting("anthropic", "claude-sonnet-4-6", day, "minimum_tokens", 2, 1) for day in days),
        Sighting("anthropic", "claude-sonnet-4-6", days[0], "lookback_positions", 5, 0),
        Sighting("anthropic", "claude-gone", days[0], "lookback_positions", 9, 9),
        Sighting("anthropic", "claude-sonnet-4-6", days[0], "gone", 9, 9),
    )
    found = [each for _, each in seen("minimum_tokens", "claude-sonnet-4-6")]
    assert found == [None, (2, 1), (4, 2)]
    assert seen("lookback_positions", "*")[0][1] == (5, 0)


def test_rules_says_how_often_each_row_was_seen(data: Any) -> None:
    data(Sighting("mistral", "mistral-large-2512", "2026-11-01", "matching", 1200, 1))
    shown = CliRunner().invoke(cachecost, ["rules", "--host", "mistral"], env={"COLUMNS": "200"}).stdout
    assert "seen" in shown.splitlines()[0] and "1,200 held, 1 failed" in shown
    rows = json.loads(CliRunner().invoke(cachecost, ["rules", "--host", "mistral", "--json"]).stdout)["rules"]
    assert {row["rule"]: row["seen"] for row in rows if row["seen"]} == {"matching": {"held": 1200, "failed": 1}}
