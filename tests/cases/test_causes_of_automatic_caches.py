"""Causes of calls to caches that match by themselves: from their contents, with the dollars of their bills."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from case_files import Run, json_of

OPENAI, DEEPSEEK, TRIMMED = "04-openai-clock", "05-deepseek-tool-order", "06-deepseek-trimmed-results"
CLOCK, ORDER = ("system_changed", "CC110", "CC530"), ("tools_changed", "CC105", "CC535")


def causes(run_case: Run, name: str) -> dict[str, tuple[int, Decimal]]:
    """Times and USD by cause, as `bill` has them."""
    rows = json_of(run_case(name, "bill", "log.jsonl", "--json"))["causes"]
    return {row["cause"]: (row["times"], Decimal(row["cost_usd"])) for row in rows}


@pytest.mark.parametrize(
    ("name", "cause", "usd"), [(OPENAI, CLOCK[0], "0.0166"), (DEEPSEEK, ORDER[0], "0.0020")], ids=["openai", "deepseek"]
)
def test_a_bill_says_what_changed_where_the_bodies_show_it(run_case: Run, name: str, cause: str, usd: str) -> None:
    """Also where an earlier call sent the same order of tools: their bills show that nothing was read."""
    found = causes(run_case, name)
    assert list(found) == [cause]
    assert (found[cause][0], round(found[cause][1], 4)) == (4, Decimal(usd))


def test_results_that_the_client_trimmed_are_paid_again(run_case: Run) -> None:
    """Calls 2, 4, 5 and 6 read 11,904 tokens less than was cached in steps of 128, of which they trimmed 512:
    (0.14 − 0.0028) USD per 10**6."""
    found = causes(run_case, TRIMMED)
    assert list(found) == ["content_changed"]
    assert (found["content_changed"][0], round(found["content_changed"][1], 5)) == (4, Decimal("0.00156"))


@pytest.mark.parametrize(("name", "codes"), [(OPENAI, CLOCK), (DEEPSEEK, ORDER)], ids=["openai", "deepseek"])
def test_explain_and_lint_find_the_same(run_case: Run, name: str, codes: tuple[str, str, str]) -> None:
    explained = json_of(run_case(name, "explain", "log.jsonl", "--json"))
    assert {(one["code"], one["call"]) for one in explained["findings"]} == {(codes[1], call) for call in range(2, 6)}
    assert explained["not_explained_usd"] == "0"
    assert codes[2] in run_case(name, "lint", "log.jsonl").stdout


@pytest.mark.parametrize(
    ("name", "change", "least"), [(OPENAI, "volatile=last", 55), (DEEPSEEK, "tools=sorted", 65)], ids=["clock", "order"]
)
def test_the_change_that_mends_it_is_replayed_from_what_was_billed(
    run_case: Run, name: str, change: str, least: int
) -> None:
    found = json.loads(run_case(name, "whatif", "log.jsonl", "--json").stdout)
    one = next(one for one in found["alternatives"] if one["name"] == change)
    assert Decimal(one["cost_usd"]) < Decimal(found["cost_usd"]) * (100 - least) / 100
    billed = json_of(run_case(name, "bill", "log.jsonl", "--json"))["billed_usd"]
    assert abs(Decimal(found["cost_usd"]) - Decimal(billed)) < Decimal("0.0001")


def test_a_change_of_the_gateway_s_upstream_is_a_cause(run_case: Run) -> None:
    """The answers name the provider; each change of it reads nothing. Pinning it is replayed."""
    name = "07-openrouter-hosts"
    assert causes(run_case, name)["upstream_changed"][0] == 3
    explained = json_of(run_case(name, "explain", "log.jsonl", "--json"))
    found = [one for one in explained["findings"] if one["cause"] == "upstream_changed"]
    assert [one["call"] for one in found] == [2, 5, 7]
    assert found[0]["message"] == "the gateway's upstream changed from HostA to HostB"
    assert 0 < sum(Decimal(one["cost_usd"]) for one in found) < Decimal(explained["billed_usd"]) / 2


def test_a_read_that_the_rules_do_not_allow_is_part_of_what_alternatives_are_compared_with(run_case: Run) -> None:
    """Call 1 read what was sent before the log began, call 2 in the middle of what call 1 sent."""
    found = json_of(run_case(TRIMMED, "whatif", "log.jsonl", "--json"))
    assert found["cost_usd"] == found["billed_usd"] == found["simulated_usd"] == "0.0019422704"
