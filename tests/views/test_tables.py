"""What machines read: the documented keys, exact dollars, whole sums."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from io import StringIO

from fake_results import comparison, ledger, result, row, small, ten_arms, wholly_refused

from cachecost.ledger.results import Ledger
from cachecost.providers.usage import Usage
from cachecost.views.replay.call_rows import CSV_FIELDS
from cachecost.views.run.report import calls_csv, run_json, run_object

DOCUMENTED = ["name", "calls", "errors", "usage", "cost_usd", "cost_by_class_usd", "cost_by_layer_usd"]


def test_run_json_has_the_documented_keys() -> None:
    found = json.loads(run_json(ten_arms()))
    assert (found["format"], found["scenario"], found["best"]) == (1, "answer-inquiry", "progressive")
    assert len(found["strategies"]) == 11
    for strategy in found["strategies"]:
        assert list(strategy)[: len(DOCUMENTED)] == DOCUMENTED
        assert list(strategy["usage"]) == list(Usage().wire())
        assert list(strategy["cost_by_class_usd"]) == ["read", "write_5m", "write_1h", "input", "output", "fees"]
        assert list(strategy["cost_by_layer_usd"]) == ["tools", "system", "messages"]


def test_sums_are_exact() -> None:
    shown = ten_arms()
    for strategy, of in zip(run_object(shown)["strategies"], shown.main.ledgers, strict=True):
        assert Decimal(strategy["cost_usd"]) == of.cost.total
        assert sum(map(Decimal, strategy["cost_by_class_usd"].values())) == of.cost.total
        assert strategy["usage"] == of.usage.wire()
        assert (strategy["calls"], strategy["errors"]) == (len(of.rows), of.errors)


def test_refusals_and_variants_stand_beside() -> None:
    found = run_object(ten_arms())
    reason = "Thinking may not be enabled when tool_choice forces tool use."
    assert found["strategies"][-1]["refusals"] == [{"type": "invalid_request_error", "message": reason, "calls": 60}]
    assert [variant["variant"] for variant in found["variants"]] == [
        "rules and prices of 2026-11-20",
        "any change of tool_choice",
    ]
    assert found["variants"][1]["rules"] == {"tool_choice_invalidation": "any_change"}
    assert found["variants"][1]["best"] == "structured output, no tools"
    assert found["published_figures"][1]["exact_usd"] == "1.63875"


def test_best_is_null_where_no_strategy_ran_whole() -> None:
    assert run_object(result(comparison([wholly_refused("a", "no")])))["best"] is None
    assert run_object(result(comparison([])))["best"] is None


def test_small_amounts_have_no_exponent() -> None:
    tiny = result(comparison([Ledger("a", [row("a", 1, Usage(read=1))])]))
    strategy = run_object(tiny)["strategies"][0]
    assert (strategy["cost_usd"], strategy["cost_by_class_usd"]["read"]) == ("0.0000005", "0.0000005")
    assert "E-" not in calls_csv(tiny)


def test_csv_has_a_row_for_each_call_of_each_strategy_in_order() -> None:
    shown = ten_arms()
    rows = list(csv.DictReader(StringIO(calls_csv(shown))))
    expected = [(of.strategy, str(call.call)) for of in shown.main.ledgers for call in of.rows]
    assert [(each["strategy"], each["call"]) for each in rows] == expected
    assert tuple(rows[0]) == tuple(CSV_FIELDS)


def test_csv_adds_up_to_the_cost_of_each_strategy() -> None:
    shown = small()
    rows = list(csv.DictReader(StringIO(calls_csv(shown))))
    for of in shown.main.ledgers:
        mine = [each for each in rows if each["strategy"] == of.strategy]
        assert sum(Decimal(each["cost_usd"]) for each in mine) == of.cost.total
        assert sum(int(each["write_1h"]) for each in mine) == of.usage.write_1h
        assert sum(Decimal(each[f"{layer}_usd"]) for each in mine for layer in of.cost_by_layer) == (
            of.cost.total - of.cost.output
        )


def test_csv_says_unknown_by_nothing_and_quotes_what_needs_it() -> None:
    lines = calls_csv(ten_arms()).split("\n")
    assert lines[1].startswith("progressive,1,2026-03-06T21:00:20+00:00,claude-opus-4-6,main,1,,0,27450,0,3,127,")
    assert lines[1].endswith(",0.1747525,cold_start,")
    assert '"structured output, no tools",1,' in lines[61]
    assert lines[-2].endswith(",0,,Thinking may not be enabled when tool_choice forces tool use.")
    assert lines[-1] == ""
    assert "\r" not in calls_csv(ten_arms())


def test_a_call_without_a_time_has_the_one_it_was_given() -> None:
    untimed = row("a", 1, Usage(), timestamp=None, start=1_772_800_000.5)
    text = calls_csv(result(comparison([Ledger("a", [untimed])])))
    assert text.split("\n")[1].startswith("a,1,2026-03-06T12:26:40.500000+00:00,")


def test_no_strategy_is_a_head_alone() -> None:
    assert calls_csv(result(comparison([]))) == ",".join(CSV_FIELDS) + "\n"


def test_json_keeps_letters_and_ends_in_a_newline() -> None:
    text = run_json(result(comparison([ledger("naïve → 5m")])))
    assert '"naïve → 5m"' in text
    assert text.endswith("\n}\n")
