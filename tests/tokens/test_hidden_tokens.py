"""Where hidden tokens stand: a table of requests, and what each adds to which place."""

import itertools
from datetime import date
from typing import Any

import pytest

from cachecost.base.structs import replace
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import Hidden, thread_traits
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.rules import HiddenTokens, ModelRules, RuleBook
from cachecost.tokens.calibration import Calibration, calibration
from cachecost.tokens.factory import make_counter
from cachecost.tokens.hidden import hidden_tokens

RULES = ModelRules(
    host="anthropic",
    model="claude-of-the-test",
    generation="claude-3",
    minimum_tokens=1024,
    keeps_thinking=True,
    accepts_forced_choice=True,
    default_effort="high",
    context_window=200_000,
    collapses_runs=True,
    scope="workspace",
    hidden=HiddenTokens(
        tool_prompt={"auto": 500, "any": 590, "tool": 590, "auto+disable_parallel_tool_use": 290},
        frame_const=1,
        frame_turn=3,
        forced_tail={"any": 16, "tool": 21},
        thinking_prefix=22,
        thinking_tail=7,
        adaptive_prefix=5,
        adaptive_tail=2,
    ),
)
MEASURED = Calibration("claude-3", {}, {"parallel": 24}, 180, {}, date(2026, 11, 21))
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
USER = {"role": "user", "content": "hi"}
ASSISTANT = {"role": "assistant", "content": "{"}


def hidden(body: dict[str, Any], rules: ModelRules = RULES, format_tokens: int = 0) -> Hidden:
    request = Intake(keep_content=True).body({"model": "m", "messages": [USER], **body})
    return hidden_tokens(request, rules, MEASURED, format_tokens)


