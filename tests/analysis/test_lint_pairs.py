"""Lint of a request and the one after it: what differs before a breakpoint, breakpoints that do not move, what is
out of reach.
"""

from __future__ import annotations

from typing import Any

import pytest
from lint_bodies import ANSWER, NEXT, QUESTION, SYSTEM, TOOLS, first, found, linted, second, serious

from bodies import (
    BREAKPOINT,
    HOUR,
    Body,
    assistant,
    body,
    breakpoint_last,
    marked,
    text,
    thinking,
    tool,
    tool_result,
    tool_use,
    user,
)

CLOCK = "You help.\nCurrent time: 2026-03-06T21:2{}:07Z. "


def system(words: str, **more: Any) -> list[Body]:
    return [marked({"type": "text", "text": words + " " + "x" * 1099, **more})]


def test_a_clock_that_differs_is_confirmed_with_its_place() -> None:
    (one,) = linted(first(system=system(CLOCK.format(4))), second(system=system(CLOCK.format(5))))
    assert (one.code, one.path, one.severity, one.offset) == ("CC530", "system.0", "warning", 39)
    assert one.excerpt == "…Current time: 2026-03-06T21:2▮…"
    assert one.message == f'a time differs from the previous request at character 39: "{one.excerpt}"'
    assert one.tokens == 1100 + len(CLOCK.format(4)) + len('{"type":"text","text":"\\n"}') - 1 + 300


def test_a_clock_that_does_not_differ_is_settled() -> None:
    assert found(first(system=system(CLOCK.format(4)))) == [("CC531", "system.0")]
    assert found(first(system=system(CLOCK.format(4))), second(system=system(CLOCK.format(4)))) == []


def test_a_clock_after_the_last_breakpoint_is_nobodys_business() -> None:
    def sent(minute: int) -> Body:
        return body(user(marked(text(1300)), {"type": "text", "text": CLOCK.format(minute)}))

    grown = [*sent(4)["messages"], ANSWER, NEXT]
    assert found(sent(4), sent(5)) == []
    assert found(sent(4), breakpoint_last(body(*grown))) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Session 3f2b8c1a-1234-4abc-8def-1234567890ab.", "Session 99999999-1234-4abc-8def-1234567890ab."),
        ("You made 17 calls.", "You made 18 calls."),
        ("Now: Fri Mar  6 21:24:07 2026", "Now: Sat Mar  7 09:24:07 2026"),
    ],
)
def test_ids_counters_and_times_that_differ(one: str, other: str) -> None:
    assert found(first(system=system(one)), second(system=system(other))) == [("CC530", "system.0")]


def test_a_clock_in_the_first_message_is_found_though_the_threads_part_there() -> None:
    def conversation(minute: int, *more: Body) -> Body:
        return breakpoint_last(
            body(user({"type": "text", "text": CLOCK.format(minute)}, text(900)), *more, tools=TOOLS)
        )

    assert found(conversation(4), conversation(5, ANSWER, NEXT)) == [("CC530", "messages.0.content.0")]


def test_other_words_in_the_system_prompt() -> None:
    one = first(system=[text(600, "You help."), marked(text(500, "b"))])
    other = second(system=[text(600, "You hinder."), marked(text(500, "b"))])
    (finding,) = linted(one, other)
    assert (finding.code, finding.path, finding.offset, finding.excerpt) == ("CC533", "system.0", 5, "You h▮…")
    assert finding.tokens == 1400


def test_a_breakpoint_on_the_block_that_differs_can_never_be_read() -> None:
    stable = text(1100, "stable")
    pair = [breakpoint_last(body(QUESTION, system=[stable, marked(text(300, word))])) for word in ("alpha", "beta")]
    (finding,) = linted(*pair)
    assert (finding.code, finding.path) == ("CC537", "system.1")
    assert finding.message.startswith(
        "the breakpoint is on a block that differs from the previous request at character 0"
    )


