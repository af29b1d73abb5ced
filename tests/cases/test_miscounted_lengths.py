"""Bills that count some layer shorter or longer than the estimate: the read gives the length, and the cause stays."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from bodies_of_cases import Row, breakpoint, chat, row, text, usage
from case_files import Run, json_of, run_in

from conversations.session_stores import write_lines

CASE = "33-clock-and-short-tool-counts"
TOOLS = 1_003
"""Tokens of the tools, which every call after the first reads."""


def test_a_clock_is_found_although_the_tools_are_shorter_than_estimated(run_case: Run) -> None:
    """What the call before had cached, less what was read, at the price of a write less that of a read."""
    cached = [2_064, 2_260, 2_502, 2_729, 2_913, 3_143, 3_400]
    paid = sum(tokens - TOOLS for tokens in cached) * (Decimal("6.25") - Decimal("0.5")) / 10**6
    bill = json_of(run_case(CASE, "bill", "log.jsonl", "--json"))
    assert [(one["cause"], one["call"]) for one in bill["rewrites"]] == [
        ("system_changed", call) for call in range(2, 9)
    ]
    assert Decimal(bill["rewritten_usd"]) == paid
    found = json_of(run_case(CASE, "explain", "log.jsonl", "--json"))
    assert [(one["code"], one["call"], one["block"]) for one in found["findings"]] == [
        ("CC110", call, "system.0") for call in range(2, 9)
    ]
    assert (found["not_explained"], found["notes"]) == ([], [])
    assert sum(Decimal(one["paid_again_usd"]) for one in found["findings"]) == paid
    saved = Decimal(found["avoidable_usd"])
    assert Decimal("0.0684") < saved < paid  # the time is still sent, after the last breakpoint
    report = json_of(run_case(CASE, "whatif", "log.jsonl", "--json"))
    moved = next(one for one in report["alternatives"] if one["name"] == "volatile=last")
    assert (moved["supported"], Decimal(moved["saving_usd"])) == ("yes", saved)
    assert "unexplained" not in run_case(CASE, "whatif", "log.jsonl").stdout
    assert "nothing explains" not in run_case(CASE, "optimize", "log.jsonl").stderr


def dated(call: int) -> Row:
    """A call with a tool and a system prompt that has the time in it, each with a breakpoint."""
    tool = {"name": "look", "description": text("tool ", 500)["text"], "input_schema": {"type": "object"}}
    body = chat(call)
    body["system"][0]["text"] = f"It is 09:0{call}. " + body["system"][0]["text"]
    return body | {"tools": [tool | breakpoint()]}


@pytest.mark.parametrize(("read", "is_explained"), [(1_900, True), (2_050, True), (0, False)])
def test_a_change_is_told_beside_what_nothing_explains(tmp_path: Path, read: int, is_explained: bool) -> None:
    """The time changes and the tools stay. Where not even they were read, the call has two parts."""
    cached = 6_000
    bills = [usage(0, cached), usage(read, cached + 400 - read), usage(read, cached + 800 - read)]
    write_lines(tmp_path / "log.jsonl", [row(20 * call, dated(call), bill) for call, bill in enumerate(bills, 1)])
    found = json_of(run_in(tmp_path, "explain", "log.jsonl", "--json"))
    assert [(one["code"], one["call"]) for one in found["findings"]] == [("CC110", 2), ("CC110", 3)]
    assert [one["call"] for one in found["not_explained"]] == ([] if is_explained else [2, 3])
    bill = json_of(run_in(tmp_path, "bill", "log.jsonl", "--json"))
    causes = ["system_changed"] if is_explained else ["billed_not_explained", "system_changed"]
    assert [(one["cause"], one["call"]) for one in bill["rewrites"]] == [
        (one, call) for call in (2, 3) for one in causes
    ]
    paid = (cached - read + cached + 400 - read) * (Decimal("6.25") - Decimal("0.5")) / 10**6
    assert Decimal(bill["rewritten_usd"]) == paid
