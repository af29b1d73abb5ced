"""A TTL of 1h where 5m would have lasted: short pauses are the proof that it would, and all commands say so."""

from __future__ import annotations

from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from bodies_of_cases import Row, chat, question, row
from case_files import Run, json_of, rows_of, run_in

from conversations.session_stores import write_lines

CASE = "03-short-pauses-1h"
TO_5M = Decimal("20") - Decimal("12.5")
"""USD per million tokens that a 5m write of claude-fable-5-1 is cheaper."""


def alternative(report: Any, name: str) -> Any:
    return next(one for one in report["alternatives"] if one["name"] == name)


def explained(folder: Path, rows: list[Row]) -> list[tuple[str, int]]:
    write_lines(folder / "log.jsonl", rows)
    found = json_of(run_in(folder, "explain", "log.jsonl", "--json", "--tokens", "bytes"))
    return [(finding["code"], finding["call"]) for finding in found["findings"]]


def test_whatif_explain_and_optimize_name_5m(run_case: Run) -> None:
    written = sum(
        one["usage"]["cache_creation_input_tokens"] for one in rows_of(run_case(CASE, "replay", "log.jsonl", "--json"))
    )
    saved = written * TO_5M / 10**6
    found = json_of(run_case(CASE, "explain", "log.jsonl", "--json"))
    assert [(one["code"], one["call"]) for one in found["findings"]] == [("CC302", call) for call in range(1, 7)]
    assert Decimal(found["avoidable_usd"]) == saved
    report = json_of(run_case(CASE, "whatif", "log.jsonl", "--json"))
    short = alternative(report, "ttl=5m")
    assert (short["supported"], Decimal(short["saving_usd"])) == ("yes", saved)
    assert round(saved / Decimal(report["cost_usd"]), 2) == Decimal("0.36")
    assert "ttl=5m" in run_case(CASE, "whatif", "log.jsonl").stdout.splitlines()[0]
    plan = run_case(CASE, "optimize", "log.jsonl").stdout
    assert "with TTL 5m" in plan
    assert "1h" not in plan.partition("cheaper ")[0]


def at(pauses: list[float], ttl: str = "1h") -> list[Row]:
    return [row(start, chat(turn, ttl)) for turn, start in enumerate(accumulate([0.0, *pauses]), 1)]


@pytest.mark.parametrize(
    ("rows", "calls"),
    [
        (at([7.0] * 5), range(1, 7)),
        (at([299.0] * 5), range(1, 7)),
        (at([7.0, 7.0, 1200.0, 7.0, 1200.0, 1200.0]), ()),
        (at([1200.0] * 5), ()),
        (at([7.0] * 5, "5m"), ()),
        (at([]), ()),
        ([row(None, chat(turn, "1h")) for turn in range(1, 7)], ()),
        ([row(40.0 * number, question(number, ttl="1h")) for number in range(5)], (1,)),
        ([row(400.0 * number, question(number, ttl="1h")) for number in range(5)], ()),
    ],
    ids=[
        *("7 s", "just below 5 minutes", "pauses of 20 minutes among others", "pauses of 20 minutes", "5m already"),
        *("one call", "no times", "one-shots", "one-shots 7 minutes apart"),
    ],
)
def test_1h_is_a_fault_only_where_pauses_prove_it(
    tmp_path: Path, rows: list[Row], calls: range | tuple[int, ...]
) -> None:
    assert explained(tmp_path, rows) == [("CC302", call) for call in calls]


def test_five_minutes_on_messages_where_only_tools_and_system_outlast_a_pause(tmp_path: Path) -> None:
    """Two conversations, each without pauses, one of them half an hour after the other."""
    other = [row(1800.0 + 10 * turn, question(7, ttl="1h") | {"messages": _other(turn)}) for turn in range(1, 5)]
    rows = [*at([7.0] * 3), *other]
    assert {code for code, _ in explained(tmp_path, rows)} == {"CC302"}
    found = json_of(run_in(tmp_path, "explain", "log.jsonl", "--json", "--tokens", "bytes"))
    assert {one["fix"] for one in found["findings"]} == {"a 1h TTL on tools and system prompt, 5m on messages"}


def _other(turn: int) -> list[Row]:
    """Of another conversation, which shares no word with the first."""
    messages: list[Row] = chat(turn, "1h")["messages"]
    for message in messages:
        block = message["content"][0]
        block["text"] = block["text"].replace("question", "demand").replace("answer", "reply")
    return messages


def test_six_pauses_of_8_to_17_minutes_ask_for_1h(tmp_path: Path) -> None:
    minutes = [8, 17, 9, 12, 10, 15]
    write_lines(tmp_path / "log.jsonl", at([60.0 * pause for pause in minutes], "5m"))
    report = run_in(tmp_path, "whatif", "log.jsonl", "--tokens", "bytes")
    assert "· ttl=1h $" in report.stdout.splitlines()[0], report.stdout
    found = json_of(run_in(tmp_path, "explain", "log.jsonl", "--json", "--tokens", "bytes"))
    assert {(one["code"], one["fix"]) for one in found["findings"]} == {("CC301", "a 1h TTL on every breakpoint")}
