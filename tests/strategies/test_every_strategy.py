"""What holds for every registered strategy, on conversations of every shape. A new one gets it for nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache, partial
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_talks import SIX_CALLS, asked, conversation, fingerprint, question, result, said, thought, used, user

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.model import Conversation, Event, Human, Inquiry, Reply, Results
from cachecost.prompts.blocks import Thread
from cachecost.prompts.request import accepts_breakpoint, block_at
from cachecost.providers.rules import RuleBook
from cachecost.simulation.workload import plan_calls
from cachecost.strategies.agent import Agent
from cachecost.strategies.placements import MAXIMUM_BREAKPOINTS, ORDER, Placement, Position, Primitive, View
from cachecost.strategies.registry import Strategy, build, names
from cachecost.strategies.spec import StrategySpec
from slow_cases import mostly_slow

CLAUDE = partial(RuleBook().rules, "anthropic")
every_strategy = pytest.mark.parametrize("name", mostly_slow(names(), 30))


def made(name: str) -> Strategy:
    return build(name, facts=CLAUDE if name == "best-per-provider" else None)  # no other must know its host


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Turns of calls with tools, thinking, empty text, mixed messages, pauses and questions."""
    events: list[Event] = []
    now = 0.0
    for turn in range(draw(st.integers(0, 3))):
        events.append(Human(now, (user(f"turn {turn}"),)))
        for loop in range(draw(st.integers(1, 3))):
            calls = [f"{turn}/{loop}/{n}" for n in range(draw(st.integers(0, 3)))]
            thinking = (thought(f"{turn}/{loop}"),) if draw(st.booleans()) else ()
            text = (said(draw(st.sampled_from(["", "well"]))),) if draw(st.booleans()) else ()
            events.append(Reply(now, (*thinking, *text, *map(used, calls)), draw(st.sampled_from([None, 0.5]))))
            asks = range(draw(st.integers(0, 2))) if calls else ()
            events += [question(n, now + n, n % 2, calls[0], draw(st.sampled_from(["boolean", "text"]))) for n in asks]
            now += draw(st.sampled_from([0.0, 2.0, 400.0]))
            besides = (user("by the way"),) if draw(st.booleans()) else ()
            if calls or besides:
                events.append(Results(now, (*map(result, calls), *besides)))
    return conversation(*events)


def room(strategy: Strategy) -> int:
    """Breakpoints a request may have: the API's limit, or more for an agent that is known to overflow."""
    return max(strategy.placement.slots, MAXIMUM_BREAKPOINTS) if isinstance(strategy, Agent) else MAXIMUM_BREAKPOINTS


def legal(call: Call, limit: int) -> bool:
    """Breakpoints within the limit, in prompt order, none twice, all on markable blocks of this very request."""
    request = call.request
    places = [
        (ORDER[breakpoint.layer], breakpoint.node.length if breakpoint.node else 0, breakpoint.index)
        for breakpoint in request.breakpoints
    ]
    nodes = {*request.thread.back(), None}
    return (
        len(request.breakpoints) + (request.automatic is not None) <= limit
        and places == sorted(set(places))
        and all(
            breakpoint.node in nodes and accepts_breakpoint(block_at(request, breakpoint))
            for breakpoint in request.breakpoints
        )
    )


@cache
def drawn() -> list[Conversation]:
    """Conversations that are drawn once: to draw them takes longer than to plan them, and there are 91 strategies."""
    found: list[Conversation] = []

    @settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
    @given(session=conversations())
    def draw(session: Conversation) -> None:
        found.append(session)

    draw()
    return found


def drawn_anew() -> Iterator[Conversation]:
    """The same with trees of their own, in which no other strategy has planned."""
    return (conversation(*session.events) for session in drawn())


@every_strategy
def test_breakpoints_are_legal_and_starts_in_order(name: str) -> None:
    strategy = made(name)
    for session in drawn_anew():
        calls = list(strategy.plan(session))
        starts = [call.start for call in calls]
        assert starts == sorted(starts), session
        assert all(legal(call, room(strategy)) for call in calls), session


