"""Calls that were sent before the first answer had begun write the same again: bills and gaps show it without the times
to first token that logs of real clients lack."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from bodies_of_cases import Row, chat, question, row, usage
from case_files import Run, json_of, rows_of, run_in

from conversations.session_stores import write_lines

READ = Decimal("0.5")
"""USD per million tokens of claude-opus-4-8; a 5m write is 6.25."""
WROTE, FOUND = usage(0, 3_000), usage(3_000)


def findings(done: Any) -> list[tuple[str, int]]:
    found = json_of(done)
    return [(one["code"], one["call"]) for one in (*found["findings"], *found["not_explained"])]


@pytest.mark.parametrize(
    ("case", "calls", "usd", "words"),
    [
        ("39-fan-out", [2, 3, 4, 5], Decimal(4 * 3_305) * (Decimal(5) - Decimal("0.2")) / 10**6, "sent 7 ms after"),
        ("15-back-to-back", [2], Decimal(1_209) * (Decimal("3.75") - Decimal("0.3")) / 10**6, "sent 1.4 s after"),
    ],
)
def test_explain_bill_and_replay_say_the_same(
    run_case: Run, case: str, calls: list[int], usd: Decimal, words: str
) -> None:
    found = json_of(run_case(case, "explain", "log.jsonl", "--json"))
    assert [(one["code"], one["call"]) for one in found["findings"]] == [("CC305", call) for call in calls]
    assert (Decimal(found["avoidable_usd"]), found["not_explained"], found["notes"]) == (usd, [], [])
    assert words in found["findings"][0]["message"]
    assert "before its answer had begun" in found["findings"][0]["message"]
    bill = json_of(run_case(case, "bill", "log.jsonl", "--json"))
    assert [(one["cause"], one["call"]) for one in bill["rewrites"]] == [("concurrent_write", call) for call in calls]
    assert Decimal(bill["rewritten_usd"]) == usd
    causes = [one["cause"] for one in rows_of(run_case(case, "replay", "log.jsonl", "--json"))]
    assert causes == ["cold_start", *["concurrent_write"] * len(calls)]
    assert "no other calls" not in run_case(case, "explain", "log.jsonl").stdout
    assert "CC405" not in run_case(case, "explain", "log.jsonl").stdout


EARLY, UNKNOWN = "CC305", "CC900"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row(0, question(1), WROTE), row(1.9, question(2), WROTE)], [(EARLY, 2)]),
        ([row(0, question(1), WROTE), row(2.5, question(2), WROTE)], [(UNKNOWN, 2)]),
        ([row(0, question(1), WROTE), row(1.9, question(2), FOUND)], []),
        ([row(0, question(1), WROTE), row(0.5, question(2), WROTE), row(9, question(3), FOUND)], [(EARLY, 2)]),
        (
            [row(number / 4, question(number), WROTE) for number in range(12)],
            [(EARLY, call) for call in range(2, 13)],
        ),
        ([row(0, question(1), WROTE), row(1, question(2, "other "), WROTE)], [("CC405", 1), ("CC405", 2)]),
        (
            [row(0, question(1), WROTE), row(1, question(2) | {"model": "claude-opus-4-7"}, WROTE)],
            [("CC405", 1), ("CC405", 2)],
        ),
        ([row(0, question(1), WROTE, first_token_s=0.5), row(1, question(2), WROTE)], [(UNKNOWN, 2)]),
        ([row(0, question(1), WROTE, first_token_s=1.5), row(1, question(2), WROTE)], [(EARLY, 2)]),
        ([row(None, question(1), WROTE), row(None, question(2), WROTE)], [(UNKNOWN, 2)]),
        ([row(0, question(1), usage(0, 30_000)), row(4.5, question(2), usage(0, 30_000))], [(EARLY, 2)]),
        ([row(0, question(1), usage(0, 30_000)), row(6, question(2), usage(0, 30_000))], [(UNKNOWN, 2)]),
        ([row(0, chat(1), usage(0, 3_200)), row(1.5, chat(2), usage(0, 3_600))], [(UNKNOWN, 2)]),
        (
            [row(0, question(1), WROTE), row(9_000, question(2), WROTE), row(9_000.5, question(3), WROTE)],
            [(EARLY, 3)],
        ),
        ([row(0, question(1), WROTE), row(60, question(2), FOUND), row(60.5, question(3), WROTE)], [(UNKNOWN, 3)]),
        ([row(-0.25, question(1), WROTE), row(2.75, question(2), WROTE)], [(EARLY, 2)]),
        ([row(-0.25, question(1), WROTE), row(3.75, question(2), WROTE)], [(UNKNOWN, 2)]),
    ],
    ids=[
        *("within 2 s", "after 2 s", "the second reads", "a third reads later", "twelve at once, over 3 s"),
        *("another system prompt", "another model", "it had answered", "it had not answered", "no times"),
        *("a long prompt", "a long prompt, later", "it goes on from the answer", "after it expired"),
        *("the one before only read", "whole seconds", "whole seconds, later"),
    ],
)
def test_a_gap_within_a_plausible_time_to_first_token_is_enough(
    tmp_path: Path, rows: list[Row], expected: list[tuple[str, int]]
) -> None:
    write_lines(tmp_path / "log.jsonl", rows)
    assert findings(run_in(tmp_path, "explain", "log.jsonl", "--json")) == expected
    bill = json_of(run_in(tmp_path, "bill", "log.jsonl", "--json"))
    causes = {EARLY: "concurrent_write", UNKNOWN: "billed_not_explained"}
    assert [one["cause"] for one in bill["rewrites"] if one["cause"] in causes.values()] == [
        causes[code] for code, _ in expected if code in causes
    ]


def test_a_loss_that_nothing_explains_is_no_needless_write(tmp_path: Path) -> None:
    """Others send the prefix in time, so a breakpoint there is right."""
    write_lines(tmp_path / "log.jsonl", [row(40 * number, question(number), WROTE) for number in range(4)])
    found = json_of(run_in(tmp_path, "explain", "log.jsonl", "--json"))
    assert not [one for one in (*found["findings"], *found["notes"]) if one["code"] == "CC405"]
    assert [one["call"] for one in found["not_explained"]] == [2, 3, 4]
