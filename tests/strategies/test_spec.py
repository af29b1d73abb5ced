"""A scenario's entry for a strategy: what it can say, and how its faults are told."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError
from small_talks import asked, question, spelled

from cachecost.base import yaml_text
from cachecost.base.yaml_text import faults_of
from cachecost.strategies.agent import Agent, InquiryOptions
from cachecost.strategies.placements import (
    PRIMITIVES,
    SHORTHANDS,
    Automatic,
    BeforeHuman,
    Hint,
    Lag,
    LastMessage,
    LastN,
    LastTool,
    Placement,
    SystemBlock,
)
from cachecost.strategies.presets import PRESETS
from cachecost.strategies.registry import UnknownStrategy, build
from cachecost.strategies.spec import BREAKPOINTS, INQUIRY, StrategySpec

SPECS = TypeAdapter(list[StrategySpec])
SCHEMA = SPECS.json_schema()


def resolved(text: str) -> Agent:
    found = StrategySpec.model_validate(yaml_text.parse(text, "s.yaml").value).resolve()
    assert isinstance(found, Agent)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("progressive", PRESETS["progressive"]),
        ('"answer_inquiry, forced"', PRESETS["answer_inquiry, forced"]),
        ("preset: progressive", PRESETS["progressive"]),
        ("{name: mine, breakpoints: []}", Agent(name="mine")),
        (
            "{name: a, breakpoints: [last_tool, last_system, automatic]}",
            Agent(name="a", placement=Placement((LastTool(), SystemBlock("last"), Automatic()))),
        ),
        (
            "{name: a, ttl: 5m, breakpoints: [last_tool: {ttl: 1h}, each_system: {ttl: 1h}, last_message]}",
            Agent(
                name="a", placement=Placement((LastTool(ttl="1h"), SystemBlock("each", ttl="1h"), LastMessage()), "5m")
            ),
        ),
        (
            "{name: a, breakpoints: [last_n: {role: user_wire, n: 3}, before_human: {k: 2, "
            "role: prompt}, lag: {blocks: 9}]}",
            Agent(name="a", placement=Placement((LastN("user_wire", 3), BeforeHuman(2, "prompt"), Lag(9)))),
        ),
        ("{name: a, breakpoints: [lag: ]}", Agent(name="a", placement=Placement((Lag(),)))),
        ("{name: a, breakpoints: []}", Agent(name="a")),
        (
            "{name: a, breakpoints: progressive, ttl: 1h, slots: 2, trim: oldest_message}",
            Agent(name="a", placement=Placement((SystemBlock("each"), LastMessage()), "1h", 2, "oldest_message")),
        ),
        (
            "{name: a, inquiry: {through: structured_output, tools: none}}",
            Agent(name="a", inquiry=InquiryOptions(through="structured_output", tools="none")),
        ),
        (
            "{name: a, inquiry: {tool_choice: forced, retry_rate: 0.05, schema: unique, "
            "breakpoints: [last_tool, hint]}}",
            Agent(
                name="a",
                inquiry=InquiryOptions(
                    tool_choice="forced", retry_rate=0.05, schema="unique", breakpoints=(LastTool(), Hint())
                ),
            ),
        ),
        ("{name: a, inquiry: {}}", Agent(name="a", inquiry=InquiryOptions())),
        ("{name: a, thinking: off, model: m}", Agent(name="a", model="m", params={"thinking": {"type": "disabled"}})),
        (
            "{name: a, thinking: {type: enabled, budget_tokens: 4_096}, params: {max_tokens: 9, speed: }}",
            Agent(
                name="a",
                params={"thinking": {"type": "enabled", "budget_tokens": 4096}, "max_tokens": 9, "speed": None},
            ),
        ),
        (
            "{name: a, rules: {tool_choice_invalidation: never, ttl_in_key: true}}",
            Agent(name="a", rules={"tool_choice_invalidation": "never", "ttl_in_key": True}),
        ),
    ],
)
def test_what_an_entry_means(text: str, expected: Agent) -> None:
    assert resolved(text) == expected


def test_options_go_over_a_presets_and_the_rest_stays() -> None:
    forced = PRESETS["answer_inquiry, forced"]
    found = resolved('{name: mine, preset: "answer_inquiry, forced", ttl: 1h, inquiry: {order: parallel}}')
    assert found.inquiry == InquiryOptions(retry_rate=0.05, order="parallel")
    assert (found.source, found.date, found.what) == (forced.source, forced.date, forced.what)
    assert found.placement == Placement(forced.placement.primitives, "1h")
    published_figure = resolved('{preset: "answer_inquiry, as 033 describes itself", rules: {ttl_in_key: true}}')
    assert published_figure.rules == {"tool_choice_invalidation": "never", "ttl_in_key": True}


def test_a_rate_keeps_the_digits_it_was_written_with() -> None:
    """0.05 as a binary float is a little more than a twentieth; the tenth attempt must fail exactly."""
    spec = StrategySpec.model_validate(yaml_text.parse("{name: a, inquiry: {retry_rate: 0.05}}", "s.yaml").value)
    calls = build(spec).plan(asked(*(question(n, 50 + n) for n in range(10))))
    assert [call.inquiry for call in calls if call.purpose == "retry"] == [10]


def test_build_takes_a_spec() -> None:
    spec = StrategySpec.model_validate({"name": "a", "breakpoints": ["last_tool", {"last_message": None}]})
    calls = list(build(spec, model="m").plan(asked()))
    assert [(call.request.model, spelled(call.request)) for call in calls] == [
        ("m", "tools.1 1.0"),
        ("m", "tools.1 3.0"),
    ]
    own = StrategySpec.model_validate({"name": "a", "model": "own"})
    assert {call.request.model for call in build(own, model="m").plan(asked())} == {"own"}


UNKNOWN = str(UnknownStrategy("progresive", sorted(PRESETS)))
KNOWN = ", ".join(BREAKPOINTS.names)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("progresive", UNKNOWN),
        ("{preset: progresive}", f"preset: {UNKNOWN}"),
        ("{name: a, breakpoints: progresive}", f"breakpoints: {UNKNOWN}"),
        (
            "{name: a, breakpoints: [last_tol]}",
            f"breakpoints[0]: expected one of {KNOWN}; got 'last_tol' (did you mean 'last_tool'?)",
        ),
        (
            "{name: a, breakpoints: [lg: {}]}",
            f"breakpoints[0]: expected one of {KNOWN}; got 'lg' (did you mean 'lag'?)",
        ),
        ("{name: a, breakpoints: [lag: {blocks: 0}]}", "breakpoints[0]: lag.blocks=0: expected at least 1"),
        (
            "{name: a, breakpoints: [automatic, lag: {bloks: 3}]}",
            "breakpoints[1].lag.bloks: unknown key (did you mean 'blocks'?)",
        ),
        ("{name: a, breakpoints: [lag: {blocks: 1.5}]}", "breakpoints[0].lag.blocks: expected a whole number; got 1.5"),
        ("{name: a, breakpoints: [lag: 3]}", "breakpoints[0].lag: expected a mapping; got 3"),
        (
            "{name: a, breakpoints: [last_system: {which: 1}]}",
            "breakpoints[0].last_system.which: unknown key; expected one of ttl",
        ),
        (
            "{name: a, breakpoints: [{lag: {}, hint: {}}]}",
            "breakpoints[0]: expected the name of a breakpoint, or one name with its options; got a mapping",
        ),
        (
            "{name: a, breakpoints: [3]}",
            "breakpoints[0]: expected the name of a breakpoint, or one name with its options; got 3",
        ),
        ("{name: a, breakpoints: 3}", "breakpoints: expected a list; got 3"),
        (
            "{name: a, ttl: 1h, breakpoints: [last_tool: {ttl: 5m}, automatic]}",
            "last_tool at 5m and automatic at 1h: a 1h breakpoint must not come after a 5m one",
        ),
        (
            "{name: a, inquiry: {breakpoints: [last_tool, hint: {ttl: 1h}]}}",
            "last_tool at 5m and hint at 1h: a 1h breakpoint must not come after a 5m one",
        ),
        (
            "{name: a, inquiry: {through: structured_output, tool_choice: forced}}",
            "tool_choice=forced: structured_output has no tool to force",
        ),
        (
            '{preset: "answer_inquiry, forced", inquiry: {tool_choice: none}}',
            "tool_choice=none: answer_tool could not be answered",
        ),
        ("{name: a, inquiry: {thru: x}}", "inquiry.thru: unknown key (did you mean 'through'?)"),
        ("{name: a, inquiry: {retry_rate: 2}}", "inquiry.retry_rate: expected at most 1.0; got 2"),
        ("{name: a, inquiry: {tool_tokens: 0}}", "inquiry.tool_tokens: expected at least 1; got 0"),
        ("{name: a, inquiry: yes}", "inquiry: expected a mapping; got 'yes'"),
        ("{name: a, breakpoint: []}", "breakpoint: unknown key (did you mean 'breakpoints'?)"),
        ("{name: a, model: ''}", "model: expected some text; got ''"),
        ("{name: a, slots: -1}", "slots: expected at least 0; got -1"),
        ("{ttl: 5m}", "name: expected text; got nothing"),
    ],
)
def test_faults_are_told_in_the_users_names(text: str, fault: str) -> None:
    placed = yaml_text.parse(f"- {text}", "s.yaml")
    with pytest.raises(ValidationError) as raised:
        SPECS.validate_python(placed.value)
    found = [str(each) for each in faults_of(raised.value, placed, SCHEMA)]
    assert len(found) == 1
    assert found[0].endswith(f" [0].{fault}" if f" [0].{fault}" in found[0] else f" [0]: {fault}")


def test_an_unknown_switch_names_the_nearest() -> None:
    with pytest.raises(ValidationError, match="did you mean 'tool_choice_invalidation'"):
        StrategySpec.model_validate({"name": "a", "rules": {"tool_choice_invalidaton": "never"}})
    with pytest.raises(ValidationError, match="ttl_in_key: expected one of"):
        StrategySpec.model_validate({"name": "a", "rules": {"ttl_in_key": "maybe"}})


def test_all_faults_are_told_at_once() -> None:
    entries: list[Any] = ["nope", {"name": "a", "breakpoints": ["x", {"lag": {"y": 1}}], "ttl": "6m"}, {"preset": 3}]
    with pytest.raises(ValidationError) as raised:
        SPECS.validate_python(entries)
    assert sorted({error["loc"][0] for error in raised.value.errors()}) == [0, 1, 2]
    assert {error["loc"] for error in raised.value.errors()} >= {
        (1, "breakpoints", 0),
        (1, "breakpoints", 1, "lag", "y"),
        (1, "ttl"),
    }


VALID = [
    "progressive",
    "a strategy of another package",
    {"preset": "progressive"},
    {"name": "a", "breakpoints": ["last_tool", {"last_n": {"role": "human", "n": 2}}, {"automatic": {"ttl": "1h"}}]},
    {"name": "a", "breakpoints": "progressive", "rules": {"ttl_in_key": True}},
    {
        "name": "a",
        "inquiry": {"through": "tool_per_question", "schema": "unique", "breakpoints": [{"hint": {"offset": 2}}]},
    },
    {"name": "a", "thinking": "off"},
    {"name": "a", "thinking": {"type": "adaptive"}},
]
INVALID = [
    3,
    {"name": "a", "breakpoints": ["last_tol"]},
    {"name": "a", "breakpoints": [{"lag": {"bloks": 1}}]},
    {"name": "a", "breakpoints": [{"lag": {}, "hint": {}}]},
    {"name": "a", "ttl": "6m"},
    {"name": "a", "breakpoint": []},
    {"name": "a", "inquiry": {"thru": 1}},
    {"name": "a", "inquiry": {"answer_schema": "unique"}},
]


@pytest.mark.parametrize("entry", VALID, ids=str)
def test_the_json_schema_takes_what_the_models_take(entry: object) -> None:
    Draft202012Validator(SCHEMA).validate([entry])


@pytest.mark.parametrize("entry", INVALID, ids=str)
def test_the_json_schema_refuses_what_the_models_refuse(entry: object) -> None:
    assert not Draft202012Validator(SCHEMA).is_valid([entry])
    with pytest.raises(ValidationError):
        SPECS.validate_python([entry])


def test_the_json_schema_explains_every_key() -> None:
    for model in (StrategySpec, INQUIRY.model):
        schema = model.model_json_schema()
        found = schema if "properties" in schema else next(each for each in schema["anyOf"] if "properties" in each)
        assert all(option.get("description") for option in found["properties"].values())


@pytest.mark.parametrize("name", BREAKPOINTS.names)
def test_every_breakpoint_can_be_written_by_its_name(name: str) -> None:
    spec = StrategySpec.model_validate({"name": "a", "breakpoints": [name, {name: {"ttl": "5m"}}]})
    assert spec.breakpoints is not None
    assert type(spec.breakpoints[0]) is (type(SHORTHANDS[name]) if name in SHORTHANDS else PRIMITIVES[name])
    assert (spec.breakpoints[0].ttl, spec.breakpoints[1].ttl) == (None, "5m")