@every_strategy
def test_the_main_calls_send_what_was_said(name: str) -> None:
    for session in drawn_anew():
        check_main_calls(made(name), session)


def check_main_calls(strategy: Strategy, session: Conversation) -> None:
    """One main call a reply; before each stand exactly the blocks of all events before it, as the same objects."""
    said_so_far: list[object] = []
    main = iter([call for call in strategy.plan(session) if call.purpose == "main"])
    for event in session.events:
        if isinstance(event, Inquiry):
            continue
        if isinstance(event, Reply):
            call = next(main)
            assert [id(block) for message in call.request.thread.messages() for block in message.blocks] == said_so_far
            assert (call.output, call.output_tokens) == (event.blocks, event.output_tokens)
            assert call.start >= event.at and call.first_token_s == (event.first_token_s or 0.0)
        said_so_far += [id(block) for block in event.blocks]
    assert next(main, None) is None


@every_strategy
def test_two_plans_are_the_same(name: str) -> None:
    session = asked(
        question(1, 50, 1), question(2, 50, 1), question(3, 60, 2), params={"thinking": {"type": "adaptive"}}
    )
    once, again = ([fingerprint(call) for call in made(name).plan(session)] for _ in range(2))
    assert once == again
    assert made(name).notes(session) == made(name).notes(session)


@every_strategy
def test_it_plans_the_same_where_others_planned_before(name: str) -> None:
    """Threads of most strategies grow in the tree of the recorded ones, which holds what each of them sent."""
    session = asked(question(1, 50, 1), question(2, 50, 1), params={"thinking": {"type": "adaptive"}})
    alone = [fingerprint(call) for call in plan_calls(made(name), [session], Thread())]
    for other in ("base", "answer_inquiry, forced", "cheaper model, cold", name):
        list(plan_calls(made(other), [session]))
    assert [fingerprint(call) for call in plan_calls(made(name), [session])] == alone


def test_changed_conversations_grow_trees_of_their_own() -> None:
    """A summary is named alike at any length: in a shared tree the first one would stand for all."""
    cut = StrategySpec.model_validate({"preset": "base", "changes": [{"compaction": {"at": 0.01}}]})
    for strategy in (build(cut, facts=CLAUDE), made("rfc013-tree")):
        assert isinstance(strategy, Agent)
        assert not strategy.shares_threads
        first = next(plan_calls(strategy, [session := conversation(*SIX_CALLS)]))
        assert first.request.thread.up_to(0) is not session.root
    assert next(plan_calls(made("base"), [session])).request.thread.up_to(0) is session.root


@every_strategy
def test_parts_are_made_once(name: str) -> None:
    """Rendering is shared by identity: the main thread has one tools part and one system part."""
    calls = [call for call in made(name).plan(conversation(*SIX_CALLS)) if call.purpose == "main"]
    assert len({(id(call.request.tools), id(call.request.system)) for call in calls}) == 1


@every_strategy
def test_it_says_who_does_it_so_and_when(name: str) -> None:
    strategy = made(name)
    assert strategy.name == name
    assert strategy.source
    assert len(strategy.date) == 10 and strategy.date[:3] == "202"


@every_strategy
def test_questions_are_asked_once_each_or_the_notes_say_why_not(name: str) -> None:
    session = asked(*(question(n, 50 + n) for n in range(5)))
    numbers = [call.inquiry for call in made(name).plan(session) if call.purpose == "inquiry"]
    assert numbers == [1, 2, 3, 4, 5] or (numbers == [] and "not asked" in " ".join(made(name).notes(session)))


