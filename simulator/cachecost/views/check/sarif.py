"""A check as SARIF 2.1.0, from its JSON: what broke, at the line of the scenario where its limit is written."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from cachecost.account.causes import coded_causes
from cachecost.base.formatting import capitalized, inert
from cachecost.base.version import __version__
from cachecost.views.check.text import (
    CheckObject,
    change_sentence,
    change_words,
    excerpt_lines,
    has_failed,
    placed_changes,
)

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


def render(check: CheckObject) -> str:
    results = []
    for budget in check["budgets"]:
        if level := LEVELS.get(budget["verdict"]):
            found = [(budget["budget"], budget["message"])]
            found += [(change["code"], change_words(change)) for change in budget["changes"] if change["code"]]
            results += [_result(rule, level, budget["scenario"], text, budget) for rule, text in found]
    for comparison, change in placed_changes(check):
        level = LEVELS["fail"] if has_failed(check, comparison) else "note"
        words = "; ".join([change_sentence(change), *excerpt_lines(change)])
        results.append(_result(PROMPT_CHANGE, level, comparison["scenario"], words, change))
    by_code = {code.code: code for code in coded_causes().values()}
    used = dict.fromkeys(result["ruleId"] for result in results)
    rules = []
    for name in used:  # GitHub's code scanning requires all three texts: what a rule means, and what to do
        short, help_text = {**BUDGETS, **OTHERS}.get(name, name), ACCEPT
        full = f"{capitalized(short)}."
        if code := by_code.get(name):
            short, full, help_text = code.what, f"{code.what} {code.why}", f"{capitalized(code.fix)}."
        texts = {"shortDescription": short, "fullDescription": full, "help": help_text}
        rules.append({"id": name, **{key: {"text": text} for key, text in texts.items()}})
    driver = {"name": "cachecost", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _result(rule: str, level: str, scenario: str, text: str, place: CheckObject) -> dict[str, Any]:
    locations = []
    if place["file"]:
        path = PurePath(place["file"].encode("utf-8", "replace").decode())
        uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
        location: dict[str, Any] = {"artifactLocation": {"uri": uri}}
        if place["line"]:
            location["region"] = {"startLine": place["line"], "startColumn": place["column"] or 1}
        locations.append({"physicalLocation": location})
    message = {"text": inert(f"{scenario}: {text}")}
    return {"ruleId": rule, "level": level, "message": message, "locations": locations}
