"""Rules that know only the past: their YAML, their code for a client, and the search for the cheapest."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bodies import assistant, body, marked, text, user
from cachecost.analysis.optimum.online_rule import (
    MOVING,
    STATIC,
    TTL_PAIRS,
    OnlineRule,
    cheapest_rule,
    is_always_legal,
    try_presets,
)
from cachecost.analysis.optimum.plan_evaluator import PlanEvaluator
from cachecost.conversations.calls import Call
from cachecost.prompts.intake import Intake
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.scenario.models import load_strategy
from cachecost.simulation.setup import ReplaySetup, no_progress
from cachecost.strategies.agent import Agent
from cachecost.strategies.changes.keepalive import KeepAlive, needs_output
from cachecost.views.optimum.plan_folder import client_code, strategy_yaml

PINGS = KeepAlive(every_s=3595.0, times=2, whole=True)
ALL = [
    OnlineRule(static, moving, ttls, pings)
    for static in STATIC
    for moving in MOVING
    for ttls in TTL_PAIRS
    for pings in (None, PINGS)
]
RULES = [rule for rule in ALL if is_always_legal(rule)]
Functions = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]


def functions_of(rule: OnlineRule) -> Functions:
    """What the emitted module defines."""
    module: dict[str, Any] = {}
    exec(client_code(rule), module)
    return module


def test_a_block_that_a_body_has_twice_gets_its_breakpoint_once() -> None:
    same = text(2_000)
    placed = functions_of(OnlineRule((), MOVING[0]))["place_breakpoints"](
        body(user(same), assistant(text(90)), user(same))
    )
    assert repr(placed).count("cache_control") == 1
    assert "cache_control" in placed["messages"][-1]["content"][0]


def test_the_code_leaves_the_body_as_it_was() -> None:
    sent = body(user(text(90)), assistant(text(90)), user(marked(text(2_000))))
    before = repr(sent)
    functions_of(OnlineRule(STATIC[0], MOVING[0]))["place_breakpoints"](sent)
    assert repr(sent) == before


@pytest.mark.parametrize("rule", RULES[::7], ids=str)
def test_the_code_is_short_and_imports_nothing_but_the_standard_library(rule: OnlineRule) -> None:
    code = client_code(rule)
    tree = ast.parse(code)
    assert len(code.splitlines()) <= 60
    assert max(map(len, code.splitlines())) <= 120
    names = [
        one.module if isinstance(one, ast.ImportFrom) else one.names[0].name
        for one in tree.body
        if isinstance(one, ast.Import | ast.ImportFrom)
    ]
    assert names == ["json", "itertools"]
    defined = {one.name for one in tree.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")}
    assert defined == ({"place_breakpoints", "keep_alive_body"} if rule.keep_alive else {"place_breakpoints"})


@pytest.mark.parametrize("rule", RULES[::5], ids=str)
def test_the_yaml_loads_as_the_rule(rule: OnlineRule, tmp_path: Path) -> None:
    path = tmp_path / "strategy.yaml"
    path.write_text(strategy_yaml(rule, ["a comment"]))
    agent = load_strategy(path).resolve()
    assert isinstance(agent, Agent)
    assert agent.placement == rule.placement
    assert agent.changes == ((rule.keep_alive,) if rule.keep_alive else ())


PARAMS: list[tuple[dict[str, Any], int]] = [
    ({}, 0),
    ({"stream": True, "max_tokens": 900}, 0),
    ({"thinking": {"type": "adaptive"}}, 0),
    ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, 1025),
    ({"tool_choice": {"type": "auto"}}, 0),
    ({"tool_choice": {"type": "any"}}, 1),
    ({"tool_choice": {"type": "tool", "name": "x"}}, 1),
    ({"output_config": {"effort": "low"}}, 0),
    ({"output_config": {"format": {"type": "json_schema"}}}, 1),
    ({"output_format": {"type": "json_schema"}}, 1),
]


@pytest.mark.parametrize(("params", "least"), PARAMS)
def test_a_keep_alive_asks_for_as_little_as_the_api_accepts(params: dict[str, Any], least: int) -> None:
    keep_alive = functions_of(OnlineRule(keep_alive=PINGS))["keep_alive_body"]
    sent = {**body(user(text(90))), **params}
    made = keep_alive(sent)
    assert made["max_tokens"] == least and "stream" not in made
    assert (least > 0) is needs_output(params)
    assert {**made, "max_tokens": 0} == {**{key: one for key, one in sent.items() if key != "stream"}, "max_tokens": 0}


def found_for(seconds: list[int], grows_by: int, pings: bool = True) -> tuple[OnlineRule, Decimal, Decimal]:
    """The cheapest rule for a conversation that has these starts, its cost, and that of the cheapest preset."""
    intake, messages, calls = Intake(), [], list[Call]()
    for number, at in enumerate(seconds):
        messages.append(user(text(20_000 if not number else grows_by, str(number))))
        day = 1_790_000_000.0
        calls.append(Call(intake.body(body(*messages)), day + at, timestamp="2026-09-21T14:13:20Z"))
        messages.append(assistant(text(200, f"answer {number}")))
    setup = ReplaySetup(RuleBook(), PriceBook.load(None, None), tokens="bytes")
    evaluator = PlanEvaluator.of(calls, setup)
    presets = try_presets(evaluator, no_progress)
    found = cheapest_rule(evaluator, presets, pings)
    return found.rule, found.usd, min(one.usd for one in presets if not one.refused)


def test_a_conversation_without_pauses_is_written_for_five_minutes() -> None:
    rule, usd, preset = found_for([0, 20, 40, 60], 2_000)
    assert rule == OnlineRule(STATIC[0], MOVING[0]) and usd <= preset


@pytest.mark.parametrize(
    ("gap", "expected"),
    [(299, OnlineRule(STATIC[0], MOVING[0])), (301, OnlineRule(STATIC[4], (), ("1h", "5m")))],
)
def test_pauses_decide_what_is_kept_and_how_long(gap: int, expected: OnlineRule) -> None:
    rule, _, _ = found_for([0, gap, 2 * gap, 3 * gap], 2_000, pings=False)
    assert rule == expected


def test_one_call_alone_needs_no_breakpoint() -> None:
    rule, _, _ = found_for([0], 2_000)
    assert rule == OnlineRule(())


def test_keep_alives_are_taken_only_where_they_are_cheaper_and_allowed() -> None:
    seconds = [number * 400 for number in range(6)]
    with_pings, usd, _ = found_for(seconds, 9_000)
    without, more, _ = found_for(seconds, 9_000, pings=False)
    assert without.keep_alive is None and more > usd
    assert with_pings.keep_alive is not None and with_pings.keep_alive.times == 1
