"""Structured answers in one step, in two, or never: what is sent and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from itertools import pairwise
from typing import Any

import pytest
from small_talks import MODEL, conversation, fingerprint, head, question

from cachecost.conversations.calls import Call
from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.prompts.blocks import Message, Part, Thread, given_block
from cachecost.prompts.request import Request
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.strategies.agent import Agent
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.messages import FinalAnswer
from cachecost.strategies.spec import StrategySpec


def turn(number: int, loops: int = 1) -> list[Event]:
    """A question of 20, `loops` calls of 30 with results of 100, an answer of 40 tokens with 7 of thinking."""
    at = 60.0 * number
    events: list[Event] = [Human(at, (given_block("text", "user", f"q{number}", 20),))]
    for n in range(loops):
        events.append(Reply(at + 4 * n + 1, (given_block("tool_use", "assistant", f"u{number}.{n}", 30),)))
        events.append(Results(at + 4 * n + 2, (given_block("tool_result", "user", f"r{number}.{n}", 100),)))
    thought = given_block("thinking", "assistant", f"t{number}", 7)
    answer = given_block("text", "assistant", f"a{number}", 40)
    return [*events, Reply(at + 4 * loops + 1, (thought, answer), output_tokens=60)]


def turns(number: int) -> list[Event]:
    return [event for n in range(number) for event in turn(n)]


def planned(change: AgentChange, events: Iterable[Event], params: dict[str, Any] | None = None) -> list[Call]:
    return list(Agent(name="a", changes=(change,)).plan(conversation(*events, params=params)))


def shape(call: Call) -> list[str]:
    """The messages as sent: kinds and tokens."""
    messages = call.request.thread.messages()
    return [" ".join(f"{block.kind}:{block.tokens}" for block in message.blocks) for message in messages]


def said(call: Call) -> str:
    return " ".join(f"{block.kind}:{block.tokens}" for block in call.output)


def test_two_steps_are_one_call_more_and_two_tools() -> None:
    calls = planned(FinalAnswer(), turns(2))
    assert [call.start for call in calls] == [1, 5, 7, 61, 65, 67]
    assert [said(call) for call in calls[:3]] == ["tool_use:30", "thinking:7 tool_use:40", "tool_use:40"]
    start = ["text:20", "tool_use:30", "tool_result:100", "thinking:7 tool_use:40"]
    assert shape(calls[2]) == [*start, "tool_result:20 text:150"]
    assert shape(calls[3]) == [*start, "tool_result:20 text:150", "tool_use:40", "tool_result:20 text:20"]
    assert {tuple(block.tokens for block in call.request.tools.blocks) for call in calls} == {(100, 100, 120, 120)}
    assert len({id(call.request.tools) for call in calls}) == 1


def test_what_was_billed_for_the_answer_stays_unless_its_length_is_another() -> None:
    assert [call.output_tokens for call in planned(FinalAnswer(), turn(0))] == [None, 60, None]
    single = FinalAnswer(way="single_pass", structured_tokens=300)
    assert [(call.output_tokens, said(call)) for call in planned(single, turn(0))][1:] == [
        (None, "thinking:7 tool_use:300")
    ]


def test_each_confusion_is_told_and_costs_a_call() -> None:
    calls = planned(FinalAnswer(confusion_rate=0.5, error_tokens=81), turns(2))
    assert [call.start for call in calls] == [1, 5, 7, 9, 61, 65, 67, 69]
    assert [line for line in shape(calls[-1]) if line == "tool_result:81"] == ["tool_result:81"] * 2


@pytest.mark.parametrize(
    ("loops", "most", "expected"), [(1, 10, 10), (1, 4, 4), (1, 3, 3), (1, 1, 3), (5, 10, 10), (9, 10, 11)]
)
def test_who_is_always_confused_ends_at_the_cap(loops: int, most: int, expected: int) -> None:
    """A turn that has as many calls without it makes the second step once."""
    calls = planned(FinalAnswer(confusion_rate=1, max_iterations=most), [*turn(0, loops), *turn(1, 0)])
    first = [call for call in calls if call.turn == 1]
    assert len(first) == expected
    assert shape(calls[expected])[-1] == "tool_result:20 text:20"


@pytest.mark.parametrize(("way", "plain"), [("two_step", 3), ("single_pass", 2)])
def test_a_json_that_does_not_fit_is_made_again(way: Any, plain: int) -> None:
    assert len(planned(FinalAnswer(way=way), turns(4))) == 4 * plain
    assert len(planned(FinalAnswer(way=way, schema_error_rate=0.25), turns(4))) == 4 * plain + 1
    assert len(planned(FinalAnswer(way=way, schema_error_rate=1.0, max_iterations=5), turns(4))) == 4 * 5


def test_a_failed_first_attempt_keeps_its_thinking() -> None:
    calls = planned(FinalAnswer(way="single_pass", schema_error_rate=1, max_iterations=3), turn(0))
    assert [said(call) for call in calls[1:]] == ["thinking:7 tool_use:40", "tool_use:40"]
    assert shape(calls[2])[-2:] == ["thinking:7 tool_use:40", "tool_result:80"]


@pytest.mark.parametrize(("schemas", "sent"), [(1, [0] * 5), (2, [0, 1, 0, 1, 0]), (3, [0, 1, 2, 0, 1])])
def test_schemas_take_turns_and_share_their_part(schemas: int, sent: list[int]) -> None:
    calls = planned(FinalAnswer(way="single_pass", schemas=schemas), turns(5))
    parts = [call.request.tools for call in calls[::2]]
    assert parts == [call.request.tools for call in calls[1::2]]
    kinds = list(dict.fromkeys(map(id, parts)))
    assert [kinds.index(id(part)) for part in parts] == sent
    assert {part.blocks[-1].tokens for part in parts} == {520}
    assert len({part.blocks[-1].digest for part in parts}) == schemas


@pytest.mark.parametrize(
    ("loops", "most", "expected"), [(0, 10, 10), (1, 10, 10), (9, 10, 10), (10, 10, 11), (0, 1, 1), (0, 2, 2)]
)
def test_livelock_goes_on_to_the_cap(loops: int, most: int, expected: int) -> None:
    calls = planned(FinalAnswer(way="livelock", max_iterations=most), turn(0, loops))
    assert len(calls) == expected
    assert all(later.start - call.start >= 2 for call, later in pairwise(calls))
    assert sum(line == "text:80" for line in shape(calls[-1])) == expected - loops - 1


def test_livelock_demands_a_format_and_keeps_other_parameters() -> None:
    events = [*turn(0), Switch(50, MODEL, *head(), {"output_config": {"effort": "high"}}), *turn(1)]
    calls = planned(FinalAnswer(way="livelock", max_iterations=1), events, {"max_tokens": 9})
    assert [sorted(call.request.params) for call in calls] == [["max_tokens", "output_config"]] * 2 + [
        ["output_config"]
    ] * 2
    assert calls[-1].request.params["output_config"]["effort"] == "high"
    assert calls[0].request.params["output_config"]["format"] == calls[-1].request.params["output_config"]["format"]


def test_only_the_last_turn_of_a_session() -> None:
    assert [call.turn for call in planned(FinalAnswer(of="session"), turns(3))] == [1, 1, 2, 2, 3, 3, 3]


def test_next_human_message_waits_for_calls_that_were_added() -> None:
    events = [*turn(0, 0), Human(2, (given_block("text", "user", "quick", 5),)), Reply(3, turn(1)[1].blocks)]  # type: ignore[union-attr]
    assert [call.start for call in planned(FinalAnswer(), events)] == [1, 3, 5]
    slow = [turn(0, 0)[0], Reply(1, (given_block("text", "assistant", "a", 4),), first_token_s=8.5), *events[2:]]
    assert [call.start for call in planned(FinalAnswer(), slow)] == [1, 9.5, 18]


def test_going_back_takes_all_that_stood_for_a_reply() -> None:
    """The fifth message told is the second human one."""
    fork = [*turns(2), ThreadRewrite(200, 4, (), "fork"), *turn(9)]
    back = planned(FinalAnswer(confusion_rate=0.5), fork)[-1].request.thread.messages()
    straight = planned(FinalAnswer(confusion_rate=0.5), [*turn(0), *turn(9)])[-1].request.thread.messages()
    assert [message.digest for message in back[:9]] == [message.digest for message in straight[:9]]
    inside = planned(FinalAnswer(), [*turn(0), ThreadRewrite(50, 3, (), "fork"), Reply(51, turn(3)[-1].blocks)])  # type: ignore[union-attr]
    assert shape(inside[3]) == ["text:20", "tool_use:30", "tool_result:100"]


def test_a_side_call_goes_on_from_the_thread_as_it_is_sent() -> None:
    plain = conversation(*turns(1))
    thread = plain.root
    for event in plain.events:
        role = "assistant" if isinstance(event, Reply) else "user"
        thread = thread.then(Message.of(role, event.blocks))  # type: ignore[union-attr]
    asks = Message.of("user", (given_block("text", "user", "title?", 9),))
    other = Request(MODEL, Thread().then(asks), Part(), Part())
    shared = Request(MODEL, thread.then(asks), plain.tools, plain.system)
    title = Reply(30, (given_block("text", "assistant", "title", 5),))
    session = Conversation(
        "small", (*plain.events, Aside(30, shared, title), Aside(31, other, title)), MODEL, plain.tools, plain.system,
        root=plain.root,
    )  # fmt: skip
    calls = list(Agent(name="a", changes=(FinalAnswer(),)).plan(session))
    assert shape(calls[-2]) == [*shape(calls[2]), "tool_use:40", "text:9"]
    assert (calls[-2].request.tools, calls[-2].request.system) == (calls[0].request.tools, plain.system)
    assert (shape(calls[-1]), calls[-1].request.tools.blocks) == (["text:9"], ())


def test_without_turn_ends_only_the_head_is_another() -> None:
    events = [*turn(0)[:3], question(1, 3), ThreadRewrite(4, 1, (), "edit"), Reply(5, ())]
    plain = [fingerprint(call) for call in planned(FinalAnswer(), events)]
    assert [call[11] for call in plain] == [
        fingerprint(call)[11] for call in Agent(name="a").plan(conversation(*events))
    ]


def cost(change: AgentChange | None) -> float:
    changes = [change] if change else []
    spec = StrategySpec.model_validate({"name": "x", "preset": "progressive", "changes": changes})
    terms = ReplaySetup(
        RuleBook(as_of=date(2026, 6, 1)),
        PriceBook.load(None, date(2026, 6, 1)),
        tokens="bytes",
        model="claude-sonnet-4-6",
    )
    tools = Part((given_block("tool", "", "t", 4_000),))
    session = Conversation("x", tuple(turns(8)), MODEL, tools, Part((given_block("text", "system", "s", 2_000),)))
    return float(sum(row.cost.total for row in replay_strategy(spec, session, terms).rows))


def test_one_schema_is_cheapest_many_cost_the_tools_layer_and_livelock_most() -> None:
    one, many = (cost(FinalAnswer(way="single_pass", schemas=n)) for n in (1, 8))
    two, lock = cost(FinalAnswer()), cost(FinalAnswer(way="livelock"))
    assert one < two < lock
    assert two < many
    assert many > 2.5 * one


def test_options_that_make_no_sense_are_told() -> None:
    with pytest.raises(ValueError, match="schemas=0: expected at least 1"):
        FinalAnswer(schemas=0)
    with pytest.raises(ValueError, match=r"confusion_rate=1\.1: expected a share"):
        FinalAnswer(confusion_rate=1.1)
