"""Advice about what differs between calls: the order of the prompt, settings and models, in explain and in lint."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from case_files import Run, json_of

BYTES = ("--tokens", "bytes")
ORDER, CITATIONS, MODEL, SEARCH, KEYS = (
    "34-user-line-before-shared-prompt",
    "35-citations-switched-on",
    "36-model-switched-for-two-calls",
    "40-web-search-switched-on",
    "41-lint-a-log",
)


def explain(run_case: Run, case: str, *options: str) -> Any:
    return json_of(run_case(case, "explain", "log.jsonl", *options, "--json"))


def lint_of(run_case: Run, case: str, *files: str) -> list[tuple[str, str, int | None]]:
    """Code, path and tokens of each finding; findings end with 1."""
    done = run_case(case, "lint", *files)
    assert done.returncode == 1, done.stderr
    found = json.loads(run_case(case, "lint", *files, "--json").stdout)
    return [(one["code"], one["path"], one["tokens"]) for one in found["findings"]]


def test_a_users_line_before_the_shared_prompt(run_case: Run) -> None:
    """$0.0705 instead of $0.1870, by an independent simulator, with the line after the prompt."""
    found = explain(run_case, ORDER, *BYTES)
    assert round(Decimal(found["avoidable_usd"]), 4) == Decimal("0.1165")
    assert round(Decimal(found["without_usd"]), 4) == Decimal("0.0705")
    assert [(one["code"], one["call"], one["block"]) for one in found["findings"]] == [
        ("CC110", call, "system.0") for call in (2, 3, 4, 5)
    ]
    assert found["findings"][0]["fix"].startswith("send first what conversations share, in blocks of its own")
    assert found["notes"] == []


@pytest.mark.parametrize(
    ("case", "files", "code"),
    [(ORDER, ("request-0.json", "request-1.json"), "CC530"), (KEYS, ("request-4.json", "request-5.json"), "CC534")],
)
def test_lint_of_a_log_says_what_it_says_of_two_requests(
    run_case: Run, case: str, files: tuple[str, ...], code: str
) -> None:
    of_files, of_log = lint_of(run_case, case, *files), lint_of(run_case, case, "log.jsonl")
    assert of_files == of_log
    assert [one[0] for one in of_log] == [code]


def test_citations_switched_on(run_case: Run) -> None:
    """$0.1095; $0.0746 with citations from the start, $0.0743 without: by an independent simulator."""
    found = explain(run_case, CITATIONS, *BYTES)
    (finding,) = found["findings"]
    assert round(Decimal(found["without_usd"]), 4) == Decimal("0.0743")
    assert (finding["code"], finding["call"]) == ("CC110", 7)
    assert finding["message"] == "citations switched on"
    assert finding["fix"] == (
        "enable citations in no call, or enable citations on all documents from the first call on ($0.0349)"
    )
    assert "would have saved nothing" not in run_case(CITATIONS, "explain", "log.jsonl", *BYTES).stdout


def test_one_model_with_and_without_the_difference_in_price(run_case: Run) -> None:
    """$0.0445 instead of $0.0877 on one model; what `whatif` says of the cheaper model is in the words of explain."""
    found = explain(run_case, MODEL, *BYTES)
    assert round(Decimal(found["avoidable_usd"]), 4) == Decimal("0.0385")
    words = "stay on claude-opus-5-5 for the whole conversation, or start a side conversation for the other model"
    assert {one["fix"] for one in found["findings"]} == {f"{words}; $0.0433 with the difference in price"}
    priced = json_of(run_case(MODEL, "whatif", "log.jsonl", *BYTES, "--json"))
    one_model = next(one for one in priced["alternatives"] if one["name"] == "model=claude-opus-5-5")
    assert round(Decimal(found["cost_usd"]) - Decimal(one_model["cost_usd"]), 4) == Decimal("0.0433")


def test_the_bound_is_that_of_the_requests_that_the_fix_sends(run_case: Run) -> None:
    found = explain(run_case, SEARCH)
    bound, avoidable = Decimal(found["lower_bound_usd"]), Decimal(found["avoidable_usd"])
    assert Decimal("0.0120") < avoidable < Decimal("0.0130")
    assert avoidable <= Decimal(found["billed_usd"]) - bound
    assert found["findings"][0]["message"] == "web search or web fetch switched on"
    assert "with these fixes no plan is below $0.0733" in run_case(SEARCH, "explain", "log.jsonl").stdout
