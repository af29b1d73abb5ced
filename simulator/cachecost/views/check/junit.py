"""A check as JUnit XML, from its JSON: a suite a scenario, a test case a budget of a strategy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from cachecost.base.inert import inert_text
from cachecost.views.check.text import change_words

NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML file can hold, however they are written."""
ELEMENTS = {"fail": "failure", "not_comparable": "error"}
Told = Mapping[str, Any]


def junit(told: Told) -> str:
    """The file's text."""
    suites = Element("testsuites", {"name": "cachecost", **_counts(told["budgets"])})
    by_scenario: dict[str, list[Told]] = {}
    for one in told["budgets"]:
        by_scenario.setdefault(one["scenario"], []).append(one)
    for scenario, budgets in by_scenario.items():
        suite = SubElement(suites, "testsuite", {"name": _clean(scenario), **_counts(budgets)})
        for one in budgets:
            _case(suite, one)
    indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(suites, encoding="unicode") + "\n"


def _counts(budgets: Sequence[Told]) -> dict[str, str]:
    states = [one["verdict"] for one in budgets]
    counts = {"failures": states.count("fail"), "errors": states.count("not_comparable")}
    return {"tests": str(len(states)), **{name: str(number) for name, number in counts.items()}}


def _case(suite: Element, one: Told) -> None:
    name = _clean(f"{one['strategy']}: {one['budget']}")
    case = SubElement(suite, "testcase", {"classname": _clean(f"cachecost.{one['scenario']}"), "name": name})
    if one["file"]:
        case.set("file", _clean(one["file"]))
    if one["line"]:
        case.set("line", str(one["line"]))
    if one["verdict"] in ELEMENTS:
        told = {"message": _clean(one["message"]), "type": one["budget"]}
        found = SubElement(case, ELEMENTS[one["verdict"]], told)
        found.text = _clean("\n".join([one["message"], *map(change_words, one["changes"])]))


def _clean(text: str) -> str:
    return inert_text(NOT_XML.sub("\ufffd", text))
