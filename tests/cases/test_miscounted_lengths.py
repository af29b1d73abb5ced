"""Bills that count some layer shorter or longer than the estimate: the read gives the length, and the cause stays."""

from __future__ import annotations

from decimal import Decimal

from case_files import Run, json_of

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
