"""A check as annotations of a GitHub workflow, from its JSON: a line a budget that does not hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.base.formatting import inert_text
from cachecost.views.check.change_words import (
    cost_words,
    excerpt_lines,
    has_failed,
    placed_changes,
    prompt_change_words,
)
from cachecost.views.check.text import change_words, ranked_budgets, with_changes_once

COMMANDS = {"fail": "error", "not_comparable": "warning"}
NOTICE = "notice"
PROMPT_TITLE = "cachecost prompt change"
IN_MESSAGES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
IN_PROPERTIES = {**IN_MESSAGES, ":": "%3A", ",": "%2C"}
CheckObject = Mapping[str, Any]


def annotation_lines(check: CheckObject) -> list[str]:
    """`::error file=…,line=…,title=…::…`, what broke first, then the changes whose source lines are known."""
    budgets = [_annotation(budget) for budget in with_changes_once(ranked_budgets(check))]
    return [*budgets, *(_change_annotation(check, one, change) for one, change in placed_changes(check))]


def _change_annotation(check: CheckObject, comparison: CheckObject, change: CheckObject) -> str:
    command = COMMANDS["fail"] if has_failed(check, comparison) else NOTICE
    text = "\n".join([f"{cost_words(change)} a session: {prompt_change_words(change)}", *excerpt_lines(change)])
    place = {"file": change["file"], "line": change["line"], "col": change["column"]}
    return _line(command, {**place, "title": PROMPT_TITLE}, f"{comparison['scenario']}: {text}")


def _annotation(budget: CheckObject) -> str:
    properties = {"file": budget["file"], "line": budget["line"], "col": budget["column"]}
    properties["title"] = f"cachecost {budget['budget']}"
    lines = [f"{budget['scenario']}: {budget['message']}", *map(change_words, budget["changes"])]
    return _line(COMMANDS[budget["verdict"]], properties, "\n".join(lines))


def _line(command: str, properties: Mapping[str, Any], text: str) -> str:
    attributes = ",".join(f"{name}={_escape(str(value), IN_PROPERTIES)}" for name, value in properties.items() if value)
    return f"::{command} {attributes}::{_escape(text, IN_MESSAGES)}"


def _escape(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(letter, letter) for letter in inert_text(text))
