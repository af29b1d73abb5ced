"""A check as annotations of a GitHub workflow, from its JSON: a line a budget that does not hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cachecost.base.formatting import inert_text
from cachecost.views.check.text import (
    CheckObject,
    change_sentence,
    change_words,
    excerpt_lines,
    has_failed,
    placed_changes,
    ranked_budgets,
    with_changes_once,
)

COMMANDS = {"fail": "error", "not_comparable": "warning"}
IN_MESSAGES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
IN_PROPERTIES = {**IN_MESSAGES, ":": "%3A", ",": "%2C"}


def annotation_lines(check: CheckObject) -> list[str]:
    """`::error file=…,line=…,title=…::…`, what broke first, then the changes whose source lines are known."""
    lines = []
    for one in with_changes_once(ranked_budgets(check)):
        words = [one["message"], *map(change_words, one["changes"])]
        lines.append(_annotation(COMMANDS[one["verdict"]], one, f"cachecost {one['budget']}", one["scenario"], words))
    for comparison, change in placed_changes(check):
        command = COMMANDS["fail"] if has_failed(check, comparison) else "notice"
        words = [change_sentence(change), *excerpt_lines(change)]
        lines.append(_annotation(command, change, "cachecost prompt change", comparison["scenario"], words))
    return lines


def _annotation(command: str, place: CheckObject, title: str, scenario: str, words: Sequence[str]) -> str:
    properties = {"file": place["file"], "line": place["line"], "col": place["column"], "title": title}
    attributes = ",".join(f"{name}={_escape(str(value), IN_PROPERTIES)}" for name, value in properties.items() if value)
    text = "\n".join(words)
    return f"::{command} {attributes}::{_escape(f'{scenario}: {text}', IN_MESSAGES)}"


def _escape(text: str, table: Mapping[str, str]) -> str:
    return "".join(table.get(letter, letter) for letter in inert_text(text))
