"""Conversations that begin later, or in which people pause longer, and scenarios that ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cachecost.base.errors import InputError
from cachecost.conversations.model import Conversation, Event, Human, Inquiry, Reply, Results, Switch, ThreadRewrite
from cachecost.prompts.blocks import NOTHING, Message
from cachecost.prompts.request import text_block
from cachecost.scenario import from_mapping
from cachecost.scenario.conversations import begin_at_turn, load_conversations, stretch_pauses
from cachecost.strategies.agent import Agent

SETTINGS = Switch(5, "claude-haiku-4-5", NOTHING, NOTHING, {})


def human(at: float, text: str) -> Human:
    return Human(at, (text_block("user", text),))


def reply(at: float, text: str) -> Reply:
    return Reply(at, (text_block("assistant", text),))


def results(at: float, text: str) -> Results:
    return Results(at, (text_block("user", text),))


ASKED = Inquiry(2.5, text_block("user", "really?"), text_block("assistant", "yes"))
TURNS: tuple[Event, ...] = (
    human(0, "one"),
    reply(1, "a"),
    ASKED,
    results(3, "found"),
    reply(4, "b"),
    SETTINGS,
    human(100, "two"),
    reply(101, "c"),
    human(500, "three"),
    reply(501, "d"),
)


def talk(*events: Event) -> Conversation:
    return Conversation("small", events or TURNS, "claude-opus-4-6")


def threads(conversation: Conversation) -> list[list[str]]:
    """What each call sends, in words."""
    calls = Agent(name="a").plan(conversation)
    return [
        [
            str((block.content or {}).get("text"))
            for message in call.request.thread.messages()
            for block in message.blocks
        ]
        for call in calls
    ]


@pytest.mark.parametrize(
    ("turn", "sent"),
    [
        (1, [["one"], ["one", "a", "found"], ["one", "a", "found", "b", "two"]]),
        (2, [["two"], ["two", "c", "three"]]),
        (3, [["three"]]),
        (4, []),
    ],
)
def test_from_a_turn_on_nothing_before_it_is_in_a_prompt(turn: int, sent: list[list[str]]) -> None:
    assert threads(begin_at_turn(talk(), turn))[: len(sent)] == sent
    assert len(threads(begin_at_turn(talk(), turn))) == {1: 4, 2: 2, 3: 1, 4: 0}[turn]


def test_settings_of_earlier_turns_hold_and_their_questions_go() -> None:
    begun = begin_at_turn(talk(), 2)
    assert SETTINGS in begun.events
    assert begun.inquiries == []
    assert begin_at_turn(talk(), 1).inquiries == [ASKED]


def said_before(why: str) -> ThreadRewrite:
    return ThreadRewrite(0, 0, (Message.of("user", (text_block("user", "before"),)),), why)


def test_a_rewrite_means_the_messages_it_meant() -> None:
    """What a recording starts with counts; a rewrite that keeps some of it keeps those that are still sent."""
    kept = ThreadRewrite(600, 8, (), "edit")  # before, one, a, found, b, two, c, three
    begun = begin_at_turn(talk(said_before("start"), *TURNS, kept, reply(601, "e")), 2)
    assert threads(begun)[-1] == ["two", "c", "three"]


def test_a_rewrite_to_before_the_start_keeps_nothing_of_it() -> None:
    other = Message.of("user", (text_block("user", "other"),))
    begun = begin_at_turn(talk(*TURNS, ThreadRewrite(600, 2, (other,), "fork"), reply(601, "e")), 2)
    assert threads(begun)[-1] == ["other"]


@pytest.mark.parametrize(
    ("factor", "at"),
    [
        (1.0, [0, 1, 2.5, 3, 4, 5, 100, 101, 500, 501]),
        (2.0, [0, 1, 2.5, 3, 4, 5, 195, 196, 994, 995]),
        (0.0, [0, 1, 2.5, 3, 4, 5, 5, 6, 6, 7]),
    ],
)
def test_pauses_before_people_alone_stretch(factor: float, at: Sequence[float]) -> None:
    assert [event.at for event in stretch_pauses(talk(), factor).events] == at


SCENARIO: dict[str, Any] = {
    "format": 1,
    "name": "small",
    "model": "claude-opus-4-6",
    "conversation": {"synthetic": {"seed": 1, "turns": 4, "calls": 2, "pauses": {"turn": 100, "loop": 10}}},
    "strategies": ["none"],
}


def conversation_of(**keys: Any) -> Conversation:
    mapping = {**SCENARIO, "conversation": {**SCENARIO["conversation"], **keys}}
    (found,) = load_conversations(from_mapping(mapping, Path()), Path()).conversations
    return found


def test_a_scenario_asks_for_a_later_start_then_for_turns_then_for_pauses() -> None:
    whole, part = conversation_of(), conversation_of(from_turn=2, turns=2, pause_factor=3.0)
    humans = [event for event in whole.events if isinstance(event, Human)]
    kept = [event for event in part.events if isinstance(event, Human)]
    assert [event.blocks[0].digest for event in kept] == [event.blocks[0].digest for event in humans[1:3]]
    assert kept[1].at - kept[0].at == 10 + 3 * 100


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"from_turn": 0}, "conversation.from_turn: expected at least 1; got 0"),
        ({"from_turn": 1.5}, "conversation.from_turn: expected a whole number; got '1.5'"),
        ({"pause_factor": -1}, "conversation.pause_factor: expected at least 0.0; got -1"),
    ],
)
def test_what_is_no_turn_or_factor_is_an_error(keys: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError) as error:
        conversation_of(**keys)
    assert str(error.value) == f"scenario {why}"