def test_a_block_that_goes_or_comes() -> None:
    two = [text(600, "a"), text(300, "b")]
    assert found(first(system=[*two, *SYSTEM]), second(system=[*two[:1], *SYSTEM]))[0] == ("CC533", "system.1")
    assert found(first(), second(system=[*SYSTEM, text(90)])) == [("CC533", "system.1")]


def test_key_order_in_a_tool_and_in_a_call() -> None:
    turned = dict(reversed(list(TOOLS[0].items())))
    (one,) = linted(first(), second(tools=[turned, TOOLS[1]]))
    assert (one.code, one.path) == ("CC534", "tools.0")
    assert one.message == (
        "the same JSON with its keys in another order: input_schema, description, name; "
        "before: name, description, input_schema"
    )

    def call(arguments: Body) -> Body:
        return assistant({**tool_use(200, "t"), "input": arguments})

    results = user(tool_result(300, "t"))
    before = breakpoint_last(body(QUESTION, call({"a": 1, "b": 2}), results, tools=TOOLS))
    after = breakpoint_last(body(QUESTION, call({"b": 2, "a": 1}), results, ANSWER, NEXT, tools=TOOLS))
    assert found(before, after) == [("CC534", "messages.1.content.0.input")]


def test_the_same_tools_in_another_order() -> None:
    (one,) = linted(first(), second(tools=[TOOLS[1], TOOLS[0]]))
    assert (one.code, one.path) == ("CC535", "tools.0")
    assert one.message == "the same tools in another order: b is now where a was"


def test_a_tool_that_comes_goes_or_is_described_otherwise() -> None:
    more = [*TOOLS, tool(90, "c")]
    (one,) = linted(first(), second(tools=more))
    assert (one.code, one.path, one.message, one.tokens) == ("CC536", "tools.2", "added: c", 1400)
    (one,) = linted(first(tools=more), second())
    assert (one.code, one.message) == ("CC536", "removed: c")
    said = {**TOOLS[0], "description": "y" + TOOLS[0]["description"]}
    (one,) = linted(first(), second(tools=[said, TOOLS[1]]))
    assert (one.code, one.path, one.offset) == ("CC533", "tools.0.description", 0)


def test_a_changed_head_that_no_breakpoint_covers_loses_nothing() -> None:
    bare = body(user(text(400)), tools=[tool(200, "a")])
    assert found(bare, body(user(text(400)), tools=[tool(200, "b")])) == []


# ---------------------------------------------------------------------------------------------- messages

PRUNED = [QUESTION, ANSWER, NEXT, assistant(text(300, "second answer")), user(text(300, "third"))]


def test_an_old_message_that_is_changed_while_later_ones_stay() -> None:
    other = [user(text(300, "shorter")), *PRUNED[1:]]
    assert found(breakpoint_last(body(*PRUNED)), breakpoint_last(body(*other))) == [("CC533", "messages.0.content.0")]


def test_a_last_message_that_is_changed_afterwards_wastes_its_breakpoint() -> None:
    reminder = text(200, "remember")
    before = body(user(text(1100), marked(reminder)))
    after = breakpoint_last(body(user(text(1100)), ANSWER, NEXT))
    (one,) = linted(before, after)
    assert (one.code, one.path) == ("CC537", "messages.0.content.1")
    assert one.message == "the breakpoint is on a block that is missing from the next request"
    healthy = body(user(marked(text(1100)), reminder))
    assert found(healthy, breakpoint_last(body(user(marked(text(1100))), ANSWER, NEXT))) == []


def test_a_message_that_is_taken_back_is_no_fault() -> None:
    before = breakpoint_last(body(*PRUNED, tools=TOOLS))
    for kept in (4, 2):
        assert found(before, breakpoint_last(body(*PRUNED[:kept], user(text(300, "another")), tools=TOOLS))) == []


# ------------------------------------------------------------------------------------------------- breakpoints


