"""Tools as text, lost sessions, repairs, reminders and heads that change: what is sent and when."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Any

import pytest
from small_talks import MODEL, SIX_CALLS, asked, conversation, fingerprint, head, question, result, said, used, user

from cachecost.conversations.calls import Call
from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results, Switch, ThreadRewrite
from cachecost.prompts.blocks import Block, Message, Part, given_block
from cachecost.prompts.request import Request
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.setup import ReplaySetup
from cachecost.simulation.strategy_ledger import replay_strategy
from cachecost.strategies.agent import Agent
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.messages import Reminder, Repairs, SessionResume, ToolAnswers, Unprompted
from cachecost.strategies.changes.prefix import DateInSystem, SplitSystem, TextTools, in_one_text
from cachecost.strategies.spec import StrategySpec


def turn(number: int) -> list[Event]:
    """A question of 20, a call of 30 with 7 of thinking, its result of 100, an answer of 40 tokens."""
    at = 60.0 * number
    thought = given_block("thinking", "assistant", f"t{number}", 7)
    return [
        Human(at, (given_block("text", "user", f"q{number}", 20),)),
        Reply(at + 1, (thought, given_block("tool_use", "assistant", f"u{number}", 30)), 0.5),
        Results(at + 5, (given_block("tool_result", "user", f"r{number}", 100),)),
        Reply(at + 5, (given_block("text", "assistant", f"a{number}", 40),)),
    ]


def turns(number: int) -> list[Event]:
    return [event for n in range(number) for event in turn(n)]


def planned(change: AgentChange, events: Iterable[Event] | Conversation) -> list[Call]:
    session = events if isinstance(events, Conversation) else conversation(*events)
    return list(Agent(name="a", changes=(change,)).plan(session))


def told(blocks: Iterable[Block]) -> str:
    return " ".join(f"{block.kind}:{block.tokens}" for block in blocks)


def shape(call: Call) -> list[str]:
    """The messages as sent: kinds and tokens."""
    return [told(message.blocks) for message in call.request.thread.messages()]


def digests(call: Call) -> list[bytes]:
    return [message.digest for message in call.request.thread.messages()]


FORKED = (*turns(2), ThreadRewrite(150, 4, (), "fork"), *turn(3))


@pytest.mark.parametrize(
    "change", [SessionResume(), Repairs(), Unprompted(rate=0), ToolAnswers(), SplitSystem(dynamic_tokens=1)]
)
def test_what_does_not_happen_changes_no_message(change: AgentChange) -> None:
    for events in (SIX_CALLS, FORKED):
        plain = [fingerprint(call) for call in Agent(name="a").plan(conversation(*events))]
        changed = [fingerprint(call) for call in planned(change, events)]
        assert [(*call[:10], call[11]) for call in changed] == [(*call[:10], call[11]) for call in plain]


# --- text_tools


def test_tools_are_text_in_the_system_prompt() -> None:
    calls = planned(TextTools(), turns(2))
    assert all(call.request.tools.blocks == () for call in calls)
    assert {told(call.request.system.blocks) for call in calls} == {"text:200 text:200 text:300 text:200"}
    assert len({id(call.request.system) for call in calls}) == 1
    assert shape(calls[2]) == ["text:20", "thinking:7 text:30", "text:100", "text:40", "text:20"]


@pytest.mark.parametrize(
    ("with_system", "system", "first"),
    [(False, "text:200 text:200", "text:300 text:200 text:20"), (True, "text:1", "text:400 text:300 text:200 text:20")],
)
def test_tools_are_text_in_the_first_message(with_system: bool, system: str, first: str) -> None:
    calls = planned(TextTools(place="first_message", with_system=with_system), FORKED)
    assert {told(call.request.system.blocks) for call in calls} == {system}
    assert [shape(call)[0] for call in calls] == [first] * 6
    assert shape(calls[-1])[1:] == [
        "thinking:7 text:30",
        "text:100",
        "text:40",
        "text:20",
        "thinking:7 text:30",
        "text:100",
    ]
    assert digests(calls[-1])[:4] == digests(calls[2])[:4]


def test_tools_that_change_change_the_first_message_or_the_system_prompt() -> None:
    more = Part((*head()[0].blocks, given_block("tool", "", "more", 50)))
    events = [*turns(1), Switch(30, MODEL, more, head()[1], {"tool_choice": {"type": "any"}}), *turn(1)]
    calls = planned(TextTools(place="first_message"), events)
    assert [shape(call)[0].split()[1] for call in calls] == ["text:200"] * 2 + ["text:250"] * 2
    assert digests(calls[2])[1:4] == [*digests(calls[1])[1:], Message.of("assistant", turn(0)[-1].blocks).digest]  # type: ignore[union-attr]
    calls = planned(TextTools(), events)
    assert [call.request.system.blocks[-1].tokens for call in calls] == [200] * 2 + [250] * 2
    assert calls[-1].request.params == {}


def test_texts_of_a_recording_hold_what_was_said() -> None:
    last = planned(TextTools(reminder_tokens=9), SIX_CALLS)[-1].request.thread.messages()
    texts = [[str((block.content or {}).get("text")) for block in message.blocks] for message in last]
    assert texts[1][1] == '{"type":"tool_use","id":"a","name":"look","input":{}}'
    assert texts[2][0] == '{"type":"tool_result","tool_use_id":"a","content":"found"}'
    assert last[1].has_thinking
    assert [n for n, message in enumerate(last) if message.blocks[-1].tokens == 9] == [0, 6, 10]


def test_a_reply_that_cannot_be_read_is_told_so_and_said_again() -> None:
    calls = planned(TextTools(parse_error_rate=0.5), turns(2))
    assert [call.start for call in calls] == [1, 3, 5, 61, 65]
    assert shape(calls[1]) == ["text:20", "thinking:7 text:30", "text:60"]
    assert shape(calls[2])[3:] == ["thinking:7 text:30", "text:100"]
    assert digests(calls[2])[1] != digests(calls[2])[3]
    assert len(planned(TextTools(parse_error_rate=1.0), FORKED)) == 9


def test_a_side_call_that_goes_on_from_the_main_thread_is_text_too() -> None:
    plain = conversation(*turn(0))
    thread = plain.root
    for event in turn(0):
        thread = thread.then(Message.of("assistant" if isinstance(event, Reply) else "user", event.blocks))  # type: ignore[union-attr]
    side = Request(MODEL, thread.then(Message.of("user", (result("z"),))), plain.tools, plain.system)
    no_tools = Request(MODEL, plain.root.then(Message.of("user", (user("hm"),))), Part(), plain.system)
    ends = [Aside(9, each, Reply(9, (said("so"),))) for each in (side, no_tools)]
    session = Conversation("small", (*plain.events, *ends), MODEL, plain.tools, plain.system, root=plain.root)
    calls = planned(TextTools(place="first_message"), session)
    assert shape(calls[2])[:4] == [*shape(calls[1]), "text:40"]
    assert shape(calls[2])[4].startswith("text:")
    assert calls[2].request.tools.blocks == ()
    assert shape(calls[3]) == ["text:None"]
    assert planned(TextTools(), session)[3].request.system is plain.system


def test_the_system_prompt_moves_only_with_the_tools() -> None:
    with pytest.raises(ValueError, match="with_system=True: only where place is first_message"):
        TextTools(with_system=True)


def test_blocks_in_one_text_are_counted_as_they_were() -> None:
    bare = [Block("tool_use", "assistant", bytes([n]) * 16, 40, counts={"cl100k": 9, f"only{n}": 1}) for n in (1, 2)]
    counted = in_one_text("user", bare)
    assert (counted.tokens, counted.counts, counted.size, counted.role) == (None, {"cl100k": 18}, 80, "user")
    assert in_one_text("user", [bare[0], given_block("text", "user", "x", 5)]).tokens == 10 + 5
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 999}}
    shown = Block("tool_result", "user", b"i" * 16, 999, content={"content": [picture, {"type": "text", "text": "t"}]})
    assert in_one_text("user", [shown]).size < 90


# --- session_resume


@pytest.mark.parametrize(("rate", "lost"), [(0.0, ()), (0.5, (1, 3)), (1.0, (1, 2, 3))])
def test_a_lost_session_is_told_in_one_message(rate: float, lost: tuple[int, ...]) -> None:
    calls = planned(SessionResume(loss_rate=rate), turns(4))
    lengths = [len(shape(call)) for call in calls[::2]]
    since = [n - max((each for each in lost if each <= n), default=0) for n in range(4)]
    assert lengths == [1 + 4 * n for n in since]
    for n in lost:
        assert shape(calls[2 * n]) == [f"text:{190 * n} text:20"]


def test_messages_sent_twice_are_twice_in_the_thread() -> None:
    calls = planned(SessionResume(duplicated_resend_rate=1.0), turns(3))
    assert [shape(call)[0] for call in calls] == ["text:20"] * 6
    assert [shape(calls[n])[4] for n in (2, 4)] == ["text:190 text:20"] * 2
    assert shape(calls[4])[8] == "text:380 text:20"


def test_going_back_behind_a_loss_begins_with_what_was_said() -> None:
    events = [*turns(2), ThreadRewrite(150, 4, (), "fork"), *turn(3)]
    calls = planned(SessionResume(loss_rate=0.5), events)
    assert shape(calls[2]) == ["text:190 text:20"]
    assert digests(calls[4]) == digests(list(Agent(name="a").plan(conversation(*events)))[4])


# --- repairs, unprompted


def test_unknown_tools_and_unreadable_calls_cost_a_call_each() -> None:
    calls = planned(Repairs(invalid_tool_rate=1.0), turn(0))
    assert [(call.start, shape(call)[-1]) for call in calls] == [
        (1, "text:20"),
        (3, "tool_result:60"),
        (5, "tool_result:100"),
    ]
    assert shape(calls[2])[1:4] == ["thinking:7 tool_use:30", "tool_result:60", "thinking:7 tool_use:30"]
    calls = planned(Repairs(parse_error_rate=1.0), turn(0))
    assert shape(calls[2])[1:4] == ["thinking:7 text:30", "text:60", "thinking:7 tool_use:30"]
    assert len(planned(Repairs(parse_error_rate=1.0, invalid_tool_rate=1.0), FORKED)) == 6 + 2 * 3


def test_calls_that_wait_never_start_together() -> None:
    """What an earlier one writes could not be read then."""
    quick: list[Event] = [
        Human(0, (user("go"),)),
        Reply(1, (used("a"),)),
        Results(1.5, (result("a"),)),
        Reply(1.6, (used("b"),)),
    ]
    events: list[Event] = [*quick, Results(1.7, (result("b"),)), Reply(1.8, (said("so"),)), *turn(1)]
    calls = planned(Repairs(invalid_tool_rate=0.5), events)
    assert [call.start for call in calls] == [1, 3, 5, 7, 61, 63, 65]


def test_each_call_without_its_tool_gets_its_error() -> None:
    events: list[Event] = [
        Human(0, (user("go"),)),
        Reply(1, (used("a"), used("b"))),
        Results(2, (result("a"), result("b"))),
        Reply(3, ()),
    ]
    assert shape(planned(Repairs(invalid_tool_rate=1.0), events)[1])[-1] == "tool_result:60 tool_result:60"


def test_a_lost_result_is_a_placeholder_and_its_tool_is_called_again() -> None:
    calls = planned(Repairs(orphan_rate=0.5), turns(2))
    assert [call.start for call in calls] == [1, 5, 7, 61, 65]
    assert shape(calls[2])[1:] == ["thinking:7 tool_use:30", "tool_result:60", "tool_use:100", "tool_result:100"]
    assert digests(calls[2])[-1] == Message.of("user", turn(0)[2].blocks).digest  # type: ignore[union-attr]
    once = planned(Repairs(orphan_rate=1.0, calls_again=False), turns(2))
    assert [shape(call)[-1] for call in once] == ["text:20", "tool_result:60"] * 2


def test_of_two_results_one_is_lost() -> None:
    found = tuple(given_block("tool_result", "user", f"r{n}", 100) for n in range(2))
    events: list[Event] = [*turn(0)[:2], Results(2, (*found, given_block("text", "user", "note", 3))), Reply(3, ())]
    calls = planned(Repairs(orphan_rate=0.5), events)
    assert shape(calls[2])[2:] == ["tool_result:60 tool_result:100 text:3", "tool_use:100", "tool_result:100"]
    assert calls[2].request.thread.messages()[-1].blocks == found[:1]


def test_repairs_know_calls_that_are_text() -> None:
    agent = Agent(name="a", changes=(TextTools(), Repairs(invalid_tool_rate=1.0, orphan_rate=1.0)))
    calls = list(agent.plan(conversation(*turn(0))))
    assert shape(calls[-1])[1:] == [
        "thinking:7 text:30", "text:60", "thinking:7 text:30", "text:60", "text:100", "text:100"
    ]  # fmt: skip


def test_a_fork_back_takes_failed_attempts_with_it() -> None:
    events = [*turn(0), ThreadRewrite(150, 1, (), "fork"), *turn(3)[1:]]
    calls = planned(Repairs(invalid_tool_rate=0.5), events)
    assert [len(shape(call)) for call in calls] == [1, 3, 5, 1, 3]


@pytest.mark.parametrize(("rate", "number"), [(0.0, 4), (0.25, 5), (1.0, 8)])
def test_a_tool_that_nobody_asked_to_call(rate: float, number: int) -> None:
    calls = planned(Unprompted(rate=rate), turns(2))
    assert len(calls) == number
    errors = sum(line == "tool_result:30" for line in shape(calls[-1]))
    assert errors == number - 4
    assert [told(call.output) for call in calls].count("tool_use:40") == number - 4


# --- reminder


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({}, ["text:20 text:9", "thinking:7 tool_use:30", "tool_result:100", "text:40", "text:20 text:9"]),
        (
            {"position": "first"},
            ["text:9 text:20", "thinking:7 tool_use:30", "tool_result:100", "text:40", "text:9 text:20"],
        ),
        (
            {"when": "every_call"},
            ["text:20 text:9", "thinking:7 tool_use:30", "tool_result:100 text:9", "text:40", "text:20 text:9"],
        ),
        ({"earlier": "removed"}, ["text:20", "thinking:7 tool_use:30", "tool_result:100", "text:40", "text:20 text:9"]),
    ],
)
def test_where_reminders_stand(options: dict[str, Any], messages: list[str]) -> None:
    assert shape(planned(Reminder(tokens=9, **options), turns(2))[2]) == messages


def test_a_reminder_that_moves_on_is_in_one_message_of_each_call() -> None:
    calls = planned(Reminder(tokens=9, earlier="removed", when="every_call"), FORKED)
    assert [[n for n, line in enumerate(shape(call)) if line.endswith("text:9")] for call in calls] == [
        [0], [2], [4], [6], [4], [6]
    ]  # fmt: skip
    human = planned(Reminder(tokens=9, earlier="removed"), FORKED)
    assert [[n for n, line in enumerate(shape(call)) if line.endswith("text:9")] for call in human] == [
        [0], [0], [4], [4], [4], [4]
    ]  # fmt: skip


def test_after_a_fork_into_the_last_reminder_the_next_message_has_one() -> None:
    events = [*turns(2), ThreadRewrite(150, 6, (), "fork"), *turn(1)[2:]]
    calls = planned(Reminder(tokens=9, earlier="removed"), events)
    assert shape(calls[-1])[4] == "text:20 text:9"
    again = [*turns(2), ThreadRewrite(150, 0, (Message.of("user", (user("x"),)),), "fork"), Reply(151, (said("y"),))]
    assert shape(planned(Reminder(tokens=9, earlier="removed"), again)[-1]) == ["text:None text:9"]


# --- date_in_system, split_system


@pytest.mark.parametrize(
    ("period", "stamps"),
    [("second", [0, 1, 2, 3]), ("minute", [0, 0, 1, 1]), ("hour", [0] * 4), ("day", [0] * 4)],
)
def test_the_date_makes_another_head_where_its_period_ends(period: Any, stamps: list[int]) -> None:
    systems = [call.request.system for call in planned(DateInSystem(period=period), turns(2))]
    kinds = list(dict.fromkeys(map(id, systems)))
    assert [kinds.index(id(system)) for system in systems] == stamps
    assert {told(system.blocks) for system in systems} == {"text:200 text:200 text:20"}


def test_a_day_ends_at_midnight_and_the_first_block_is_first() -> None:
    late: list[Event] = [Human(86_390, (user("a"),)), Reply(86_399.9, (said("b"),)), Human(86_399.95, (user("c"),))]
    calls = planned(DateInSystem(period="day", position="first", tokens=8), [*late, Reply(86_400, ())])
    assert [told(call.request.system.blocks) for call in calls] == ["text:8 text:200 text:200"] * 2
    assert calls[0].request.system.blocks[0].digest != calls[1].request.system.blocks[0].digest
    assert calls[0].request.system.blocks[1] is calls[1].request.system.blocks[1]


def test_a_dated_head_keeps_what_is_switched() -> None:
    more = Part((given_block("text", "system", "other", 77),))
    events = [*turn(0), Switch(20, "claude-haiku-4-5", head()[0], more, {"max_tokens": 5}, is_chosen=True), *turn(2)]
    calls = planned(DateInSystem(period="minute"), events)
    assert [told(call.request.system.blocks) for call in calls] == ["text:200 text:200 text:20"] * 2 + [
        "text:77 text:20"
    ] * 2
    assert [call.request.model for call in calls] == [MODEL] * 2 + ["claude-haiku-4-5"] * 2
    assert calls[-1].request.params == {"max_tokens": 5}


def test_a_side_call_with_the_main_head_is_dated_as_it_starts() -> None:
    plain = conversation(*turn(0))
    side = Request(MODEL, plain.root.then(Message.of("user", (user("hm"),))), plain.tools, plain.system)
    session = Conversation("x", (*plain.events, Aside(99, side, Reply(99, ()))), MODEL, plain.tools, plain.system)
    calls = planned(DateInSystem(period="minute"), session)
    dates = [call.request.system.blocks[-1].digest for call in calls]
    assert dates[0] == dates[1] != dates[2]


@pytest.mark.parametrize(
    ("options", "heads", "versions"),
    [
        ({"change_rate": 0.0}, "text:200 text:200 text:500", [0] * 8),
        ({"change_rate": 1.0, "order": "dynamic_first"}, "text:500 text:200 text:200", [0, 0, 1, 1, 2, 2, 3, 3]),
        ({"change_rate": 0.5, "static_tokens": 90, "dynamic_tokens": 8}, "text:90 text:8", [0, 0, 1, 1, 1, 1, 2, 2]),
    ],
)
def test_the_dynamic_part_changes_with_turns(options: dict[str, Any], heads: str, versions: list[int]) -> None:
    systems = [call.request.system for call in planned(SplitSystem(**options), turns(4))]
    assert {told(system.blocks) for system in systems} == {heads}
    kinds = list(dict.fromkeys(map(id, systems)))
    assert [kinds.index(id(system)) for system in systems] == versions


# --- tool_answers


def test_a_question_is_answering_model_calling_the_tool_again() -> None:
    calls = planned(ToolAnswers(), asked(question(1, 50), question(2, 52)))
    assert [(call.start, call.purpose) for call in calls] == [(1, "main"), (50, "main"), (52, "main"), (101, "main")]
    kinds = [[block.kind for block in message.blocks] for message in calls[-1].request.thread.messages()]
    assert kinds == [["text"], ["text", "tool_use"], *[["tool_result"], ["tool_use"]] * 2, ["tool_result"]]
    assert [5_000 < sum(block.tokens or 0 for block in call.output) < 5_030 for call in calls] == [
        False,
        True,
        True,
        False,
    ]
    assert calls[-1].request.thread.messages()[-1].digest == Message.of("user", (result("a"),)).digest


def test_calls_made_at_once_ask_at_once() -> None:
    session = asked(
        question(1, 50, tool_use="a"),
        question(2, 50, tool_use="c"),
        question(3, 50, tool_use="c"),
        calls=("a", "b", "c"),
    )
    calls = planned(ToolAnswers(argument_tokens=7), session)
    lengths = [len(message.blocks) for message in calls[-1].request.thread.messages()]
    assert lengths == [1, 4, 3, 2, 2, 1, 1]
    last = calls[-1].request.thread.messages()
    assert last[2].blocks[1].digest == result("b").digest
    assert last[4].blocks[0].digest == result("a").digest
    assert last[6].blocks[0].digest == result("c").digest


@pytest.mark.parametrize(("rate", "number"), [(0.0, 3), (0.5, 4), (1.0, 5)])
def test_answers_that_are_not_valid_are_asked_for_twice_at_most(rate: float, number: int) -> None:
    assert len(planned(ToolAnswers(retry_rate=rate), asked(question(1, 50)))) == number


def test_arguments_are_as_long_as_they_were_if_nothing_is_assumed() -> None:
    events = [*turn(0)[:2], question(1, 3), *turn(0)[2:]]
    output = planned(ToolAnswers(argument_tokens=None), events)[1].output
    answer = question(1, 3).answer
    assert output[0].tokens == 30 + -(-answer.size // 4)


def test_questions_without_results_are_left() -> None:
    changed = ToolAnswers().apply_to(conversation(*turn(0)[:2], question(1, 3), *turn(1)), None)
    assert [len(list(session.inquiries)) for session in changed] == [1]
    changed = ToolAnswers().apply_to(conversation(*turn(0)[:2], question(1, 3)), None)
    assert [len(list(session.inquiries)) for session in changed] == [1]


# --- what it costs


def cost(change: AgentChange | None, model: str = MODEL, events: Iterable[Event] = tuple(turns(12))) -> float:
    spec = StrategySpec.model_validate({"name": "x", "preset": "progressive", "changes": [change] if change else []})
    terms = ReplaySetup(
        RuleBook(as_of=date(2026, 6, 1)), PriceBook.load(None, date(2026, 6, 1)), tokens="bytes", model=model
    )
    system = Part((given_block("text", "system", "s", 9_000),))
    session = Conversation("x", tuple(events), model, Part((given_block("tool", "", "t", 4_000),)), system)
    return float(sum(row.cost.total for row in replay_strategy(spec, session, terms).rows))


def test_seconds_at_the_head_write_all_every_time_at_its_end_the_thread_and_days_nothing() -> None:
    """home-generative-agent#617, jp #693. The block before the date has a breakpoint of its own."""
    plain, by_day = cost(None), cost(DateInSystem(period="day"))
    at_head, at_end = (cost(DateInSystem(position=where)) for where in ("first", "last"))
    assert at_head > 6 * plain
    assert 1.3 * plain < at_end < 2 * plain
    assert by_day < 1.01 * plain


