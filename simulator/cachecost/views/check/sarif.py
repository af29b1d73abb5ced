"""A check as SARIF 2.1.0, from its JSON: what broke, at the line of the scenario where its limit is written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from cachecost.account.causes import CauseDefinition, coded_causes
from cachecost.base.formatting import capitalized, inert
from cachecost.base.version import __version__
from cachecost.views.check.change_words import (
    cost_words,
    excerpt_lines,
    has_failed,
    placed_changes,
    prompt_change_words,
)
from cachecost.views.check.text import change_words

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
LEVELS = {"fail": "error", "not_comparable": "warning"}
BUDGETS = {
    "max_cost_usd": "all calls together cost more than they may",
    "max_cost_per_call_usd": "a call costs more than it may, on average",
    "max_cost_per_turn_usd": "a human turn costs more than it may, on average",
    "max_cost_per_inquiry_usd": "a question costs more than it may, on average",
    "min_cache_hit_rate": "too little of the input is read from the cache",
    "max_regression": "the cost has grown more than it may since the baseline",
    "max_breakpoints": "a call sends more cache breakpoints than it may",
    "min_lookback_margin": "too few lookback positions are left behind what is read",
    "no_write_never_read": "something is written to the cache that no later call reads",
    "prefix_stable": "a layer of the prompt changes within a conversation",
}
PROMPT_CHANGE = "prompt_change"
OTHERS = {
    "deterministic": "two runs of the same command send different requests",
    "fail_under": "the cache hit rate is below that of --fail-under",
    PROMPT_CHANGE: "what is sent changed since the accepted recording, and costs something else",
}
ACCEPT = "Undo what made it so, or accept it: `cachecost check --update`, and for a limit, its line in the scenario."
CheckObject = Mapping[str, Any]


def render(check: CheckObject) -> str:
    """The text of the SARIF file."""
    results = [result for budget in check["budgets"] for result in _results(budget)]
    results += [_change_result(check, one, change) for one, change in placed_changes(check)]
    used = dict.fromkeys(result["ruleId"] for result in results)
    driver = {"name": "cachecost", "version": __version__, "rules": _rules(used)}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rules(names: Iterable[str]) -> list[dict[str, Any]]:
    """What each rule means and what to do: GitHub's code scanning requires all three texts."""
    by_code = {code.code: code for code in coded_causes().values()}
    return [_rule(name, by_code.get(name)) for name in names]


def _rule(name: str, code: CauseDefinition | None) -> dict[str, Any]:
    if code is not None:
        return _described(name, code.what, f"{code.what} {code.why}", f"{capitalized(code.fix)}.")
    meaning = {**BUDGETS, **OTHERS}.get(name, name)
    return _described(name, meaning, f"{capitalized(meaning)}.", ACCEPT)


def _described(name: str, short: str, full: str, help_text: str) -> dict[str, Any]:
    texts = {"shortDescription": short, "fullDescription": full, "help": help_text}
    return {"id": name, **{key: {"text": text} for key, text in texts.items()}}


def _results(budget: CheckObject) -> Iterator[dict[str, Any]]:
    if budget["verdict"] in LEVELS:
        level, where = LEVELS[budget["verdict"]], _locations(budget)
        yield _result(budget["budget"], level, f"{budget['scenario']}: {budget['message']}", where)
        for change in budget["changes"]:
            if change["code"]:
                yield _result(change["code"], level, f"{budget['scenario']}: {change_words(change)}", where)


def _change_result(check: CheckObject, comparison: CheckObject, change: CheckObject) -> dict[str, Any]:
    level = LEVELS["fail"] if has_failed(check, comparison) else "note"
    words = [f"{cost_words(change)} a session: {prompt_change_words(change)}", *excerpt_lines(change)]
    return _result(PROMPT_CHANGE, level, f"{comparison['scenario']}: {'; '.join(words)}", _locations(change))


def _result(rule: str, level: str, text: str, where: list[dict[str, Any]]) -> dict[str, Any]:
    return {"ruleId": rule, "level": level, "message": {"text": inert(text)}, "locations": where}


def _locations(budget: CheckObject) -> list[dict[str, Any]]:
    if not budget["file"]:
        return []
    path = PurePath(budget["file"].encode("utf-8", "replace").decode())
    place: dict[str, Any] = {
        "artifactLocation": {"uri": (path.as_uri() if path.is_absolute() else quote(path.as_posix()))}
    }
    if budget["line"]:
        place["region"] = {"startLine": budget["line"], "startColumn": budget["column"] or 1}
    return [{"physicalLocation": place}]
