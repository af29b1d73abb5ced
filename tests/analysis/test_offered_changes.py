"""Each change on a log where it pays, and none of them on logs where there is nothing to change."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime

import pytest
from loops import EPHEMERAL, PRICES, Sending, calls_of, cost_of, explained, healthy, words, workload, workload_of
from test_explain_planted import PLANTS, too_short
from test_kept_settings import KINDS, session
from test_prefix_order import about, asked, document, one_shots, question, shared, text, user

from cachecost.analysis.whatif.report import what_if
from cachecost.analysis.whatif.results import YES, WhatifReport
from cachecost.base.structs import replace
from cachecost.changes.offers import cause_changes, who_can
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.workload import Workload

OFFERED = {change.name for change in cause_changes()} | {"tools=deferred", "hours=cheap"}
MODELS = {"speed_changed": "claude-opus-4-8", "effort_changed": "claude-opus-4-5"}


def offered(found: WhatifReport) -> list[str]:
    return sorted(one.name for one in found.alternatives if one.name in OFFERED or one.name.startswith("sub-agents"))


def planted(cause: str) -> list[Sending]:
    sendings = healthy(model=MODELS.get(cause, "claude-sonnet-4-5"))
    PLANTS[cause][0](sendings)
    return sendings


def searched() -> list[Sending]:
    return session(lambda number: KINDS["web search"][1 if number > 6 else 2])


RULES_LAST = one_shots(asked(lambda number: [text(user(number)), shared(words("rule", 900))]))
QUESTION_FIRST = one_shots(about(lambda number: [text(question(number)), document(), shared("Answer now.")]))
LOGS: dict[str, tuple[str, list[Sending]]] = {
    "the rules after the user's name": ("shared=first", RULES_LAST),
    "the question before the document": ("shared=first", QUESTION_FIRST),
    "web search switched on": ("settings=same", searched()),
    "another model": ("model=same", planted("model_changed")),
    "another workspace": ("workspace=same", planted("unknown")),
    "another speed": ("speed=same", planted("speed_changed")),
    "a tool that changes": ("tools=same", planted("tools_changed")),
    "a system prompt that changes": ("volatile=last", planted("system_changed")),
    "a message that changes": ("messages=same", planted("content_changed")),
    "a forced tool": ("tool_choice=same", planted("tool_choice_changed")),
    "a schema in mid-session": ("format=same", planted("output_format_changed")),
    "thinking in mid-session": ("thinking=same", planted("thinking_changed")),
    "another effort": ("effort=same", planted("effort_changed")),
    "an image in mid-session": ("images=first", planted("images_changed")),
    "calls at once": ("fan-out=warm", planted("concurrent_write")),
    "a lookback that is too short": ("breakpoints=between", planted("lookback_exceeded")),
    "no breakpoint": ("breakpoints=added", planted("no_breakpoint")),
    "a breakpoint on a reminder": ("breakpoints=moved", planted("breakpoint_misplaced")),
}


@pytest.mark.parametrize("log", LOGS)
def test_a_change_saves_what_explain_says_that_its_cause_costs(log: str) -> None:
    name, sendings = LOGS[log]
    found = what_if(workload(sendings), tries_assumptions=False)
    assert set(offered(found)) - {"breakpoints=fewer"} == {name}
    one, explanation = found.find(name), explained(sendings)
    assert one.supported == YES and one.is_gain and one.saving is not None
    if name in ("model=same", "speed=same"):  # whose prices are others, too
        assert one.saving > explanation.avoidable > 0
    else:
        assert one.saving == explanation.avoidable
    assert one.who == who_can(one.kind)
    assert {finding.fix.startswith(one.does) for finding in explanation.findings} == {True}


def test_nothing_is_offered_where_nothing_changes() -> None:
    right = one_shots(asked(lambda number: [shared(words("rule", 900)), text(user(number))]))
    for sendings in (healthy(), healthy(1), healthy(model="claude-opus-5"), right):
        assert offered(what_if(workload(sendings), tries_assumptions=False)) == []


def test_a_cause_behind_another_is_fixed_with_it() -> None:
    """A tool and `tool_choice` change in one call: forced tools cost nothing while the tools are lost anyway."""
    sendings = planted("tools_changed")
    PLANTS["tool_choice_changed"][0](sendings)
    found = what_if(workload(sendings), ["tool_choice=same", "tools=same"], tries_assumptions=False)
    assert offered(found) == ["tools=same"]
    assert found.asked is not None and found.asked.saving == explained(sendings).avoidable > found.asked.best_part


def test_a_short_prefix_is_padded_where_that_pays() -> None:
    sendings = healthy(40)
    too_short(sendings)
    one = what_if(workload(sendings), tries_assumptions=False).find("prefix=padded")
    assert one.saving is not None and one.who == "`system`"
    few = healthy(2)
    too_short(few)
    assert "prefix=padded" not in gains(what_if(workload(few), tries_assumptions=False))


def gains(found: WhatifReport) -> list[str]:
    return [one.name for one in found.alternatives if one.is_gain]


def of_mcp(sendings: list[Sending], used: str) -> list[Sending]:
    """Four tools of an MCP server, and eight more; `used` is the name in the calls."""
    more = [
        {"name": f"more_{n}", "description": words(f"more {n}", 150), "input_schema": {"type": "object"}}
        for n in range(8)
    ]
    for sending in sendings:
        body = sending.body
        body["tools"] = deepcopy([*more, *body["tools"]])
        for tool in body["tools"]:
            tool["name"] = f"mcp__server__{tool['name']}"
        body["tools"].append({"name": "mine", "description": "m", "input_schema": {"type": "object"}})
        for message in body["messages"]:
            for block in message["content"]:
                if block["type"] == "tool_use":
                    block["name"] = used
    return sendings


def test_mcp_tools_are_deferred_and_searched_for_once_a_conversation() -> None:
    unused = what_if(workload(of_mcp(healthy(), "mine")), tries_assumptions=False).find("tools=deferred")
    assert unused.is_gain and unused.extra_calls == 0 and not unused.keeps_answers
    used = what_if(workload(of_mcp(healthy(), "mcp__server__tool_1")), tries_assumptions=False).find("tools=deferred")
    assert used.extra_calls == 1
    assert used.saving is not None and unused.saving is not None and 0 < used.saving < unused.saving


def test_tools_are_not_deferred_where_the_host_cannot() -> None:
    calls = [
        replace(call, request=replace(call.request, model="qwen3.8-max"), host="qwen")
        for call in calls_of(of_mcp(healthy(), "mine"))
    ]
    assert "tools=deferred" not in offered(what_if(workload_of(calls), tries_assumptions=False))


def test_deferred_tools_cost_as_much_as_a_log_that_defers_them() -> None:
    """Without a use: the definitions are gone, and the search stands in their place."""
    sendings = of_mcp(healthy(), "mine")
    by_hand = deepcopy(sendings)
    for sending in by_hand:
        tools = sending.body["tools"]
        for tool in tools[:-1]:
            tool["defer_loading"] = True
            tool.pop("cache_control", None)
        tools.append(
            {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25", "cache_control": EPHEMERAL}
        )
    one = what_if(workload(sendings), tries_assumptions=False).find("tools=deferred")
    assert one.cost == cost_of(by_hand)


def test_sub_agents_have_a_ttl_of_their_own() -> None:
    def traffic(pause: float) -> Workload:
        side = calls_of(healthy(6, topic="side"))
        late = [replace(call, agent="a", start=call.start + number * pause) for number, call in enumerate(side)]
        timed = [replace(call, timestamp="2026-11-21T00:00:00Z") for call in (*calls_of(healthy()), *late)]
        return workload_of(sorted(timed, key=lambda call: call.start))

    found = what_if(traffic(400), tries_assumptions=False)
    side, everything = found.find("sub-agents-ttl=1h"), found.find("ttl=1h")
    assert side.is_gain and side.saving is not None and everything.saving is not None
    assert side.saving > everything.saving  # the main thread needs none
    assert side.who == who_can("sub-agents-ttl") and "subagentPromptCacheTtl" in side.who
    assert "sub-agents-ttl=1h" not in gains(what_if(traffic(0), tries_assumptions=False))
    assert not [
        one for one in what_if(workload(healthy()), tries_assumptions=False).alternatives if "agents" in one.name
    ]


def of_deepseek(hour: int) -> Workload:
    """A conversation that begins at this hour (UTC) of a Monday; peak hours are 1 to 4 and 6 to 10."""
    at = datetime(2026, 11, 23, hour, tzinfo=UTC)
    calls = [
        replace(
            call,
            request=replace(call.request, model="deepseek-chat", breakpoints=()),
            host="deepseek",
            start=at.timestamp() + 20 * number,
            day=at.date(),
            timestamp=at.isoformat(),
        )
        for number, call in enumerate(calls_of(healthy()))
    ]
    return Workload("loop", calls, ReplaySetup(RuleBook(as_of=at.date()), PRICES, host="deepseek", tokens="bytes"))


def test_a_job_waits_for_the_hours_in_which_its_host_is_cheap() -> None:
    found = what_if(of_deepseek(2), tries_assumptions=False)
    one = found.find("hours=cheap")
    assert one.is_gain and one.cost == found.cost / 2 and "2 h at most" in one.does
    other = what_if(of_deepseek(12), tries_assumptions=False).find("hours=cheap")
    assert other.supported == "no change: every conversation is in the cheapest hours already"
    assert "hours=cheap" not in offered(what_if(workload(healthy()), tries_assumptions=False))


@pytest.mark.parametrize("log", LOGS)
def test_a_finding_names_its_alternative(log: str) -> None:
    name, sendings = LOGS[log]
    assert {finding.alternative for finding in explained(sendings).findings} == {name}


def test_a_pause_and_an_hour_name_theirs() -> None:
    found = explained(planted("ttl_expired")).findings
    alternatives = {one.name: one for one in what_if(workload(planted("ttl_expired"))).alternatives}
    assert found and all(one.alternative in alternatives or "keep-alive=" in one.alternative for one in found)
    assert all(one.fix == alternatives[one.alternative].does for one in found if one.alternative in alternatives)