@pytest.mark.parametrize(
    ("body", "tools", "messages", "tail"),
    [
        ({}, 1, 0, 3),
        ({"messages": [USER, ASSISTANT]}, 1, 0, 0),
        ({"tool_choice": {"type": "any"}}, 1, 0, 3),
        ({"tools": TOOLS}, 181, 320, 3),
        ({"tools": TOOLS, "tool_choice": {"type": "auto"}}, 181, 320, 3),
        ({"tools": TOOLS, "tool_choice": {"type": "none"}}, 181, 320, 3),
        ({"tools": TOOLS, "tool_choice": {"type": "any"}}, 181, 394, 19),
        ({"tools": TOOLS, "tool_choice": {"type": "tool", "name": "read"}}, 181, 394, 24),
        ({"tools": TOOLS, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, 181, 110, 3),
        ({"tools": TOOLS, "tool_choice": {"type": "auto", "disable_parallel_tool_use": False}}, 181, 320, 3),
        ({"tools": TOOLS, "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}, 181, 394, 19),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, 181, 320, 3),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, 1, 22, 10),
        ({"thinking": {"type": "adaptive"}}, 1, 5, 5),
        ({"thinking": {"type": "disabled"}}, 1, 0, 3),
        ({"tools": TOOLS, "thinking": {"type": "enabled", "budget_tokens": 2000}}, 181, 342, 10),
    ],
)
def test_places(body: dict[str, Any], tools: int, messages: int, tail: int) -> None:
    assert hidden(body) == Hidden(tools, 0, messages, turn=3, tail=tail, parallel=24)


def test_switches_move_what_they_name() -> None:
    thinks = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
    early = replace(RULES, assumptions=Assumptions(thinking_rendered_at="tools", structured_output_at="tools"))
    assert hidden(thinks, format_tokens=100) == Hidden(1, 100, 22, turn=3, tail=10, parallel=24, format=100)
    assert hidden(thinks, early, format_tokens=100) == Hidden(123, 0, 0, turn=3, tail=10, parallel=24, format=100)


def test_a_class_the_model_refuses_counts_as_auto() -> None:
    refuses = replace(RULES, hidden=HiddenTokens(tool_prompt={"auto": 286}))
    forced = {"tools": TOOLS, "tool_choice": {"type": "any"}}
    assert hidden(forced, refuses) == Hidden(180, 0, 106, parallel=24)


def test_a_prompt_shorter_than_its_usual_first_part() -> None:
    short = replace(RULES, hidden=HiddenTokens(tool_prompt={"auto": 100}))
    assert hidden({"tools": TOOLS}, short) == Hidden(100, 0, 0, parallel=24)


def test_the_published_total_is_kept_wherever_it_stands() -> None:
    """The tool prompt's two parts add up to Anthropic's number; a forced choice by name adds the name's tokens."""
    rules = RuleBook().rules("anthropic", "claude-sonnet-4-6")
    counter = make_counter("tiktoken", rules.generation)
    intake = Intake(keep_content=True)

    def total(choice: str) -> int:
        body = {
            "model": rules.model,
            "messages": [USER],
            "tools": TOOLS,
            "tool_choice": {"type": choice, "name": "read"},
        }
        found = counter.hidden(intake.body(body), rules)
        return found.tools + found.system + found.messages + found.tail - rules.hidden.frame_const - found.turn

    assert [total(choice) for choice in ("auto", "any", "tool")] == [497, 589, 594]


@pytest.mark.parametrize("field", ["output_config", "output_format"])
def test_structured_output_counts_its_schema(field: str) -> None:
    rules = RuleBook().rules("anthropic", "claude-sonnet-4-6")
    counter = make_counter("tiktoken", rules.generation)
    intake = Intake(keep_content=True)

    def system(properties: int) -> int:
        schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(properties)}}
        wanted = {"type": "json_schema", "schema": schema}
        body = {
            "model": rules.model,
            "messages": [USER],
            field: {"format": wanted} if field == "output_config" else wanted,
        }
        return counter.hidden(intake.body(body), rules).system

    constant = calibration("claude-3").structure["format"]
    assert constant < system(0) < constant + 40
    assert system(0) < system(1) < system(5)
    reordered = {"schema": {"properties": {}, "type": "object"}, "type": "json_schema"}
    body = {"model": rules.model, "messages": [USER], "output_config": {"format": reordered}}
    assert counter.hidden(intake.body(body), rules).system == system(0)


def test_effort_alone_adds_nothing() -> None:
    rules = RuleBook().rules("anthropic", "claude-opus-4-8")
    counter = make_counter("tiktoken", rules.generation)
    body = {"model": rules.model, "messages": [USER]}
    intake = Intake(keep_content=True)
    assert counter.hidden(intake.body({**body, "output_config": {"effort": "low"}}), rules) == counter.hidden(
        intake.body(body), rules
    )


@pytest.mark.parametrize("counter", ["tiktoken", "bytes"])
def test_of_the_messages_only_traits_decide(counter: str) -> None:
    """What the renderer keeps hidden tokens by."""
    rules = RuleBook().rules("anthropic", "claude-opus-4-6")
    count, known = make_counter(counter, rules.generation), dict[tuple[bool, str, str], Hidden]()
    cited = {"type": "document", "source": {"type": "text", "data": "d"}, "citations": {"enabled": True}}
    results = [{"type": "tool_result", "tool_use_id": "a", "content": "found"}]
    contents = ["hi", [cited], results, [*results, {"type": "text", "text": "and?"}]]
    for messages in itertools.product([[], [USER], [USER, ASSISTANT, USER]], contents, [[], [ASSISTANT]]):
        request = Intake(keep_content=True).body(
            {
                "model": "m",
                "tools": TOOLS,
                "thinking": {"type": "enabled", "budget_tokens": 2000},
                "messages": [*messages[0], {"role": "user", "content": messages[1]}, *messages[2]],
            }
        )
        found = count.hidden(request, rules)
        assert known.setdefault(thread_traits(request.thread), found) == found
    assert len(known) == 5


SYSTEM = [{"type": "text", "text": "You are a helper.", "cache_control": {"type": "ephemeral"}}]


@pytest.mark.parametrize(
    ("host", "model", "after"),
    [
        *(("openai", "gpt-5.6-sol", 10), ("azure", "gpt-5.6-sol", 10), ("openai", "gpt-6.1-sol-explicit", 10)),
        *(("openai", "gpt-5.2", 11), ("anthropic", "claude-sonnet-4-5", 11), ("bedrock", "claude-sonnet-4-5", 11)),
    ],
)
@pytest.mark.parametrize("system", [SYSTEM, []])
def test_the_token_that_closes_a_message_comes_after_its_last_block(
    host: str, model: str, after: int, system: list[dict[str, Any]]
) -> None:
    """From GPT-5.6 on two messages have ten tokens besides their words: the first three, then four, then three."""
    rules = replace(RuleBook().rules(host, model), hidden=HiddenTokens())
    request = Intake(keep_content=True).body({"model": model, "system": system, "messages": [USER, ASSISTANT, USER]})
    found = hidden_tokens(request, rules, calibration("o200k"), 0)
    first = found.system if system else found.messages
    assert (4 + first) + 4 + found.tail == after
    assert (found.system, found.messages) == ((first, 0) if system else (0, first))
