"""What a question's call is made of, beside the main call before it, in each arm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from small_talks import MODEL, asked, conversation, question, result, said, spelled, thought, used, user

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.model import Conversation, Human, Reply, Results
from cachecost.prompts.blocks import NOTHING, Thread, given_block
from cachecost.prompts.request import last_breakpoint_place
from cachecost.strategies.agent import ANSWER_TOOL, Agent, InquiryOptions
from cachecost.strategies.placements import Automatic, BeforeHuman, LastMessage, LastTool, Placement, SystemBlock
from cachecost.strategies.presets import BASE, PRESETS

FORCED = {"type": "tool", "name": ANSWER_TOOL}
CHEAPER_MODEL = "claude-haiku-4-5"
MANUAL = {"type": "enabled", "budget_tokens": 4096}
ADAPTIVE = {"type": "adaptive"}
BOOLEAN = {
    "type": "json_schema",
    "schema": {
        "type": "object",
        "properties": {"answer": {"type": "boolean"}},
        "required": ["answer"],
        "additionalProperties": False,
    },
}


@dataclass(frozen=True)
class Facts:
    context_window: int = 200_000
    accepts_forced_choice: bool = True


def agent(**options: Any) -> Agent:
    return Agent(name="x", placement=Placement(BASE), inquiry=InquiryOptions(**options))


def plan(strategy: Agent, session: Conversation) -> list[Call]:
    return list(strategy.plan(session))


def side_calls(strategy: Agent, session: Conversation) -> list[Call]:
    return [call for call in strategy.plan(session) if call.inquiry is not None]


def one_side(strategy: Agent, params: dict[str, Any] | None = None) -> Call:
    return side_calls(strategy, asked(question(1, 50), params=params))[0]


def test_a_question_stands_between_two_main_calls() -> None:
    first, side, second = plan(agent(), asked(question(1, 50)))
    assert [(call.start, call.purpose, call.turn, call.inquiry) for call in (first, side, second)] == [
        (1, "main", 1, None),
        (50, "inquiry", 1, 1),
        (101, "main", 1, None),
    ]
    assert (first.first_token_s, side.first_token_s) == (0.5, 0.0)


def test_a_side_call_goes_on_from_the_main_thread_and_leaves_no_trace_in_it() -> None:
    first, side, second = plan(agent(), asked(question(1, 50)))
    fork = side.request.thread.parent
    assert fork is not None and fork is second.request.thread.parent
    assert fork.parent is first.request.thread
    assert [message.role for message in second.request.thread.messages()] == ["user", "assistant", "user"]


def test_a_question_follows_a_paused_result_and_is_a_human_message() -> None:
    inquiry = question(1, 50, tool_use="a")
    side = side_calls(agent(), asked(inquiry))[0]
    message = side.request.thread.message
    assert message is not None and message.is_human
    assert [block.kind for block in message.blocks] == ["tool_result", "text"]
    assert message.blocks[0].content == {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": "Paused by question 1.",
    }
    assert message.blocks[1] is inquiry.question
    assert side.output[0] is inquiry.answer


def test_two_questions_of_one_tool_call_share_the_main_thread_only() -> None:
    one, two = side_calls(agent(), asked(question(1, 50, 1, "a"), question(2, 60, 2, "a")))
    assert one.request.thread.parent is two.request.thread.parent
    assert one.request.thread.message and two.request.thread.message
    assert one.request.thread.message.blocks[0].digest != two.request.thread.message.blocks[0].digest


@pytest.mark.parametrize(
    ("tool_use", "answered"),
    [("b", ["a", "c", "b"]), ("c", ["a", "b", "c"]), ("", ["a", "b", "c"]), ("unknown", ["a", "b", "unknown"])],
)
def test_every_open_call_gets_a_result(tool_use: str, answered: list[str]) -> None:
    side = side_calls(agent(), asked(question(1, 50, tool_use=tool_use), calls=("a", "b", "c")))[0]
    assert side.request.thread.message is not None
    contents = [block.content or {} for block in side.request.thread.message.blocks[:-1]]
    assert [content["tool_use_id"] for content in contents] == answered
    assert [content["content"] for content in contents] == ["Not finished yet."] * 2 + ["Paused by question 1."]


def test_calls_without_content_get_results_by_their_place() -> None:
    calls = tuple(given_block("tool_use", "assistant", f"call {n}", 30) for n in range(2))
    session = conversation(Human(0, (user("go"),)), Reply(1, calls), question(1, 5, tool_use="toolu_1"))
    side = side_calls(agent(), session)[0]
    assert side.request.thread.message is not None
    contents = [block.content or {} for block in side.request.thread.message.blocks[:-1]]
    assert [content["tool_use_id"] for content in contents] == ["call_0", "toolu_1"]


def test_an_always_present_tool_stands_last_in_every_call() -> None:
    session = asked(question(1, 50), question(2, 60))
    calls = plan(agent(tool_tokens=60), session)
    tools = calls[0].request.tools
    assert all(call.request.tools is tools for call in calls)
    assert tools.blocks[:-1] == session.tools.blocks
    assert (tools.blocks[-1].tokens, tools.blocks[-1].kind, tools.blocks[-1].role) == (60, "tool", "")
    assert (tools.blocks[-1].content or {})["name"] == ANSWER_TOOL


@pytest.mark.parametrize(
    ("options", "main_tools", "side_tools"),
    [
        ({"through": "structured_output"}, 2, 2),
        ({"through": "structured_output", "tools": "none"}, 2, 0),
        ({"through": "answer_tool"}, 3, 3),
        ({"through": "answer_tool", "tools": "none"}, 3, 1),
        ({"through": "answer_tool", "always_present": False}, 2, 3),
        ({"through": "tool_per_question"}, 3, 3),
        ({"through": "tool_per_question", "always_present": False}, 2, 3),
        ({"through": "tool_per_question", "tools": "none"}, 3, 1),
    ],
)
def test_tools_of_the_main_and_of_the_side_call(options: dict[str, Any], main_tools: int, side_tools: int) -> None:
    main, side, *_ = plan(agent(**options), asked(question(1, 50)))
    assert (len(main.request.tools.blocks), len(side.request.tools.blocks)) == (main_tools, side_tools)


def test_structured_output_leaves_the_main_tools_alone() -> None:
    session = asked(question(1, 50))
    main, side, _ = plan(agent(through="structured_output"), session)
    assert main.request.tools is session.tools and side.request.tools is session.tools
    assert side_calls(agent(through="structured_output", tools="none"), session)[0].request.tools is NOTHING


def test_a_tool_per_question_takes_the_place_of_the_generic_one() -> None:
    """So that the tools before it are the same, and the prefix through it is not."""
    main, one, two, _ = plan(agent(through="tool_per_question"), asked(question(1, 50), question(2, 60)))
    assert main.request.tools.blocks[:-1] == one.request.tools.blocks[:-1] == two.request.tools.blocks[:-1]
    assert len({call.request.tools.blocks[-1].digest for call in (main, one, two)}) == 3


def test_a_tool_per_answer_type_is_shared_by_questions_of_that_type() -> None:
    session = asked(question(1, 50), question(2, 60), question(3, 70, answer_type="text"))
    one, two, three = side_calls(agent(through="tool_per_question", schema="per_type"), session)
    assert one.request.tools is two.request.tools
    assert one.request.tools is not three.request.tools


def formats(schema: str | None, *types: str) -> list[object]:
    inquiries = [question(n, 50 + n, answer_type=kind) for n, kind in enumerate(types)]
    calls = side_calls(agent(through="structured_output", schema=schema), asked(*inquiries))
    return [call.request.params["output_config"]["format"] for call in calls]


def test_schemas_are_stable_by_answer_type_or_unique() -> None:
    boolean, again, text = formats(None, "boolean", "boolean", "text")
    assert boolean == again == BOOLEAN
    assert text != boolean
    first, second = formats("unique", "boolean", "boolean")
    assert first != second


@pytest.mark.parametrize(
    ("options", "main", "side"),
    [
        ({}, {}, {"tool_choice": FORCED}),
        ({"tool_choice": "forced"}, {"max_tokens": 9}, {"max_tokens": 9, "tool_choice": FORCED}),
        ({"tool_choice": "auto"}, {}, {"tool_choice": {"type": "auto"}}),
        (
            {},
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            {"tool_choice": {**FORCED, "disable_parallel_tool_use": True}},
        ),
        ({"through": "structured_output"}, {}, {"output_config": {"format": BOOLEAN}}),
        (
            {"through": "structured_output", "tool_choice": "none"},
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            {"tool_choice": {"type": "none"}, "output_config": {"format": BOOLEAN}},
        ),
        (
            {"through": "structured_output"},
            {"tool_choice": {"type": "any"}},
            {"tool_choice": {"type": "any"}, "output_config": {"format": BOOLEAN}},
        ),
        (
            {"through": "structured_output", "tools": "none", "tool_choice": "none"},
            {"tool_choice": {"type": "any"}},
            {"output_config": {"format": BOOLEAN}},
        ),
        (
            {"through": "structured_output"},
            {"output_config": {"effort": "low"}},
            {"output_config": {"effort": "low", "format": BOOLEAN}},
        ),
        # what a forced choice does to thinking
        ({}, {"thinking": MANUAL}, {"tool_choice": FORCED}),
        ({}, {"thinking": ADAPTIVE}, {"tool_choice": FORCED, "thinking": ADAPTIVE}),
        ({"tool_choice": "auto"}, {"thinking": MANUAL}, {"tool_choice": {"type": "auto"}, "thinking": MANUAL}),
        (
            {"tool_choice": "auto", "thinking": "off"},
            {"thinking": ADAPTIVE},
            {"tool_choice": {"type": "auto"}, "thinking": {"type": "disabled"}},
        ),
        ({"through": "tool_per_question", "thinking": "same"}, {"thinking": MANUAL}, {"tool_choice": FORCED}),
        # another model keeps what shapes no prompt
        (
            {"through": "structured_output", "model": "other"},
            {"thinking": ADAPTIVE, "speed": "fast", "output_config": {"effort": "low"}, "max_tokens": 9},
            {"output_config": {"format": BOOLEAN}, "max_tokens": 9},
        ),
        ({"model": "other"}, {"output_config": {"effort": "low"}}, {"tool_choice": FORCED}),
        (
            {"through": "structured_output", "model": "other", "thinking": "same"},
            {"thinking": ADAPTIVE},
            {"output_config": {"format": BOOLEAN}, "thinking": ADAPTIVE},
        ),
        (
            {"through": "structured_output", "model": "other", "thinking": "off"},
            {"thinking": ADAPTIVE},
            {"output_config": {"format": BOOLEAN}, "thinking": {"type": "disabled"}},
        ),
    ],
)
def test_parameters_of_the_side_call(options: dict[str, Any], main: dict[str, Any], side: dict[str, Any]) -> None:
    call = one_side(agent(**options), main)
    assert call.request.params == side


def test_the_main_calls_keep_their_parameters() -> None:
    params = {"thinking": MANUAL, "output_config": {"effort": "low"}}
    calls = plan(agent(), asked(question(1, 50), params=params))
    assert [call.request.params for call in calls if call.purpose == "main"] == [params, params]


def test_structured_output_goes_with_the_main_choice() -> None:
    assert "tool_choice" not in one_side(agent(through="structured_output")).request.params


@pytest.mark.parametrize(
    ("breakpoints", "marked"),
    [
        ("same", "tools.1 system.1 auto"),
        ("none", ""),
        ("hint", "tools.1 system.1 2.1"),
        ((SystemBlock("first"),), "system.0"),
    ],
)
def test_breakpoints_of_the_side_call(breakpoints: Any, marked: str) -> None:
    assert spelled(one_side(agent(through="structured_output", breakpoints=breakpoints)).request) == marked


def test_a_hint_takes_the_place_of_whatever_moves_with_the_end() -> None:
    moving = Placement((LastTool(), LastMessage(), BeforeHuman(1), Automatic()), ttl="1h")
    asking = InquiryOptions(through="structured_output", breakpoints="hint")
    side = one_side(Agent(name="x", placement=moving, inquiry=asking))
    assert spelled(side.request) == "tools.1@1h 2.1@1h"


@pytest.mark.parametrize(
    ("order", "starts"),
    [
        ("sequential", [50.0, 52.0, 54.0, 70.0]),
        ("parallel", [50.0, 50.0, 52.0, 52.0]),
    ],
)
def test_questions_of_a_batch_start_together_or_after_each_other(order: str, starts: list[float]) -> None:
    """Batches of two: the second is asked at 50.2 and 70, and its first must wait for an answer of the first."""
    batch = (question(1, 50, 1), question(2, 50.1, 1), question(3, 50.2, 2), question(4, 70, 2))
    assert [call.start for call in side_calls(agent(order=order), asked(*batch))] == starts


def test_batches_that_interleave_still_start_together() -> None:
    batch = (question(1, 50, 1), question(2, 55, 2), question(3, 57, 1))
    calls = side_calls(agent(order="parallel"), asked(*batch))
    assert [(call.inquiry, call.start) for call in calls] == [(1, 50), (2, 50), (3, 55)]
    assert [message_text(call) for call in calls] == [1, 3, 2]


def message_text(call: Call) -> int:
    assert call.request.thread.message is not None
    content = call.request.thread.message.blocks[-1].content or {}
    return int(content["text"].split()[-1].rstrip("?"))


@pytest.mark.parametrize(("asked_at", "main_at"), [(50, 101), (99, 101), (99.5, 101.5), (100, 102)])
def test_the_next_main_call_waits_for_the_answer(asked_at: float, main_at: float) -> None:
    assert plan(agent(), asked(question(1, asked_at)))[-1].start == main_at


def failed(rate: float, number: int) -> list[int]:
    calls = side_calls(agent(retry_rate=rate), asked(*(question(n, 50 + n) for n in range(number))))
    return [call.inquiry or 0 for call in calls if call.purpose == "retry"]


@pytest.mark.parametrize(
    ("rate", "number", "retried"),
    [
        (0.0, 41, []),
        (0.05, 9, []),
        (0.05, 10, [10]),
        (0.05, 29, [10]),
        (0.05, 41, [10, 30]),
        (0.1, 15, [5, 15]),
        (0.3, 7, [2, 5]),  # 7 × 0.3 = 2.1 once, 7 × 0.09 = 0.63 twice: the next one that fails
        (0.5, 4, [1, 3, 3]),
        (1.0, 2, [1, 1, 2, 2]),
    ],
)
def test_retries_come_at_their_rate_and_at_most_twice(rate: float, number: int, retried: list[int]) -> None:
    assert failed(rate, number) == retried


def test_a_retry_appends_the_wrong_answer_and_what_is_wrong_with_it() -> None:
    inquiry = question(1, 50)
    first, second, third = side_calls(agent(retry_rate=1.0), asked(inquiry))
    assert [call.purpose for call in (first, second, third)] == ["inquiry", "retry", "retry"]
    assert [call.start for call in (first, second, third)] == [50, 52, 54]
    complaint = second.request.thread.message
    wrong = second.request.thread.parent
    assert complaint is not None and wrong is not None and wrong.message is not None
    assert wrong.parent is first.request.thread
    assert (complaint.role, wrong.message.role) == ("user", "assistant")
    assert wrong.message.blocks == first.output
    assert complaint.blocks[0].content == {
        "type": "text",
        "text": "That answer is not valid. Answer exactly true or false.",
    }
    assert third.request.thread.length == second.request.thread.length + 2
    assert first.request.tools is second.request.tools
    assert first.request.params == second.request.params


def test_retries_delay_what_waits_for_them() -> None:
    calls = plan(agent(retry_rate=1.0), asked(question(1, 97), question(2, 98)))
    assert [call.start for call in calls] == [1, 97, 99, 101, 103, 105, 107, 109]
    parallel = plan(agent(retry_rate=1.0, order="parallel"), asked(question(1, 97), question(2, 98)))
    assert [(call.start, call.inquiry) for call in parallel] == [
        (1, None), (97, 1), (97, 2), (99, 1), (99, 2), (101, 1), (101, 2), (103, None),
    ]  # fmt: skip


def cheaper(**options: Any) -> Agent:
    return replace(
        agent(through="structured_output", model="small", **options), facts=lambda model: Facts(context_window=1_000)
    )


def long_talk() -> Conversation:
    """Three turns; the main thread passes 90% of 1,000 tokens at three bytes a token, and a question follows."""
    events: list[Any] = []
    for turn in range(3):
        events += [
            Human(10 * turn, (given_block("text", "user", f"human {turn}", 100),)),
            Reply(10 * turn + 1, (given_block("tool_use", "assistant", f"call {turn}", 150),)),
        ]
        events += [question(turn, 10 * turn + 2)] if turn == 2 else []
        events.append(Results(10 * turn + 5, (given_block("tool_result", "user", f"result {turn}", 20),)))
    return replace(conversation(*events), tools=NOTHING, system=NOTHING)


def test_another_model_sees_what_its_window_holds() -> None:
    side = side_calls(cheaper(), long_talk())[0]
    whole = side_calls(cheaper(truncate=False), long_talk())[0]
    assert side.request.model == whole.request.model == "small"
    assert (side.request.thread.length, whole.request.thread.length) == (6, 9)
    kept, sent = side.request.thread.messages(), whole.request.thread.messages()
    assert [message.digest for message in kept] == [message.digest for message in sent[3:]]


def test_a_window_in_the_options_wins() -> None:
    assert side_calls(cheaper(window_tokens=2_000), long_talk())[0].request.thread.length == 9


def test_the_own_model_is_never_cut() -> None:
    strategy = replace(agent(window_tokens=10), facts=lambda model: Facts(context_window=10))
    assert side_calls(strategy, long_talk())[0].request.thread.length == 9


def test_where_all_is_cut_only_the_question_is_left() -> None:
    side = side_calls(cheaper(window_tokens=50), long_talk())[0]
    assert [block.kind for message in side.request.thread.messages() for block in message.blocks] == ["text"]


def test_a_system_prompt_of_its_own() -> None:
    session = asked(question(1, 50), question(2, 60))
    own = [call.request.system for call in side_calls(agent(system_tokens=40), session)]
    assert own[0] is own[1]
    assert [block.tokens for block in own[0].blocks] == [40]
    assert all(
        call.request.system is session.system for call in plan(agent(system_tokens=40), session) if not call.inquiry
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"through": "structured_output", "tool_choice": "forced"}, "structured_output has no tool to force"),
        ({"tool_choice": "none"}, "answer_tool could not be answered"),
        ({"through": "tool_per_question", "tool_choice": "none"}, "tool_per_question could not be answered"),
        ({"retry_rate": 1.5}, "retry_rate=1.5: expected 0 to 1"),
        ({"retry_rate": -0.1}, "retry_rate=-0.1: expected 0 to 1"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        InquiryOptions(**options)


def unknown(model: str) -> Facts:
    raise CannotEvaluate(f"unknown model {model}")


TALK = asked(question(1, 50), question(2, 60), params={"thinking": ADAPTIVE})
MANUAL_TALK = asked(question(1, 50), params={"thinking": MANUAL})


@pytest.mark.parametrize(
    ("strategy", "session", "notes"),
    [
        (
            PRESETS["progressive"],
            TALK,
            ["The 2 questions are not asked: this strategy has no way to ask them. Its cost does not include them."],
        ),
        (PRESETS["progressive"], asked(), []),
        (agent(), TALK, []),
        (
            replace(agent(), rules={"tool_choice_invalidation": "never"}),
            asked(),
            ["Assumes tool_choice_invalidation=never."],
        ),
        (
            agent(),
            MANUAL_TALK,
            [
                "A forced tool choice cannot be combined with manual thinking: questions omit thinking, "
                "so two parameters of the messages layer change at once."
            ],
        ),
        (agent(tool_choice="auto"), MANUAL_TALK, []),
        (
            replace(agent(), facts=lambda model: Facts(accepts_forced_choice=False)),
            TALK,
            [f"{MODEL} refuses a forced tool choice: all 2 questions fail."],
        ),
        (replace(agent(tool_choice="auto"), facts=lambda model: Facts(accepts_forced_choice=False)), TALK, []),
        (replace(agent(), facts=unknown), TALK, []),
        (cheaper(), TALK, []),
        (
            cheaper(),
            long_talk(),
            ["Questions lose their oldest messages where they would not fit small (1,000 tokens)."],
        ),
        (cheaper(truncate=False), long_talk(), []),
        (
            replace(cheaper(), facts=unknown),
            long_talk(),
            ["The context window of small is unknown: questions are sent whole."],
        ),
    ],
)
def test_notes_say_what_an_arm_cannot_do(strategy: Agent, session: Conversation, notes: list[str]) -> None:
    assert strategy.notes(session) == notes


def test_a_refused_forced_choice_is_sent_as_it_is() -> None:
    strategy = replace(agent(), facts=lambda model: Facts(accepts_forced_choice=False))
    assert one_side(strategy).request.params == {"tool_choice": FORCED}


@pytest.mark.parametrize(
    ("arm", "tools", "choice", "is_structured", "model", "marked"),
    [
        ("structured output, no tools", 0, None, True, MODEL, "system.1 auto"),
        ("structured output, same tools", 2, None, True, MODEL, "tools.1 system.1 auto"),
        ("answer_inquiry, forced", 3, FORCED, False, MODEL, "tools.2 system.1 auto"),
        ("answer_inquiry, as 033 describes itself", 3, FORCED, False, MODEL, "tools.2 system.1 auto"),
        ("answer tool, auto", 3, {"type": "auto"}, False, MODEL, "tools.2 system.1 auto"),
        ("a schema per question", 3, FORCED, False, MODEL, "tools.2 system.1 auto"),
        ("cheaper model, cold", 0, None, True, CHEAPER_MODEL, ""),
        ("cheaper model, warm", 2, {"type": "none"}, True, CHEAPER_MODEL, "tools.1 system.1 auto"),
        ("cheaper model, with cache hint", 2, {"type": "none"}, True, CHEAPER_MODEL, "tools.1 system.1 2.1"),
        ("jp", 2, {"type": "none"}, True, MODEL, "tools.1@1h system.1@1h 2.1@1h"),
    ],
)
def test_arms(arm: str, tools: int, choice: object, is_structured: bool, model: str, marked: str) -> None:
    side = one_side(PRESETS[arm], {"thinking": ADAPTIVE}).request
    assert len(side.tools.blocks) == tools
    assert side.params.get("tool_choice") == choice
    assert ("format" in side.params.get("output_config", {})) == is_structured
    assert ("thinking" in side.params) == (model == MODEL)
    assert (side.model, spelled(side)) == (model, marked)


@pytest.mark.parametrize("arm", [name for name, found in PRESETS.items() if found.inquiry and name != "jp"])
def test_arms_share_the_base_placement(arm: str) -> None:
    main = plan(PRESETS[arm], asked(question(1, 50)))[0].request
    last = len(main.tools.blocks) - 1
    assert spelled(main) == f"tools.{last} system.1 auto"


def test_033_as_it_describes_itself_differs_in_the_reading_only() -> None:
    published_figure, forced = PRESETS["answer_inquiry, as 033 describes itself"], PRESETS["answer_inquiry, forced"]
    assert published_figure.rules == {"tool_choice_invalidation": "never"}
    assert (published_figure.inquiry, published_figure.placement, forced.rules) == (
        forced.inquiry,
        forced.placement,
        {},
    )


@pytest.mark.parametrize("make", [lambda: asked(question(1, 50)), long_talk])
def test_a_moving_breakpoint_on_a_question_lands_on_the_question(make: Callable[[], Conversation]) -> None:
    """Which is why a cheaper model with the main thread's breakpoints never reads its messages again."""
    side = side_calls(agent(through="structured_output"), make())[0].request
    target = last_breakpoint_place(side, "5m")
    assert target is not None and target.node is side.thread


def test_thinking_before_the_question_stays_in_the_thread_as_sent() -> None:
    session = conversation(
        Human(0, (user("go"),)), Reply(1, (thought("hm"), used("a"))), question(1, 5), Results(9, (result("a"),))
    )
    side = side_calls(agent(), session)[0]
    assert side.request.thread.has_thinking


def test_questions_before_any_reply_and_at_the_very_end_are_asked() -> None:
    session = conversation(question(1, 0), Human(1, (user("go"),)), Reply(2, (said("yes"),)), question(2, 9))
    calls = side_calls(agent(), session)
    assert [call.start for call in calls] == [0, 9]
    assert calls[0].request.thread.length == 1
    assert isinstance(calls[0].request.thread.parent, Thread)
