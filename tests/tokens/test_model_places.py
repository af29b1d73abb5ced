"""Hidden tokens of single models: the rows of hidden.toml, and what they move or add."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from bodies import assistant, body, breakpoint_last, tool, tool_result, tool_use, user
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import Hidden, Prompt, Renderer
from cachecost.prompts.request import sent_breakpoints
from cachecost.providers.rules import RuleBook
from cachecost.tokens.factory import make_counter
from cachecost.tokens.hidden import ModelPlaces, model_places

USER = {"role": "user", "content": "hi"}
TOOLS = [{"name": "read", "input_schema": {"type": "object"}}]
THINKS = {"type": "enabled", "budget_tokens": 2000}
INTERLEAVED = ["interleaved-thinking-2025-05-14"]


def hidden(model: str, **more: Any) -> Hidden:
    rules = RuleBook().rules("anthropic", model)
    request = Intake(keep_content=True).body({"model": model, "messages": [USER], **more})
    return make_counter("tiktoken", rules.generation).hidden(request, rules)


def placed(found: Hidden) -> tuple[int, int, int, int]:
    return found.tools, found.system, found.messages, found.tail


def test_haiku_3_5_has_its_tool_prompt_elsewhere_and_as_much_of_it() -> None:
    assert placed(hidden("claude-3-5-haiku", tools=TOOLS)) == (1 + 129, 5, 264 - 129 - 5, 3)
    assert placed(hidden("claude-3-haiku", tools=TOOLS)) == (1 + 178, 0, 266 - 178, 3)
    assert placed(hidden("claude-3-5-haiku")) == (1, 0, 0, 3)


@pytest.mark.parametrize(
    ("model", "more"), [("claude-sonnet-4", 148), ("claude-sonnet-4-5", 148), ("claude-haiku-4-5", 148),
                        ("claude-sonnet-4-6", 0)]
)  # fmt: skip
@pytest.mark.parametrize("name", ["betas", "anthropic_beta"])
def test_interleaved_thinking_adds_to_the_messages(model: str, more: int, name: str) -> None:
    plain, added = hidden(model, thinking=THINKS), hidden(model, thinking=THINKS, **{name: INTERLEAVED})
    assert added.messages - plain.messages == more
    assert (added.tools, added.system, added.tail) == (plain.tools, plain.system, plain.tail)
    assert hidden(model, **{name: INTERLEAVED}) == hidden(model), "without thinking there is nothing to interleave"


@pytest.mark.parametrize(
    ("model", "choice", "less"),
    [
        ("claude-sonnet-4", "any", 30),
        ("claude-sonnet-4", "tool", 30),
        ("claude-sonnet-4", "auto", 0),
        ("claude-haiku-4-5", "auto", 496 - 288),
        ("claude-haiku-4-5", "any", 0),
        ("claude-sonnet-4-6", "auto", 497 - 286),
    ],
)
def test_parallel_calls_switched_off(model: str, choice: str, less: int) -> None:
    parallel = hidden(model, tools=TOOLS, tool_choice={"type": choice, "name": "read"})
    single = {"type": choice, "name": "read", "disable_parallel_tool_use": True}
    found = hidden(model, tools=TOOLS, tool_choice=single)
    assert (parallel.messages - found.messages, found.tools, found.tail) == (less, parallel.tools, parallel.tail)


RESULTS = [user(tool_result(400, "a"))]
CALL = [user({"type": "text", "text": "Look. " * 900}), assistant(tool_use(80, "a"))]


def rendered(model: str, messages: list[Any], **more: Any) -> Prompt:
    rules = RuleBook().rules("anthropic", model)
    intake, renderer = Intake(keep_content=True), Renderer(make_counter("tiktoken", rules.generation))
    request = intake.body({**breakpoint_last(body(*messages, tools=[tool(300)])), "model": model, **more})
    return renderer.render(request, sent_breakpoints(request).breakpoints, rules)


@pytest.mark.parametrize(
    ("model", "more", "tail"),
    [
        ("claude-sonnet-4-6", {}, 1),
        ("claude-sonnet-4-5", {}, 5),
        ("claude-sonnet-4-5", {"thinking": THINKS}, 8),
        ("claude-sonnet-4", {}, 6),
        ("claude-sonnet-4", {"thinking": THINKS}, 13),
        ("claude-opus-4-6", {}, 3),
    ],
)
def test_what_comes_after_a_marked_result(model: str, more: dict[str, Any], tail: int) -> None:
    found = rendered(model, CALL + RESULTS, **more)
    assert found.total_tokens - found.breakpoints[-1].prefix.tokens == tail
    usual = rendered(model, CALL[:1], **more)
    frame = usual.total_tokens - usual.breakpoints[-1].prefix.tokens
    went_on = rendered(model, [*CALL, *RESULTS, assistant({"type": "text", "text": "Good."})], **more)
    assert went_on.total_tokens > found.total_tokens - frame, "a place moves, the total does not"


def test_totals_are_those_of_a_model_whose_results_end_as_usual() -> None:
    """The tokens behind a result are part of the next prompt, whatever the place of the breakpoint."""
    rest = [*CALL, *RESULTS, assistant({"type": "text", "text": "Good."}), user({"type": "text", "text": "And now?"})]
    totals = {
        rendered(model, rest).total_tokens - rules_total(model) for model in ("claude-sonnet-4-5", "claude-opus-4-5")
    }
    assert len(totals) == 1
    mixed = [*CALL, user(tool_result(400, "a"), {"type": "text", "text": "And?"})]
    found = rendered("claude-sonnet-4", mixed)
    assert found.total_tokens - found.breakpoints[-1].prefix.tokens == 3, "a text after the result is the last block"


def rules_total(model: str) -> int:
    return RuleBook().rules("anthropic", model).hidden.tool_prompt["auto"]


def test_rows_are_dated() -> None:
    rules = RuleBook().rules("anthropic", "claude-sonnet-4", date(2025, 5, 22))
    assert model_places(rules) == ModelPlaces(
        single_forced=-30, interleaved=148, result_tail=6, result_tail_thinking=13
    )
    assert model_places(RuleBook().rules("anthropic", "claude-opus-5-5")) == ModelPlaces()


ELSEWHERE = [
    ("bedrock", "global.anthropic.claude-haiku-4-5-20251001-v1:0"),
    ("google-cloud", "claude-haiku-4-5@20251001"),
    ("openrouter", "anthropic/claude-haiku-4.5"),
    ("foundry", "claude-haiku-4-5"),
]


@pytest.mark.parametrize(("host", "model"), ELSEWHERE)
def test_rows_hold_wherever_the_model_is_served(host: str, model: str) -> None:
    """On Bedrock three recorded calls after tool results send 6 tokens behind the breakpoint, as Anthropic's do."""
    day = date(2026, 9, 8)
    own = model_places(RuleBook().rules("anthropic", "claude-haiku-4-5", day))
    assert model_places(RuleBook().rules(host, model, day)) == own and own.result_tail == 5


LATE = {"name": "late", "input_schema": {"type": "object"}, "defer_loading": True}
SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}


@pytest.mark.parametrize(
    ("model", "deferred", "searched"),
    [
        ("claude-opus-5", 92, 0),
        ("claude-sonnet-5", 92, 0),
        ("claude-fable-5", 92, 145),
        ("claude-opus-4-8", 0, 145),
        ("claude-sonnet-4-6", 0, 0),
        ("claude-haiku-4-5", 0, 0),
        ("claude-opus-5-5", 0, 0),
    ],
)
def test_deferred_tools_add_to_the_prompt_of_models_where_that_was_seen(
    model: str, deferred: int, searched: int
) -> None:
    plain, late = hidden(model, tools=TOOLS), hidden(model, tools=[*TOOLS, LATE])
    searching = hidden(model, tools=[*TOOLS, SEARCH]), hidden(model, tools=[*TOOLS, SEARCH, LATE])
    assert late.tools - plain.tools == deferred
    assert searching[1].tools - searching[0].tools == searched
    assert searching[0] == plain, "a search without deferred tools finds none"