def test_a_dynamic_part_costs_least_behind_the_static_one() -> None:
    spec = {"name": "x", "breakpoints": [{"system_block": {"which": "first"}}, "automatic"]}
    terms = ReplaySetup(
        RuleBook(as_of=date(2026, 6, 1)), PriceBook.load(None, date(2026, 6, 1)), tokens="bytes", model=MODEL
    )
    session = Conversation("x", tuple(turns(6)), MODEL, Part(), Part((given_block("text", "system", "s", 9_000),)))
    costs = []
    for order in ("static_first", "dynamic_first"):
        changes = [SplitSystem(change_rate=1.0, order=order)]
        rows = replay_strategy(StrategySpec.model_validate({**spec, "changes": changes}), session, terms).rows
        costs.append(float(sum(row.cost.total for row in rows)))
    assert 2 * costs[0] < costs[1]


def test_reminders_that_move_cost_more_than_those_that_stay() -> None:
    moved, kept = (cost(Reminder(earlier=how)) for how in ("removed", "kept"))
    assert moved > kept


def test_lost_and_doubled_sessions_cost_more() -> None:
    plain, lost, doubled = (
        cost(None),
        cost(SessionResume(loss_rate=0.5)),
        cost(SessionResume(duplicated_resend_rate=0.5)),
    )
    assert plain < lost < doubled
