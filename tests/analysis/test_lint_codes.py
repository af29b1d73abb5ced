"""The codes of lint and those of explain: the same mistake, in a request and in a log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lint_bodies import ANSWER, NEXT, QUESTION, SYSTEM, TOOLS

import cachecost
from bodies import Body, assistant, body, breakpoint_last, marked, text, tool, user
from cachecost.account.causes import coded_causes as explain_codes
from cachecost.analysis.lint import codes

CAUSES = {
    "below_minimum": "CC510 CC511",
    "no_breakpoint": "CC520 CC521 CC522",
    "lookback_exceeded": "CC523 CC524",
    "tools_changed": "CC530 CC531 CC532 CC533 CC534 CC535 CC536 CC537",
    "system_changed": "CC530 CC531 CC532 CC533 CC534 CC537 CC543 CC544 CC546 CC547",
    "content_changed": "CC530 CC531 CC532 CC533 CC534 CC537",
    "model_changed": "CC541",
    "speed_changed": "CC542",
    "output_format_changed": "CC545",
    "tool_choice_changed": "CC548",
    "thinking_changed": "CC549",
    "effort_changed": "CC550",
    "images_changed": "CC551",
}
"""What lint finds, by the cause that it has in a log; where there are several, the layer decides."""


def test_each_code_of_explain_that_lint_names_exists_and_has_its_cause() -> None:
    known = {row.code: row.cause for row in explain_codes().values()}
    named: dict[str, list[str]] = {}
    for code, row in codes().items():
        for one in row.explain_codes:
            named.setdefault(known[one], []).append(code)
    assert {cause: " ".join(found) for cause, found in named.items()} == CAUSES


def test_what_the_api_refuses_and_what_costs_nothing_has_no_price() -> None:
    without = {code for code, row in codes().items() if not row.explain_codes}
    refused = {code for code, row in codes().items() if row.severity == "error"}
    assert without == refused | {"CC508", "CC512", "CC513"}


def test_content_is_priced_by_its_layer() -> None:
    paths = ("tools.0.description", "system.1", "messages.3.content.0", "cache_control")
    assert [codes()["CC530"].explained_at(path) for path in paths] == ["CC105", "CC110", "CC120", "CC120"]
    assert [codes()["CC541"].explained_at(path) for path in ("model", "tools")] == ["CC101", "CC101"]


CLOCK = "You help.\nCurrent time: 2026-03-06T21:2{}:07Z. "
TURNS = ((), (ANSWER, NEXT), (ANSWER, NEXT, assistant(text(300, "second")), user(text(300, "third"))))
WIDE = user(*(text(60, f"part {number} ") for number in range(25)))
BIG: dict[str, Any] = {"model": "claude-opus-4-6", "tools": [tool(6000, "a"), marked(tool(6000, "b"))]}
TURNED = [dict(reversed(list(TOOLS[0].items()))), TOOLS[1]]


def sent(*more: Body, **fields: Any) -> Body:
    return breakpoint_last(body(QUESTION, *more, **{"tools": TOOLS, "system": SYSTEM, **fields}))


def changed(before: dict[str, Any] | None = None, **fields: Any) -> list[Body]:
    """Three turns; from the second on `fields` are different."""
    start = before or {}
    return [sent(**start), *(sent(*more, **{**start, **fields}) for more in TURNS[1:])]


def clock(minute: int) -> list[Body]:
    return [marked({"type": "text", "text": CLOCK.format(minute) + "x" * 1100})]


LOGS: dict[str, list[Body]] = {
    "CC510": [breakpoint_last(body(user(text(300, "q")), *more)) for more in ((), (ANSWER,), (ANSWER, NEXT))],
    "CC520": [body(QUESTION, *more, tools=[tool(1200, "a")], system=[text(1100)]) for more in TURNS],
    "CC521": [body(QUESTION, *more, tools=TOOLS, system=SYSTEM) for more in TURNS],
    "CC522": [
        body(QUESTION, *more, tools=[marked(tool(1200, "a")), TOOLS[1]], system=[*SYSTEM, marked(text(90))])
        for more in TURNS
    ],
    "CC524": [sent(), sent(ANSWER, WIDE)],
    "CC530": [sent(*more, system=clock(minute)) for minute, more in enumerate(TURNS)],
    "CC534": changed(tools=TURNED),
    "CC535": changed(tools=TOOLS[::-1]),
    "CC536": changed(tools=[*TOOLS, tool(90, "c")]),
    "CC541": changed(model="claude-sonnet-4-6"),
    "CC542": changed(BIG, speed="fast"),
    "CC543": changed(tools=[*TOOLS, {"type": "web_search_20250305", "name": "web_search"}]),
    "CC545": changed(output_config={"format": {"type": "json_schema", "schema": {"type": "object"}}}),
    "CC546": changed(container={"skills": [{"type": "anthropic", "skill_id": "pptx", "version": "1"}]}),
    "CC548": changed(tool_choice={"type": "any"}),
    "CC549": changed(BIG, thinking={"type": "enabled", "budget_tokens": 4096}),
    "CC550": changed(BIG, output_config={"effort": "low"}),
}
"""A log for each code that a log can show by itself; the others of its kind are priced as it is."""


def write_log(path: Path, requests: list[Body], bills: list[Body] | None = None) -> Path:
    """A log of requests a minute apart, with their bills if there are any."""
    rows = [{"timestamp": f"2026-10-06T21:0{minute}:07Z", "request": one} for minute, one in enumerate(requests)]
    for row, bill in zip(rows, bills or (), strict=bool(bills)):
        row["usage"] = bill
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("code", LOGS)
def test_a_bill_as_simulated_confirms_what_was_found_without_it(tmp_path: Path, code: str) -> None:
    path = write_log(tmp_path / "log.jsonl", LOGS[code])
    found = cachecost.lint(path, tokens="bytes")
    bills = [row.usage.wire() for row in cachecost.replay(path, tokens="bytes").rows]
    confirmed = cachecost.lint(write_log(path, LOGS[code], bills), tokens="bytes")
    assert [(one.code, one.path, one.calls) for one in confirmed] == [(one.code, one.path, one.calls) for one in found]
    assert [one.tokens for one in confirmed if one.code != "CC510"] == [
        one.tokens for one in found if one.code != "CC510"
    ]
    assert {one.bill for one in confirmed if not one.is_note} == {"confirmed"}


@pytest.mark.parametrize("code", LOGS)
def test_explain_prices_in_a_log_what_lint_finds_in_it(tmp_path: Path, code: str) -> None:
    path = write_log(tmp_path / "log.jsonl", LOGS[code])
    (found,) = [one for one in cachecost.lint(path, tokens="bytes") if not one.is_note]
    assert found.code == code
    explained = cachecost.explain(path, tokens="bytes")
    assert found.explains_as in {one.code for one in (*explained.findings, *explained.notes)}