def test_a_breakpoint_that_stays_while_the_conversation_grows() -> None:
    stuck = user(marked(text(1100, "task")))
    turns = [assistant(tool_use(100, "t")), user(tool_result(200, "t"))]
    more = [assistant(tool_use(100, "u")), user(tool_result(200, "u"))]
    assert found(body(stuck), body(stuck, *turns)) == [], "it could not be known yet"
    (one,) = linted(body(stuck, *turns), body(stuck, *turns, *more))
    assert (one.code, one.path, one.tokens) == ("CC521", "messages.0.content.0", 600)
    moved = breakpoint_last(body(user(text(1100, "task")), *turns, *more))
    assert found(body(stuck, *turns), moved) == []


def test_a_breakpoint_on_the_system_prompt_alone() -> None:
    head: dict[str, Any] = {"tools": TOOLS, "system": SYSTEM}
    (one,) = linted(body(QUESTION, **head), body(QUESTION, ANSWER, NEXT, **head))
    assert (one.code, one.path) == ("CC521", "system.0")
    assert one.message == (
        "the last breakpoint stays here while the conversation grew by 2 messages: "
        "the 900 tokens after it are not cached"
    )


def test_a_request_that_is_only_short_yet_is_healthy() -> None:
    short, grown = body(user(marked(text(600)))), breakpoint_last(body(user(text(600)), ANSWER, user(text(300))))
    assert found(short) == [("CC510", "messages.0.content.0")]
    assert found(short, grown) == []


def parts(count: int) -> Body:
    return user(*(text(40, f"part {number} ") for number in range(count)))


LATE = {"as_of": "2026-09-01"}


@pytest.mark.parametrize(
    ("count", "codes"), [(16, []), (17, ["CC523"]), (18, ["CC523"]), (19, ["CC524"]), (30, ["CC524"])]
)
def test_the_lookback_margin(count: int, codes: list[str]) -> None:
    """The answer is one position, the parts are `count`: 18 are the last that are found."""
    before, after = first(), breakpoint_last(body(QUESTION, ANSWER, parts(count), tools=TOOLS, system=SYSTEM))
    assert [one.code for one in linted(before, after)] == codes


def test_the_margin_can_be_chosen() -> None:
    before, after = first(), breakpoint_last(body(QUESTION, ANSWER, parts(17), tools=TOOLS, system=SYSTEM))
    (one,) = linted(before, after)
    assert one.path == "messages.2.content.16" and one.message == (
        "18 positions back to the last breakpoint of the previous request "
        "(messages.0.content.0); the lookback covers 19: "
        "2 more blocks put it out of reach"
    )
    assert linted(before, after, margin=2) == []
    (one,) = linted(before, breakpoint_last(body(QUESTION, ANSWER, parts(20), tools=TOOLS, system=SYSTEM)))
    assert one.message.endswith(
        "21 positions back to the last breakpoint of the previous request "
        "(messages.0.content.0), 2 too many: it is missed"
    )
    assert one.tokens == 300, "what is marked in the head is found all the same"


@pytest.mark.parametrize(("options", "codes"), [(LATE, []), ({"as_of": "2026-08-31"}, ["CC524"])])
def test_runs_of_tool_calls_are_one_position_where_and_when_they_are(options: dict[str, Any], codes: list[str]) -> None:
    calls = assistant(*(tool_use(60, f"t{number}") for number in range(15)))
    results = user(*(tool_result(60, f"t{number}") for number in range(15)))
    pair = first(), breakpoint_last(body(QUESTION, calls, results, tools=TOOLS, system=SYSTEM))
    assert [one.code for one in linted(*pair, **options)] == codes
    assert [one.code for one in linted(*pair, host="bedrock", **options)][:1] == ["CC524"]


# -------------------------------------------------------------------------------------------- parameters

