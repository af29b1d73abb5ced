"""`--csv FILE`: the rows that `--json` has, as a table for a spreadsheet."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachecost.cli import cachecost
from cachecost.views.tables.output import csv_text

SESSION = Path(__file__).parents[1] / "scenarios" / "recordings" / "sessions" / "claude-code-56-minutes.jsonl"


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize(("command", "key"), [("explain", "findings"), ("whatif", "alternatives")])
def test_the_rows_are_those_of_the_json(tmp_path: Path, command: str, key: str) -> None:
    path = tmp_path / "rows.csv"
    result = CliRunner().invoke(
        cachecost, [command, str(SESSION), "--json", "--csv", str(path)], catch_exceptions=False
    )
    assert result.exit_code == 0 and f"{path} written" in result.stderr
    wanted = json.loads(result.stdout)[key]
    found = rows_of(path)
    assert len(found) == len(wanted) > 2
    assert [row["cost_usd"] for row in found] == [one["cost_usd"] or "" for one in wanted]


def test_validate_has_a_row_for_every_judged_call(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    result = CliRunner().invoke(cachecost, ["validate", str(SESSION), "--csv", str(path), "--json"])
    rows, summary = rows_of(path), json.loads(result.stdout)
    assert len(rows) == summary["calls"]
    assert sum(Decimal(row["billed_usd"]) for row in rows) == Decimal(summary["billed_usd"])


def test_replay_has_a_row_a_call_and_strategy(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    args = ["replay", str(SESSION), "--strategy", "none", "--strategy", "automatic", "--csv", str(path)]
    assert CliRunner().invoke(cachecost, args).exit_code == 0
    assert [row["strategy"] for row in rows_of(path)] == ["none"] * 62 + ["automatic"] * 62


def test_nested_names_are_joined_and_nothing_is_empty() -> None:
    rows = [{"a": {"b": 1, "c": None}, "d": "x, y"}, {"d": True, "e": ["q"]}]
    assert csv_text(rows) == 'a.b,a.c,d,e\n1,,"x, y",\n,,true,"[""q""]"\n'
