"""`cachecost explain` end to end: what people read, and what machines do."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from cachecost.cli import cachecost

SESSION = Path(__file__).parents[1] / "scenarios" / "recordings" / "sessions" / "claude-code.jsonl"
SCENARIO = Path(__file__).parents[1] / "scenarios" / "answer-inquiry.yaml"


def run(*args: object) -> str:
    result = CliRunner().invoke(cachecost, ["explain", *map(str, args)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_answer_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(SESSION).splitlines()
    assert lines[0] == "$5.17 billed · $0.21 avoidable (4%) · $0.0395 not explained (0.8%) · 3 causes"
    assert lines[2].split() == ["cause", "paid", "again", "calls", "times", "avoidable"]
    assert lines[3].startswith("  CC301 TTL expired")
    assert "No avoidable cost in the other 281 calls." in lines
    assert max(map(len, lines[:9])) <= 80


def test_json_adds_up() -> None:
    parsed = json.loads(run(SESSION, "--json"))
    assert {"format", "cost_usd", "avoidable_usd", "findings"} <= parsed.keys()
    keys = {"code", "cause", "call", "layer", "block", "tokens", "cost_usd", "message", "fix"}
    assert all(keys <= finding.keys() for finding in parsed["findings"])
    assert sum(Decimal(finding["cost_usd"]) for finding in parsed["findings"]) == Decimal(parsed["avoidable_usd"])
    assert Decimal(parsed["cost_usd"]) - Decimal(parsed["avoidable_usd"]) == Decimal(parsed["without_usd"])


def test_one_strategy_of_a_scenario() -> None:
    parsed = json.loads(run(SCENARIO, "--strategy", "answer_inquiry, forced", "--json"))
    assert parsed["strategy"] == "answer_inquiry, forced"
    assert {finding["cause"] for finding in parsed["findings"]} == {"tool_choice_changed", "ttl_expired"}


def test_an_unknown_strategy_is_told_with_its_nearest_name() -> None:
    result = CliRunner().invoke(cachecost, ["explain", str(SCENARIO), "--strategy", "answer_inquiry forced"])
    assert result.exit_code == 2
    assert "got 'answer_inquiry forced' (did you mean 'answer_inquiry, forced'?)" in result.stderr


@pytest.mark.slow
def test_another_reading_may_change_the_answer() -> None:
    words = run(SCENARIO, "--strategy", "answer_inquiry, forced", "--assumptions")
    assert "assumption  with tool_choice_invalidation=never" in words


@pytest.mark.slow
def test_a_reading_that_was_asked_for_stays_while_others_are_tried() -> None:
    """Under `never` the forced choice costs nothing more, whichever reading another rule has."""
    words = run(
        SCENARIO, "--strategy", "answer_inquiry, forced", "--assumptions", "--rule", "tool_choice_invalidation=never"
    )
    others = [
        line for line in words.splitlines() if line.startswith("assumption  with ") and "tool_choice_inv" not in line
    ]
    assert all("CC201" not in line for line in others)
