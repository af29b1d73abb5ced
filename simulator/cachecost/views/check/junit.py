"""A check as JUnit XML, from its JSON: a suite a scenario, a test case a budget of a strategy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from cachecost.base.formatting import inert_text
from cachecost.views.check.text import CheckObject, change_lines, change_words, excerpt_lines, shown_comparisons

NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML file can hold, however they are written."""
ELEMENTS = {"fail": "failure", "not_comparable": "error"}


def render(check: CheckObject) -> str:
    suites = Element("testsuites", {"name": "cachecost", **_counts(check["budgets"])})
    prompt_lines: dict[str, list[str]] = {}
    for one in shown_comparisons(check):
        lines = prompt_lines[one["scenario"]] = ["what changed in the prompts:"]
        for change, line in change_lines(one):
            lines += [line, *(f"  {text}" for text in excerpt_lines(change))]
    by_scenario: dict[str, list[CheckObject]] = {}
    for budget in check["budgets"]:
        by_scenario.setdefault(budget["scenario"], []).append(budget)
    for scenario, budgets in by_scenario.items():
        suite = SubElement(suites, "testsuite", {"name": _clean(scenario), **_counts(budgets)})
        for budget in budgets:
            name = _clean(f"{budget['strategy']}: {budget['budget']}")
            case = SubElement(suite, "testcase", {"classname": _clean(f"cachecost.{scenario}"), "name": name})
            if budget["file"]:
                case.set("file", _clean(budget["file"]))
            if budget["line"]:
                case.set("line", str(budget["line"]))
            if budget["verdict"] in ELEMENTS:
                attributes = {"message": _clean(budget["message"]), "type": budget["budget"]}
                words = [budget["message"], *map(change_words, budget["changes"]), *prompt_lines.get(scenario, [])]
                SubElement(case, ELEMENTS[budget["verdict"]], attributes).text = _clean("\n".join(words))
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _counts(budgets: Sequence[CheckObject]) -> dict[str, str]:
    states = [budget["verdict"] for budget in budgets]
    counts = {"failures": states.count("fail"), "errors": states.count("not_comparable")}
    return {"tests": str(len(states)), **{name: str(number) for name, number in counts.items()}}


def _clean(text: str) -> str:
    return inert_text(NOT_XML.sub("\ufffd", text))
