"""`best-per-provider`: one strategy, another way of asking on each host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from small_talks import SIX_CALLS, asked, conversation, question

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.calls import Call
from cachecost.providers.rules import RuleBook
from cachecost.strategies.agent import Agent
from cachecost.strategies.changes.base import Facts
from cachecost.strategies.registry import build
from cachecost.strategies.spec import StrategySpec

NAME = "best-per-provider"
TALK = asked(question(1, 50))


@dataclass(frozen=True)
class Elsewhere:
    host: str = "nowhere"
    matching: str = "grid"
    context_window: int = 1_000
    accepts_forced_choice: bool = True


def on(host: str) -> Facts:
    book = RuleBook()
    return lambda model: book.rules(host, model)


def questions(host: str, model: str) -> list[Call]:
    strategy = build(NAME, model=model, facts=on(host))
    return [call for call in strategy.plan(TALK) if call.purpose == "inquiry"]


def way(call: Call) -> tuple[Any, bool, bool]:
    """tool_choice, whether a schema is sent, whether tools are."""
    params = call.request.params
    choice = (params.get("tool_choice") or {}).get("type")
    return choice, "format" in (params.get("output_config") or {}), bool(call.request.tools.blocks)


@pytest.mark.parametrize(
    ("host", "model", "expected"),
    [
        ("anthropic", "claude-opus-4-6", ("auto", False, True)),
        ("openai", "gpt-6.1-sol", ("tool", False, True)),
        ("openai", "gpt-5.4", ("tool", False, True)),
        ("gemini", "gemini-3.8-flash", ("tool", False, True)),
        ("gemini", "gemini-3.8-flash-explicit", (None, True, False)),
        ("deepseek", "deepseek-flash", ("auto", False, True)),
        ("vllm", "my-model", (None, True, True)),
    ],
)
def test_questions_are_asked_in_the_way_of_the_host(host: str, model: str, expected: tuple[Any, bool, bool]) -> None:
    assert {way(call) for call in questions(host, model)} == {expected}


def test_the_model_may_be_that_of_the_conversation() -> None:
    strategy = build(NAME, facts=lambda model: RuleBook().rules("openai", "gpt-5.4"))
    assert isinstance(strategy, Agent) and strategy.inquiry is None
    calls = list(strategy.plan(TALK))
    assert [call.request.params.get("tool_choice", {}).get("type") for call in calls if call.purpose == "inquiry"]
    assert strategy.notes(TALK)[0].startswith("On openai it asks as “answer_inquiry, forced” does: ")


def test_without_questions_nothing_has_to_be_known() -> None:
    assert len(list(build(NAME).plan(conversation(*SIX_CALLS)))) > 1


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (None, "strategy 'best-per-provider' asks in another way on each host: no model is known"),
        (lambda model: Elsewhere(), "best-per-provider has no row for host nowhere"),
    ],
)
def test_what_is_not_known_is_told(facts: Facts | None, text: str) -> None:
    with pytest.raises(CannotEvaluate) as caught:
        list(build(NAME, facts=facts).plan(TALK))
    assert str(caught.value) == text


def test_its_breakpoints_and_name_can_be_others_but_not_how_it_asks() -> None:
    spec = StrategySpec.model_validate({"name": "mine", "preset": NAME, "breakpoints": ["last_tool"]})
    strategy = build(spec, model="gpt-6.1-sol", facts=on("openai"))
    assert isinstance(strategy, Agent)
    assert (strategy.name, len(strategy.placement.primitives), strategy.inquiry is None) == ("mine", 1, False)
    with pytest.raises(ValueError, match="'best-per-provider' chooses how questions are asked: it takes no inquiry"):
        StrategySpec.model_validate({"preset": NAME, "inquiry": {"order": "parallel"}})
