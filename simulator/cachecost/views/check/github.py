"""A check as annotations of a GitHub workflow, from its JSON: a line a budget that does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.base.inert import inert_text
from cachecost.views.check.text import change_words, ranked_budgets, with_changes_once

COMMANDS = {"fail": "error", "not_comparable": "warning"}
IN_MESSAGES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
IN_PROPERTIES = {**IN_MESSAGES, ":": "%3A", ",": "%2C"}
Told = Mapping[str, Any]


def annotation_lines(told: Told) -> list[str]:
    """`::error file=…,line=…,title=…::…`, what broke first."""
    return [_annotation(one) for one in with_changes_once(ranked_budgets(told))]


def _annotation(one: Told) -> str:
    properties = {"file": one["file"], "line": one["line"], "col": one["column"]}
    properties["title"] = f"cachecost {one['budget']}"
    told = ",".join(f"{name}={_escaped(str(value), IN_PROPERTIES)}" for name, value in properties.items() if value)
    lines = [f"{one['scenario']}: {one['message']}", *map(change_words, one["changes"])]
    return f"::{COMMANDS[one['verdict']]} {told}::{_escaped(chr(10).join(lines), IN_MESSAGES)}"


def _escaped(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(letter, letter) for letter in inert_text(text))