def long_talk(turns: int) -> Conversation:
    """Turns of three calls: two parallel tools, a question, a mixed message."""
    events: list[Event] = []
    for turn in range(turns):
        at = 10.0 * turn
        one, two = f"{turn}a", f"{turn}b"
        events += [
            Human(at, (user(f"turn {turn}"),)),
            Reply(at + 1, (thought(str(turn)), used(one), used(two))),
            question(turn, at + 2, turn, one),
            Results(at + 3, (result(one), result(two))),
            Reply(at + 4, (used(f"{turn}c"),)),
            Results(at + 5, (result(f"{turn}c"), user("mind the tests"))),
            Reply(at + 6, (said(f"done {turn}"),)),
        ]
    return conversation(*events)


def lines_run(strategy: Agent | Strategy, session: Conversation) -> int:
    """Work as Python lines run, which no machine's speed changes."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        for _ in strategy.plan(session):
            pass
    finally:
        sys.settrace(before)
    return lines


@pytest.mark.parametrize("name", mostly_slow(names(), 20))
def test_planning_costs_work_for_what_is_new(name: str) -> None:
    """Twice the turns, twice the lines run. A strategy that walked back to the start would need four times as many."""
    lines_run(made(name), long_talk(2))
    single, double = (lines_run(made(name), long_talk(turns)) for turns in (30, 60))
    assert 1.9 < double / single < 2.15


class Forgetful(Primitive):
    """Lists the whole thread for each call."""

    def positions(self, view: View) -> Iterator[Position]:
        assert [message for message in view.thread.messages() if message.role]
        return iter(())


def test_the_measure_of_work_sees_a_strategy_that_lists_the_thread() -> None:
    bad = Agent(name="bad", placement=Placement((Forgetful(),)))
    single, double = (lines_run(bad, long_talk(turns)) for turns in (30, 60))
    assert double / single > 3


@every_strategy
def test_threads_are_shared_not_copied(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message of the main thread is one node, a question one, a retry two; the root is the conversation's."""
    nodes = 0
    original = Thread.__init__

    def counted(self: Thread, *arguments: Any) -> None:
        nonlocal nodes
        nodes += 1
        original(self, *arguments)

    session = long_talk(30)
    monkeypatch.setattr(Thread, "__init__", counted)
    calls = list(made(name).plan(session))
    messages = sum(not isinstance(event, Inquiry) for event in session.events)
    questions = sum(call.purpose == "inquiry" for call in calls)
    retries = sum(call.purpose == "retry" for call in calls)
    assert nodes == messages + questions + 2 * retries


def test_a_model_must_be_known_from_somewhere() -> None:
    nameless = replace(asked(), model=None)
    with pytest.raises(CannotEvaluate, match="strategy 'base': no model is given and small names none"):
        list(build("base").plan(nameless))
    assert {call.request.model for call in build("base", model="m").plan(nameless)} == {"m"}
    assert {call.request.model for call in build("base", model="m").plan(asked())} == {"m"}
    assert {call.request.model for call in Agent(name="x", model="own").plan(asked())} == {"own"}


def test_parameters_go_over_the_recorded_ones_and_none_takes_one_away() -> None:
    agent = Agent(name="x", params={"thinking": None, "max_tokens": 5})
    session = asked(params={"thinking": {"type": "adaptive"}, "speed": "fast"})
    assert {repr(call.request.params) for call in agent.plan(session)} == {"{'speed': 'fast', 'max_tokens': 5}"}


def test_a_reply_without_blocks_is_a_call_but_no_message() -> None:
    session = conversation(Human(0, (user("a"),)), Reply(1, ()), Human(2, (user("b"),)), Reply(3, (said("c"),)))
    calls = list(build("automatic").plan(session))
    assert [call.request.thread.length for call in calls] == [1, 2]
    assert [call.turn for call in calls] == [1, 2]


def test_recorded_starts_are_kept_even_if_two_are_the_same() -> None:
    session = conversation(
        Human(0, (user("a"),)), Reply(1, (said("b"),)), Results(1, (user("c"),)), Reply(1, (said("d"),))
    )
    assert [call.start for call in build("automatic").plan(session)] == [1, 1]
