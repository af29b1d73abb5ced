"""Every rendering of a check says what its JSON says, in its own format's signs."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from cachecost.account.causes import causes
from cachecost.views.check.github import annotation_lines
from cachecost.views.check.junit import render as junit
from cachecost.views.check.markdown import MARKER
from cachecost.views.check.markdown import render as markdown
from cachecost.views.check.sarif import render as sarif
from cachecost.views.check.text import text_lines

Told = dict[str, Any]


def budget(verdict: str, message: str = "costs $26.03.", **more: Any) -> Told:
    place = {"file": "scenarios/mine.yaml", "line": 12, "column": 5}
    row = {"scenario": "mine", "strategy": "progressive", "budget": "max_regression", "limit": "0.05", "actual": None}
    return {**row, "verdict": verdict, "message": f"progressive {message}", **place, "changes": [], **more}


def change(what: str = "tool x changed", calls: int = 1, **more: Any) -> Told:
    place = {"call": 18, "last": 18, "calls": calls, "cost_usd": "1.74", "what": what, "effect": "tools written again"}
    place |= {"file": None, "line": None, "column": None}
    return {**place, "code": "CC105", "layer": "tools", "block": "tools.0", **more}


def find_session(strategy: Told) -> Told:
    """The session of a strategy: one, of which nothing else is known."""
    names = ("hit_rate", "baseline_hit_rate", "usd_per_day", "usd_per_month", "volume")
    known = {name: strategy[name] for name in ("scenario", "strategy", "cost_usd", "baseline_usd")}
    tokens = {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 9}
    return {**known, **tokens, **dict.fromkeys((*names, "baseline_usd_per_day", "baseline_usd_per_month"))}


def check_object(*budgets: Told, accept: tuple[str, ...] = (), strategies: tuple[Told, ...] = ()) -> Told:
    states = [one["verdict"] for one in budgets]
    worst = next((state for state in ("fail", "not_comparable") if state in states), "pass")
    return {
        "format": 1,
        "verdict": worst,
        "budgets": list(budgets),
        "strategies": list(strategies),
        "accept": list(accept),
        "sessions": list(map(find_session, strategies)),
        "prompt_changes": [],
    }


REST = change("", 3, cost_usd="0.18", effect="", code=None)


def test_what_broke_is_told_first_and_how_to_accept_it_last() -> None:
    broken = budget("fail", changes=[change(), REST])
    other = budget("fail", "makes no sense.", budget="max_cost_usd", changes=[change(), REST])
    lines = text_lines(
        check_object(budget("pass"), budget("not_comparable"), broken, other, accept=("cachecost check --update x",))
    )
    assert lines == [
        "✗ mine: progressive costs $26.03.",
        "  since call 18: tool x changed → tools written again: $1.74 [CC105]",
        "  and 3 more calls: $0.18",
        "✗ mine: progressive makes no sense.",
        "? mine: progressive costs $26.03.",
        "✓ mine: progressive costs $26.03.",
        "  accept it with: cachecost check --update x",
    ]


def test_limits_that_hold_are_counted_not_listed() -> None:
    assert text_lines(check_object(budget("pass"), budget("pass"), budget("pass", scenario="other"))) == [
        "✓ mine: 2 limits hold.",
        "✓ other: progressive costs $26.03.",
    ]
    assert text_lines(check_object()) == ["No budget is set, so nothing was checked."]


CHANGES = [
    (change(), "since call 18: tool x changed → tools written again: $1.74 [CC105]"),
    (change(last=20, code=None), "since one of calls 18 to 20: tool x changed → tools written again: $1.74"),
    (change(calls=1_200, effect=""), "since call 18: tool x changed in 1,200 calls: $1.74 [CC105]"),
    (change(cost_usd="-0.5", code=None, effect=""), "since call 18: tool x changed: −$0.50"),
    (change("", cost_usd="0.18"), "and 1 more call: $0.18"),
]


@pytest.mark.parametrize(("row", "words"), CHANGES)
def test_a_change_in_words(row: Told, words: str) -> None:
    assert text_lines(check_object(budget("fail", changes=[row])))[1] == f"  {words}"


def test_annotations_escape_what_github_reads() -> None:
    row = budget("fail", "costs 5%.\nmore", file="a,b:c%.yaml", changes=[change()])
    assert annotation_lines(check_object(row, budget("pass"))) == [
        "::error file=a%2Cb%3Ac%25.yaml,line=12,col=5,title=cachecost max_regression::"
        "mine: progressive costs 5%25.%0Amore%0Asince call 18: tool x changed → tools written again: $1.74 [CC105]"
    ]
    (warning,) = annotation_lines(check_object(budget("not_comparable", file=None, line=None, column=None)))
    assert warning == "::warning title=cachecost max_regression::mine: progressive costs $26.03."


def test_junit_counts_and_survives_any_character() -> None:
    strange = budget("fail", "costs <5> & \x00\x1b[1m\ud800 “ü”.", strategy='a "b" <c>')
    text = junit(check_object(strange, budget("not_comparable"), budget("pass", scenario="other")))
    root = ET.fromstring(text.encode("utf-8"))
    assert root.tag == "testsuites"
    assert {name: root.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
    }
    suites = {suite.get("name"): [case.get("name") for case in suite] for suite in root}
    assert suites == {
        "mine": ['a "b" <c>: max_regression', "progressive: max_regression"],
        "other": ["progressive: max_regression"],
    }
    (failure,) = root.iter("failure")
    assert failure.get("message") == "progressive costs <5> & ��[1m� “ü”."
    case = next(root.iter("testcase"))
    assert (case.get("classname"), case.get("file"), case.get("line")) == (
        "cachecost.mine",
        "scenarios/mine.yaml",
        "12",
    )


def test_sarif_points_at_the_limit_and_names_the_codes() -> None:
    text = sarif(check_object(budget("fail", changes=[change(), REST]), budget("pass")))
    log = json.loads(text)
    (run,) = log["runs"]
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-schema-2.1.0.json")
    rules = {rule["id"]: rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"]}
    assert rules == {
        "max_regression": "the cost has grown more than it may since the baseline",
        "CC105": causes()["tools_changed"].what,
    }
    assert all(rule["fullDescription"]["text"] and rule["help"]["text"] for rule in run["tool"]["driver"]["rules"])
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("max_regression", "error"),
        ("CC105", "error"),
    ]
    for result in run["results"]:
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "scenarios/mine.yaml"
        assert place["region"] == {"startLine": 12, "startColumn": 5}
        assert result["message"]["text"]


URIS = [("scenarios/a b.yaml", "scenarios/a%20b.yaml"), ("/srv/a b.yaml", "file:///srv/a%20b.yaml")]


@pytest.mark.parametrize(("file", "uri"), URIS)
def test_sarif_files_are_uris(file: str, uri: str) -> None:
    (result,) = json.loads(sarif(check_object(budget("not_comparable", file=file))))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    assert result["level"] == "warning"


def test_every_budget_has_a_meaning_in_sarif() -> None:
    from cachecost.scenario.models import Budget
    from cachecost.views.check.sarif import BUDGETS

    assert set(BUDGETS) == set(Budget.model_fields) - {"strategy"}


def strategy(before: str | None, now: str = "26.03") -> Told:
    return {
        "scenario": "mine",
        "strategy": "a | b",
        "calls": 3,
        "errors": 0,
        "cost_usd": now,
        "baseline_usd": before,
        "error_margin": 0.0,
    }


NO_NEWS = [
    check_object(budget("pass")),
    check_object(budget("pass"), strategies=(strategy("26.03"),)),
    check_object(budget("pass"), strategies=(strategy(None),)),
    check_object(),
]


@pytest.mark.parametrize("nothing", NO_NEWS)
def test_no_comment_without_news(nothing: Told) -> None:
    assert markdown(nothing) == ""


def test_a_comment_is_found_again_and_escapes_names() -> None:
    row = budget("fail", "costs <b>$5</b> | more.", changes=[change("`x` changed")])
    lines = markdown(
        check_object(row, strategies=(strategy("24.10"),), accept=("cachecost check --update x",))
    ).splitlines()
    assert lines[0] == MARKER == "<!-- cachecost -->"
    assert lines[1] == "### ✗ cachecost: $24.10 → $26.03 a session"
    assert lines[3] == r"mine, a \| b. 1 budget broken."
    assert lines[5] == r"- ✗ **mine**: progressive costs \<b>\$5\</b> \| more."
    assert lines[6].startswith(r"  - since call 18: \`x\` changed → tools written again")
    assert "cachecost check --update x" in lines
    assert r"| mine | a \| b | $24.10 | $26.03 | +8% | – |" in lines