FORMAT = {"type": "json_schema", "schema": {"type": "object"}}
WEB = {"type": "web_search_20250305", "name": "web_search"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d" * 90}}
CHANGED: dict[str, tuple[Body, Body, str, str, int]] = {
    "model": ({}, {"model": "claude-opus-4-6"}, "CC541", "model", 0),
    "speed": ({"model": "claude-opus-5-5"}, {"model": "claude-opus-5-5", "speed": "fast"}, "CC542", "speed", 0),
    "web search": ({}, {"tools": [*TOOLS, WEB]}, "CC543", "tools", 1),
    "format": ({}, {"output_config": {"format": FORMAT}}, "CC545", "output_config.format", 1),
    "old format": ({}, {"output_format": FORMAT}, "CC545", "output_format", 1),
    "skills": ({}, {"container": {"skills": [{"skill_id": "pdf"}]}}, "CC546", "container.skills", 1),
    "budget": ({}, {"output_config": {"task_budget": {"total": 9}}}, "CC547", "output_config.task_budget", 1),
    "forced": ({}, {"tool_choice": {"type": "any"}}, "CC548", "tool_choice", 2),
    "single": ({}, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, "CC548", "tool_choice", 2),
    "thinking": ({}, {"thinking": {"type": "enabled", "budget_tokens": 2048}}, "CC549", "thinking", 2),
    "effort": (
        {"model": "claude-mythos-5", "output_config": {"effort": "low"}},
        {"model": "claude-mythos-5", "output_config": {"effort": "medium"}},
        "CC550",
        "output_config.effort",
        2,
    ),
}
SAME: dict[str, tuple[Body, Body]] = {
    "auto and none": ({"tool_choice": {"type": "auto"}}, {"tool_choice": {"type": "none"}}),
    "absent and auto": ({}, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": False}}),
    "default effort": ({"model": "claude-opus-4-6"}, {"model": "claude-opus-4-6", "output_config": {"effort": "high"}}),
    "display": (
        {"model": "claude-opus-4-8", "thinking": {"type": "adaptive"}},
        {"model": "claude-opus-4-8", "thinking": {"type": "adaptive", "display": "omitted"}},
    ),
    "disabled thinking": ({}, {"thinking": {"type": "disabled"}}),
    "what shapes no prompt": (
        {"max_tokens": 9},
        {"max_tokens": 99, "temperature": 0.5, "stream": True, "metadata": {}},
    ),
    "alias": ({"model": "claude-sonnet-4-5"}, {"model": "claude-sonnet-4-5-20250929"}),
}
LOST = (3800, 1400, 300)
"""Tokens from the beginning of each layer to the last breakpoint of the first request."""


@pytest.mark.parametrize(("before", "after", "code", "path", "layer"), CHANGED.values(), ids=CHANGED)
def test_a_changed_parameter_and_what_it_loses(before: Body, after: Body, code: str, path: str, layer: int) -> None:
    (one,) = [one for one in linted(first(**before), second(**after)) if not one.is_note]
    assert (one.code, one.path, one.tokens) == (code, path, LOST[layer])


@pytest.mark.parametrize(("before", "after"), SAME.values(), ids=SAME)
def test_what_the_cache_does_not_see_is_no_change(before: Body, after: Body) -> None:
    assert serious(first(**before), second(**after)) == []


def test_images_and_citations_are_seen_in_blocks() -> None:
    def then(*blocks: Body) -> Body:
        return breakpoint_last(body(QUESTION, ANSWER, user(*blocks, text(90)), tools=TOOLS, system=SYSTEM))

    assert found(first(), then(IMAGE)) == [("CC551", "messages")]
    assert found(first(), then(DOCUMENT)) == []
    assert found(first(), then({**DOCUMENT, "citations": {"enabled": True}})) == [("CC544", "citations")]


def test_a_parameter_loses_only_what_was_marked() -> None:
    head = body(QUESTION, tools=TOOLS, system=SYSTEM)
    assert found(head, {**head, "tool_choice": {"type": "any"}}) == []
    assert found(head, {**head, "output_config": {"format": FORMAT}}) == [("CC545", "output_config.format")]


# ----------------------------------------------------------------------------------------- healthy pairs


def shape(role: str, words: str, *, listed: bool) -> Body:
    return {"role": role, "content": [{"type": "text", "text": words}] if listed else words}


HEALTHY: dict[str, tuple[Body, Body]] = {
    "grows": (first(), second()),
    "string and block": (
        breakpoint_last(body(shape("user", "q" * 1200, listed=True))),
        breakpoint_last(body(shape("user", "q" * 1200, listed=False), ANSWER, NEXT)),
    ),
    "a system message in another shape": (
        breakpoint_last(
            body(
                shape("user", "q" * 1200, listed=True), shape("system", "s" * 99, listed=True), model="claude-opus-4-8"
            )
        ),
        breakpoint_last(
            body(
                shape("user", "q" * 1200, listed=False),
                shape("system", "s" * 99, listed=False),
                ANSWER,
                NEXT,
                model="claude-opus-4-8",
            )
        ),
    ),
    "a system prompt in another shape": (
        first(system="s" * 1200),
        second(system=[{"type": "text", "text": "s" * 1200}]),
    ),
    "another conversation": (first(), breakpoint_last(body(user(text(300, "other")), tools=TOOLS, system=SYSTEM))),
    "another long conversation": (
        breakpoint_last(body(*PRUNED)),
        breakpoint_last(body(user(text(300, "other")), assistant(text(300, "hm")), NEXT, assistant(text(99)), NEXT)),
    ),
    "automatic": (
        {**body(user(text(1200))), "cache_control": BREAKPOINT},
        {**body(user(text(1200)), ANSWER, NEXT), "cache_control": BREAKPOINT},
    ),
    "a deferred tool comes in between": (
        first(),
        second(tools=[TOOLS[0], {**tool(200, "late"), "defer_loading": True}, TOOLS[1]]),
    ),
    "another TTL": (first(), {**second(), "system": [marked(text(1100, "You help."))]}),
    "breakpoints left out": (
        first(),
        second(tools=[tool(1200, "a"), tool(1200, "b")], system=[text(1100, "You help.")]),
    ),
    "thinking in a tool loop": (
        first(model="claude-sonnet-4-6", thinking={"type": "adaptive"}),
        breakpoint_last(
            body(
                QUESTION,
                assistant(thinking(300), tool_use(99, "t")),
                user(tool_result(99, "t")),
                tools=TOOLS,
                system=SYSTEM,
                model="claude-sonnet-4-6",
                thinking={"type": "adaptive"},
            )
        ),
    ),
    "5m becomes 1h": (
        first(),
        breakpoint_last(
            body(
                QUESTION,
                ANSWER,
                NEXT,
                tools=[TOOLS[0], {**TOOLS[1], "cache_control": HOUR}],
                system=[{**SYSTEM[0], "cache_control": HOUR}],
            )
        ),
    ),
}


@pytest.mark.parametrize(("before", "after"), HEALTHY.values(), ids=HEALTHY)
def test_healthy_pairs_have_no_finding(before: Body, after: Body) -> None:
    assert found(before, after) == []


def test_thinking_that_the_client_leaves_out_where_the_model_drops_it() -> None:
    def loop(*thought: Body) -> list[Body]:
        return [QUESTION, assistant(*thought, tool_use(300, "t")), user(tool_result(300, "t"))]

    before = breakpoint_last(body(*loop(thinking(300)), tools=TOOLS))
    after = breakpoint_last(body(*loop(), ANSWER, NEXT, tools=TOOLS))
    assert found(before, after) == [], "the model drops it as well"
    more = assistant(tool_use(99, "u")), user(tool_result(99, "u"))
    in_loop = breakpoint_last(body(*loop(), *more, tools=TOOLS))
    assert found(before, in_loop) == [("CC533", "messages.1.content.0")], "nobody has spoken, so it counts"
    strict = [{**sent, "model": "claude-sonnet-4-6"} for sent in (before, after)]
    assert serious(*strict) == [("CC533", "messages.1.content.0")]
