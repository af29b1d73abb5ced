"""Output that Claude Code never recorded is estimated beside the bill, and never added to it."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from case_files import DATA, Run, json_of

from bill_sessions import SessionWriter
from command_runs import run_apart, run_here

CASE, HOME = "46-output-cut-short", "home/.claude/projects"
(SESSION,) = (DATA / CASE / HOME).rglob("*.jsonl")


def expected_missing() -> Decimal:
    """18,000 characters at 3.6 a token and $20 a million, less the recorded tokens."""
    answers = [
        line["message"] for line in map(json.loads, SESSION.read_text().splitlines()) if "usage" in line["message"]
    ]
    chars = sum(len(block["text"]) for one in answers for block in one["content"])
    recorded = sum(one["usage"]["output_tokens"] for one in answers)
    return (chars / Decimal("3.6") - recorded) * 20 / 10**6


def test_the_bill_says_what_is_missing(run_case: Run) -> None:
    found, bare = (json_of(run_case(CASE, "bill", HOME, "--json", *more)) for more in ((), ("--output", "recorded")))
    estimate = found["estimated_output"]
    assert abs(Decimal(estimate["missing_usd"]) / expected_missing() - 1) < Decimal("0.01")
    assert Decimal(estimate["total_usd"]) == Decimal(found["billed_usd"]) + Decimal(estimate["missing_usd"])
    assert Decimal(estimate["margin_usd"]) == Decimal(estimate["missing_usd"]) / 4
    assert round(Decimal(estimate["total_usd"]), 2) == Decimal("0.29")
    assert bare["billed_usd"] == found["billed_usd"] and round(Decimal(bare["billed_usd"]), 2) == Decimal("0.19")
    assert bare["estimated_output"] is None
    text, short = (run_case(CASE, "bill", HOME, *more).stdout for more in ((), ("--output", "recorded")))
    assert (
        "Output is understated: Claude Code logged only the first tokens of 10 of 10 answers; the true total is" in text
    )
    assert "about $0.29" in text.replace("\n    ", " ")
    assert "Output is understated" in short and "about" not in short


def test_the_rows_add_up(run_case: Run) -> None:
    found = json_of(run_case(CASE, "bill", HOME, "--json", "--by", "model"))
    assert sum(Decimal(row["missing_output_usd"]) for row in found["rows"]) == Decimal(
        found["estimated_output"]["missing_usd"]
    )


def test_the_status_line_has_what_the_client_counts() -> None:
    facts = {"transcript_path": str(SESSION), "model": {"id": "claude-opus-5-5"}, "cost": {"total_cost_usd": 0.29}}
    lines = [
        run_here("statusline", stdin=json.dumps(one), CACHECOST_STORE="off").stdout
        for one in (facts, {**facts, "cost": {}}, {**facts, "cost": {"total_cost_usd": None}})
    ]
    assert lines[0].endswith("session $0.29\n")
    assert lines[1] == lines[2] and "session $0.19" in lines[1]


def test_next_says_that_the_session_cost_at_least_so_much(run_case: Run) -> None:
    assert " · at least $0.19 · " in run_case(CASE, "next", HOME).stdout


# -------------------------------------------------------------------------------------------------- siblings


def partial(folder: Path, content: Any, output: int = 3, **message: Any) -> Any:
    made = SessionWriter("s", "/p")
    made.write_message("begin")
    made.answer(0, 5_000, output=output)
    made.lines[-1]["message"].update({"content": content, "stop_reason": None, **message})
    made.save(folder / "s.jsonl")
    return json_of(run_here("bill", folder, "--json", CACHECOST_STORE="off"))["estimated_output"]


TEXT = "x" * 3_600


@pytest.mark.parametrize(
    ("content", "output", "tokens"),
    [
        ([{"type": "text", "text": TEXT}], 3, 997),
        ([{"type": "thinking", "thinking": TEXT, "signature": "y" * 9_000}], 3, 997),
        ([{"type": "tool_use", "id": "t", "name": "Write", "input": {"text": TEXT}}], 3, 1_003),
        ([{"type": "text", "text": TEXT}, {"type": "text", "text": TEXT}], 0, 2_001),
        ([{"type": "text", "text": "é" * 1_800}], 3, 997),
        ([{"type": "text", "text": TEXT}], 2_000, None),
        ([{"type": "text", "chars": 3_600, "digest": "00"}], 3, None),
        ([], 3, None),
        (TEXT, 3, None),
    ],
)
def test_what_counts(tmp_path: Path, content: Any, output: int, tokens: int | None) -> None:
    """Text, thinking without its signature, and tool calls; the larger of the estimate and the record."""
    found = partial(tmp_path, content, output)
    assert (found and abs(found["missing_tokens"] - tokens) <= 5) if tokens else found is None  # type: ignore[operator]


@pytest.mark.parametrize("fields", [{"stop_reason": "end_turn"}, {"model": "claude-unheard-of"}])
def test_what_is_complete_or_has_no_price_is_not_estimated(tmp_path: Path, fields: dict[str, str]) -> None:
    made = SessionWriter("s", "/p")
    made.write_message("begin")
    made.answer(0, 5_000)
    made.lines[-1]["message"].update({"content": [{"type": "text", "text": TEXT}], "stop_reason": None, **fields})
    made.save(tmp_path / "s.jsonl")
    found = json.loads(run_here("bill", tmp_path, "--json", CACHECOST_STORE="off").stdout)
    assert Decimal((found["estimated_output"] or {"missing_usd": "0"})["missing_usd"]) == 0
    assert "true total" not in run_here("bill", tmp_path, CACHECOST_STORE="off").stdout


def test_a_store_remembers_it(tmp_path: Path) -> None:
    store = {"CACHECOST_STORE": str(tmp_path / "kept"), "HOME": str(tmp_path)}
    first, second = (run_apart("bill", SESSION.parent, "--json", **store).stdout for _ in range(2))
    assert first == second and json.loads(first)["estimated_output"]["calls"] == 10
    assert (tmp_path / "kept/store.sqlite").exists()
