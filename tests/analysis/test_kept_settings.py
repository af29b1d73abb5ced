"""What a system prompt is rendered with besides its text, changed in mid-session: the fix is priced as it is sent."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest
from loops import EPHEMERAL, Body, Sending, explained, healthy, naive_cost

from cachecost.base.formatting import dollars

Put = Callable[[Body], None]
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Doc " * 100}}
WEB_SEARCH = {"type": "web_search_20250305", "name": "web_search"}
FORMAT = {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"type": "string"}}}}


def put(value: Any, *path: str) -> Put:
    """Sets a field of the body; None: it is left out."""

    def change(body: Body) -> None:
        name, *rest = path
        if rest:
            put(value, *rest)(body.setdefault(name, {}))
        elif value is not None:
            body[name] = value

    return change


def cite(body: Body) -> None:
    for message in body["messages"]:
        for block in message["content"]:
            if block["type"] == "document":
                block["citations"] = {"enabled": True}


def search(body: Body) -> None:
    body["tools"].insert(0, dict(WEB_SEARCH))


def nothing(body: Body) -> None:
    pass


def skill(name: str) -> Put:
    return put([{"type": "anthropic", "skill_id": name, "version": "1"}], "container", "skills")


BUDGET = put({"type": "tokens", "total": 50_000}, "output_config", "task_budget")
KINDS: dict[str, tuple[str, Put, Put]] = {
    "citations": ("CC110", cite, nothing),
    "web search": ("CC110", search, nothing),
    "skills": ("CC110", skill("xlsx"), nothing),
    "other skills": ("CC110", skill("xlsx"), skill("docx")),
    "task budget": ("CC110", BUDGET, nothing),
    "output format": ("CC205", put(FORMAT, "output_config", "format"), nothing),
    "parallel tools": ("CC201", put({"type": "auto", "disable_parallel_tool_use": True}, "tool_choice"), nothing),
}
CALLS = {"from call 7 on": range(7, 11), "in calls 5 and 6": range(5, 7), "in the last call": range(10, 11)}


def session(change: Callable[[int], Put]) -> list[Sending]:
    """A healthy session with a document in its first message; `change` is what is done to each call."""
    sendings = healthy(model="claude-opus-5")
    for number, sending in enumerate(sendings, 1):
        first = sending.body["messages"][0]["content"]
        first.append(deepcopy(DOCUMENT) | ({"cache_control": EPHEMERAL} if number == 1 else {}))
        if number == 1:
            del first[0]["cache_control"]
        change(number)(sending.body)
    return sendings


@pytest.mark.parametrize("is_first", [True, False], ids=["off on", "on off"])
@pytest.mark.parametrize("when", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_fix_is_the_cheaper_of_on_and_off_throughout(kind: str, when: str, is_first: bool) -> None:
    code, on, off = KINDS[kind]
    inside, outside = (on, off) if is_first else (off, on)
    sendings = session(lambda number: inside if number in CALLS[when] else outside)
    found = explained(sendings)
    ways = [naive_cost(session(lambda _, way=way: way)) for way in (on, off)]
    assert found.cost == naive_cost(sendings)
    assert found.avoidable == naive_cost(sendings) - min(ways) > Decimal("0.04")
    assert {finding.code for finding in found.findings} == {code}
    assert {finding.call for finding in found.findings} <= {min(CALLS[when]), max(CALLS[when]) + 1}
    assert found.lower_bound is not None and found.avoidable <= found.cost - found.lower_bound


def test_the_words_name_what_was_switched_and_both_ways() -> None:
    late = session(lambda number: search if number >= 7 else nothing)
    from_the_start = dollars(naive_cost(late) - naive_cost(session(lambda _: search)))
    (finding,) = explained(late).findings
    assert finding.message == "web search or web fetch switched on"
    both = f"define no web tools in any call, or define the web tools from the first call on ({from_the_start})"
    assert finding.fix == both
    (finding,) = explained(session(lambda number: skill("docx" if number >= 7 else "xlsx"))).findings
    assert finding.message == "`container.skills` changed"
    assert finding.fix == "send the same skills from the first call on"


@pytest.mark.parametrize("use", ["search", "citation"])
def test_what_the_messages_use_is_not_switched_off(use: str) -> None:
    """An answer that cites, or has results of a search, cannot be sent without."""
    on = cite if use == "citation" else search

    def used(number: int) -> Put:
        def change(body: Body) -> None:
            if number >= 7:
                on(body)
            if number >= 8:
                answer = {"type": "text", "text": "As it says.", "citations": [{"type": "char_location"}]}
                called = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
                results = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
                said = body["messages"][13]["content"]
                said[0:0] = [answer] if use == "citation" else [called, results]

        return change

    (finding,) = explained(session(used)).findings
    assert "from the first call on" in finding.fix and " or " not in finding.fix and " no " not in finding.fix


def test_settings_and_text_that_change_in_one_call_are_one_finding() -> None:
    def change(body: Body) -> None:
        BUDGET(body)
        body["system"][1]["text"] += " moved"

    found = explained(session(lambda number: change if number >= 7 else nothing))
    (finding,) = found.findings
    assert finding.fix.startswith("set no task budget in any call; put what changes")
    without = naive_cost(session(lambda _: nothing))
    assert 0 < found.without - without < Decimal("0.001")  # the new words are sent once, and read later
