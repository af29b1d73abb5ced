"""Requests become conversations, and the conversations give back the requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.distributions import SyntheticSpec, synthetic
from cachecost.conversations.model import Aside, Conversation, Human, Inquiry, Reply, Results, Switch, ThreadRewrite
from cachecost.conversations.sessions import conversations_of
from cachecost.prompts.blocks import Message, Part, Thread, given_block
from cachecost.prompts.request import Request, block_of, text_block
from cachecost.providers.usage import Usage
from cachecost.strategies.presets import ARMS, PLACEMENTS
from cachecost.strategies.registry import build
from strategies.small_talks import SIX_CALLS, conversation

MODEL = "claude-opus-4-6"
HEADS = tuple(Part((given_block("text", "system", f"head {n}", 100),)) for n in range(2))
Said = tuple[str, str]


class Log:
    """A log in the making: calls 10 s apart, of messages like "user: hello"."""

    def __init__(self) -> None:
        self.root = Thread()
        self.calls: list[Call] = []

    def add(self, *texts: str, head: int = 0, model: str = MODEL, answer: str = "", **more: Any) -> Call:
        params = more.pop("params", {})
        at = more.pop("at", 10.0 * len(self.calls))
        request = Request(model, self.thread(texts), system=HEADS[head], params=params)
        response = (text_block("assistant", answer),) if answer else ()
        call = Call(request, at, timestamp="told", response=response, line=len(self.calls) + 1, **more)
        self.calls.append(call)
        return call

    def thread(self, texts: tuple[str, ...]) -> Thread:
        thread = self.root
        for text in texts:
            role, _, said = text.partition(": ")
            thread = thread.then(Message.of(role, (_block(role, said),)))
        return thread

    def conversations(self) -> list[Conversation]:
        return conversations_of(self.calls)


def _block(role: str, said: str) -> Any:
    if said.startswith("result"):
        return block_of(role, {"type": "tool_result", "tool_use_id": said, "content": said})
    return text_block(role, said)


def kinds(session: Conversation) -> list[str]:
    return [
        f"rewrite {event.why} {event.keep}" if isinstance(event, ThreadRewrite) else type(event).__name__.lower()
        for event in session.events
    ]


def sent(call: Call) -> tuple[Any, ...]:
    """What a request is, without the tree that it stands in."""
    request = call.request
    return (
        call.start,
        request.model,
        request.tools.digest,
        request.system.digest,
        dict(request.params),
        tuple(message.digest for message in request.thread.messages()),
        tuple((breakpoint.block_key, breakpoint.ttl) for breakpoint in request.breakpoints),
        request.automatic,
    )


def replanned(calls: list[Call], strategy: str = "none") -> list[tuple[Any, ...]]:
    """What a strategy makes of the conversations that `calls` are, in the order they start."""
    plans = (call for session in conversations_of(calls) for call in build(strategy).plan(session))
    return sorted(map(sent, plans), key=repr)


def recorded(plan: list[Call]) -> list[Call]:
    """A plan as somebody would have logged it."""
    return [
        Call(
            call.request,
            call.start,
            timestamp="told",
            first_token_s=call.first_token_s,
            response=call.output,
            billed=Usage(output_tokens=call.output_tokens or 0),
            line=number,
        )
        for number, call in enumerate(plan, 1)
    ]


# -------------------------------------------------------------------------------------- what is told


def test_a_growing_log_is_one_conversation() -> None:
    log = Log()
    log.add("user: a", answer="b")
    log.add("user: a", "assistant: b", "user: result 1", answer="c")
    log.add("user: a", "assistant: b", "user: result 1", "assistant: c", "user: d", answer="e")
    (session,) = log.conversations()
    assert kinds(session) == ["human", "reply", "results", "reply", "human", "reply"]
    assert (session.model, session.system, session.name) == (MODEL, HEADS[0], "conversation 1")
    assert [block.content for reply in session.replies for block in reply.blocks] == [
        {"type": "text", "text": text} for text in "bce"
    ]


def test_what_the_next_call_sends_as_the_answer_counts() -> None:
    log = Log()
    log.add("user: a", answer="with thinking that the client drops")
    log.add("user: a", "assistant: b", "user: c")
    (session,) = log.conversations()
    assert session.replies[0].blocks == log.calls[1].request.thread.messages()[1].blocks


def test_a_log_that_begins_in_the_middle() -> None:
    log = Log()
    log.add("user: a", "assistant: b", "user: c")
    (session,) = log.conversations()
    assert kinds(session) == ["rewrite start 0", "human", "reply"]


def test_a_schema_beside_the_main_thread_is_a_side_call() -> None:
    log = Log()
    schema = {"output_config": {"format": {"type": "json_schema"}}}
    log.add("user: a")
    log.add("user: a", "assistant: b", "user: apply?", params=schema, answer="yes")
    log.add("user: a", "assistant: b", "user: result 1")
    (session,) = log.conversations()
    assert kinds(session) == ["human", "reply", "aside", "results", "reply"]
    aside = session.events[2]
    assert isinstance(aside, Aside)
    assert aside.request.params == schema


def test_a_last_question_is_a_side_call_too() -> None:
    log = Log()
    log.add("user: a")
    log.add("user: a", "assistant: b", "user: title?", head=1, model="claude-haiku-4-5")
    assert [kinds(session) for session in log.conversations()] == [["human", "reply", "aside"]]


def test_a_branch_that_goes_on_is_a_conversation_of_its_own() -> None:
    log = Log()
    log.add("user: a")
    log.add("user: a", "assistant: b", "user: c")
    log.add("user: a", "assistant: b", "user: other")
    log.add("user: a", "assistant: b", "user: c", "assistant: d", "user: e")
    log.add("user: a", "assistant: b", "user: other", "assistant: f", "user: g")
    log.add("user: a", "assistant: b", "user: c", "assistant: d", "user: e", "assistant: h", "user: i")
    main, fork = log.conversations()
    assert kinds(main) == ["human", "reply"] * 4
    assert kinds(fork) == ["rewrite fork 0", "human", "reply", "human", "reply"]


def test_another_model_in_the_middle_is_a_switch() -> None:
    log = Log()
    log.add("user: a")
    log.add("user: a", "assistant: b", "user: c", model="claude-sonnet-4-6", params={"speed": "fast"})
    (session,) = log.conversations()
    assert kinds(session) == ["human", "reply", "switch", "human", "reply"]
    switch = session.events[2]
    assert isinstance(switch, Switch)
    assert (switch.model, switch.params) == ("claude-sonnet-4-6", {"speed": "fast"})


def test_old_results_taken_out_are_an_edit() -> None:
    log = Log()
    log.add("user: a", "assistant: b", "user: result long", "assistant: c", "user: d")
    log.add("user: a", "assistant: b", "user: result -", "assistant: c", "user: d", "assistant: e", "user: f")
    (session,) = log.conversations()
    assert kinds(session) == ["rewrite start 0", "human", "reply", "rewrite edit 2", "human", "reply"]


@pytest.mark.parametrize(("session", "expected"), [("s", 1), ("", 2)])
def test_only_a_named_session_tells_a_compaction_from_a_new_one(session: str, expected: int) -> None:
    log = Log()
    log.add("user: a", "assistant: b", "user: c", session=session)
    log.add("user: a", "assistant: b", "user: c", "assistant: d", "user: e", session=session)
    log.add("user: summary", session=session)
    conversations = log.conversations()
    assert len(conversations) == expected
    if session:
        assert (conversations[0].name, kinds(conversations[0])[-3:]) == (
            "s",
            ["rewrite compaction 0", "human", "reply"],
        )


@pytest.mark.parametrize("more", [{"session": "2"}, {"workspace": "2"}, {"host": "bedrock"}, {"is_batch": True}])
def test_calls_of_different_places_never_go_on_from_each_other(more: dict[str, Any]) -> None:
    log = Log()
    log.add("user: a")
    log.add("user: a", "assistant: b", "user: c", **more)
    one, other = log.conversations()
    assert (one.host, one.workspace, one.is_batch) == (None, "", False)
    assert (other.host, other.workspace, other.is_batch) == (
        more.get("host"),
        more.get("workspace", ""),
        more.get("is_batch", False),
    )
    (call,) = build("none").plan(other)
    assert (call.host, call.workspace, call.is_batch) == (other.host, other.workspace, other.is_batch)


def test_failed_calls_are_left_out_and_it_is_said() -> None:
    log, notes = Log(), list[str]()
    log.add("user: a", status=529)
    log.add("user: a")
    (session,) = conversations_of(log.calls, notes.append)
    assert kinds(session) == ["human", "reply"]
    assert notes == ["1 failed or refused call: not part of a conversation"]


def test_the_same_request_twice_at_once_is_asked_twice() -> None:
    log = Log()
    log.add("user: a", at=5.0)
    log.add("user: a", at=5.0)
    assert replanned(log.calls) == sorted(map(sent, log.calls), key=repr)


# -------------------------------------------------------------------------------------- round trips


@pytest.mark.parametrize("strategy", [agent.name for agent in PLACEMENTS if not agent.inquiry])
def test_a_plan_gives_back_its_requests(strategy: str) -> None:
    plan = list(build(strategy).plan(conversation(*SIX_CALLS, params={"thinking": {"type": "adaptive"}})))
    assert replanned(recorded(plan), strategy) == sorted(map(sent, plan), key=repr)


@pytest.mark.parametrize(
    "strategy", [agent.name for agent in ARMS if agent.inquiry and agent.inquiry.breakpoints == "same"]
)
def test_questions_come_back_as_side_calls(strategy: str) -> None:
    """Under the placement that all those arms share; what asked them is no longer known, nor needed."""
    session = synthetic(SyntheticSpec(seed=33, turns=4, model=MODEL))
    session = replace(session, events=tuple(event for event in session.events if not isinstance(event, Inquiry)))
    question = Inquiry(session.events[1].at, text_block("user", "apply?"), text_block("assistant", "yes"))
    place = next(n for n, event in enumerate(session.events) if isinstance(event, Results))
    asked = replace(session, events=(*session.events[:place], question, *session.events[place:]))
    plan = list(build(strategy).plan(asked))
    assert any(call.purpose == "inquiry" for call in plan)
    assert replanned(recorded(plan), "base") == sorted(map(sent, plan), key=repr)


words = st.sampled_from(["a", "b", "result 1"])
said = st.builds(lambda role, text: f"{role}: {text}", st.sampled_from(["user", "user", "assistant", "system"]), words)
steps = st.tuples(
    st.integers(0, 5),
    st.integers(0, 3),
    st.lists(said, max_size=4),
    st.integers(0, 1),
    st.sampled_from(["", "", "s"]),
    st.sampled_from([{}, {}, {"tool_choice": {"type": "any"}}, {"max_tokens": 5}]),
    st.integers(0, 2),
)


@given(st.lists(steps, max_size=12))
@example([(0, 0, ["user: a"], 0, "", {}, 0), (0, 0, ["user: a"], 1, "", {}, 0), (0, 0, ["assistant: a"], 0, "", {}, 0)])
def test_any_log_gives_back_its_requests(drawn: list[tuple[Any, ...]]) -> None:
    """Whatever went on from whatever, was cut, repeated or sent otherwise: nothing is lost, nothing is made up."""
    log, known, now = Log(), list[tuple[str, ...]]([()]), 0.0
    for which, cut, more, head, session, params, pause in drawn:
        base = known[which % len(known)]
        texts = (*base[: len(base) - cut], *more)
        now += pause
        log.add(*texts, head=head, session=session, params=params, at=now, answer="x" if pause else "")
        known.append(texts)
    assert replanned(log.calls) == sorted(map(sent, log.calls), key=repr)


def test_how_much_two_threads_share() -> None:
    log = Log()
    one = log.thread(("user: a", "assistant: b", "user: c"))
    other = log.thread(("user: a", "assistant: b", "user: d", "assistant: e"))
    assert one.common(other).length == other.common(one).length == 2
    assert one.common(one).length == 3
    assert log.root.common(one).length == 0
    assert one.common(log.thread(("user: z",))).length == 0


def test_the_order_of_events_is_that_of_the_calls() -> None:
    session = conversation(*SIX_CALLS)
    (found,) = conversations_of(recorded(list(build("base").plan(session))))
    assert [type(event) for event in found.events] == [type(event) for event in session.events]
    assert [event.at for event in found.events if isinstance(event, Reply)] == [1, 3, 5, 7, 9, 11]
    assert [event.blocks[0].digest for event in found.events if isinstance(event, Human)] == [
        event.blocks[0].digest for event in session.events if isinstance(event, Human)
    ]


def test_what_cannot_be_told_apart_is_said() -> None:
    log, notes = Log(), list[str]()
    log.add("user: a")
    log.add("user: b")
    log.add("user: c", head=1)
    assert len(conversations_of(log.calls, notes.append)) == 3
    assert notes == [
        "1 conversation with the tools and system prompt of an earlier one: new or compacted, taken as new"
    ]
