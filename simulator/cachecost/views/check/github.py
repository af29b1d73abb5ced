"""A check as annotations of a GitHub workflow, from its JSON: a line a budget that does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.base.inert import inert_text
from cachecost.views.check.text import change_words, ranked_budgets, with_changes_once

COMMANDS = {"fail": "error", "not_comparable": "warning"}
IN_MESSAGES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
IN_PROPERTIES = {**IN_MESSAGES, ":": "%3A", ",": "%2C"}
CheckObject = Mapping[str, Any]


def annotation_lines(check: CheckObject) -> list[str]:
    """`::error file=…,line=…,title=…::…`, what broke first."""
    return [_annotation(budget) for budget in with_changes_once(ranked_budgets(check))]


def _annotation(budget: CheckObject) -> str:
    properties = {"file": budget["file"], "line": budget["line"], "col": budget["column"]}
    properties["title"] = f"cachecost {budget['budget']}"
    attributes = ",".join(f"{name}={_escape(str(value), IN_PROPERTIES)}" for name, value in properties.items() if value)
    lines = [f"{budget['scenario']}: {budget['message']}", *map(change_words, budget["changes"])]
    return f"::{COMMANDS[budget['verdict']]} {attributes}::{_escape(chr(10).join(lines), IN_MESSAGES)}"


def _escape(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(letter, letter) for letter in inert_text(text))
