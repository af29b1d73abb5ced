"""Primitives that go by sizes, by forks, or by what was sent before."""

from __future__ import annotations

from typing import Any

import pytest
from small_talks import MODEL, result, said, spelled, thought, used, user

from cachecost.conversations.model import Conversation, Human, Reply, ThreadRewrite
from cachecost.prompts.blocks import NOTHING, Block, Message, Part, Thread, given_block
from cachecost.prompts.request import Request
from cachecost.strategies.agent import Agent
from cachecost.strategies.placements import (
    Adaptive,
    EveryKTokens,
    ForkPoint,
    LastMessage,
    LastN,
    LongSegments,
    OldestOver,
    Placement,
    Primitive,
    SegmentEnd,
    Sticky,
    ThreadIndex,
    View,
)


def sized(role: str, name: str, tokens: int, kind: str = "text") -> Block:
    return given_block(kind, role, name, tokens)


def grown(thread: Thread, *tokens: int) -> Thread:
    """User and assistant in turn, a block of so many tokens each."""
    for size in tokens:
        role = "assistant" if thread.length % 2 else "user"
        thread = thread.then(Message.of(role, (sized(role, str(thread.length), size),)))
    return thread


def breakpoints(thread: Thread, *primitives: Primitive, trail: ThreadIndex | None = None, **parts: Part) -> str:
    view = View(thread, parts.get("tools", NOTHING), parts.get("system", NOTHING), trail or ThreadIndex())
    placed, automatic = Placement(primitives, slots=9).place(view)
    return spelled(Request(MODEL, thread, view.tools, view.system, placed, automatic))


def part(*tokens: int, role: str = "system") -> Part:
    return Part(tuple(sized(role, f"{index} of {tokens}", size) for index, size in enumerate(tokens)))


# ------------------------------------------------------------------------------------------------ sizes


@pytest.mark.parametrize(
    ("sizes", "marked"),
    [
        ((99,), ""),
        ((100,), "1.0"),
        ((60, 39), ""),
        ((60, 40), "2.0"),
        ((60, 40, 99), "2.0"),
        ((60, 40, 100), "2.0 3.0"),
        ((60, 40, 100, 100), "3.0 4.0"),
        ((350, 10), "1.0"),
    ],
)
def test_token_breakpoints_stand_where_a_step_is_filled(sizes: tuple[int, ...], marked: str) -> None:
    """The latest two; a block that fills several steps is one breakpoint."""
    assert breakpoints(grown(Thread(), *sizes), EveryKTokens(100, 2)) == marked


def test_a_token_breakpoint_is_snapped_back_to_a_markable_block() -> None:
    blocks = (sized("assistant", "a", 50), thought("x" * 400))
    thread = grown(Thread(), 10).then(Message.of("assistant", blocks))
    assert breakpoints(thread, EveryKTokens(100)) == "2.0"


@pytest.mark.parametrize(("size", "marked"), [(500, ""), (501, "1.0")])
def test_the_oldest_long_texts_are_over_the_threshold_not_at_it(size: int, marked: str) -> None:
    assert breakpoints(grown(Thread(), size), OldestOver(500)) == marked


def test_the_oldest_long_texts_stay_and_results_are_no_texts() -> None:
    thread = grown(Thread(), 600, 600, 600)
    more = thread.then(Message.of("user", (sized("user", "r", 900, "tool_result"), sized("user", "t", 700))))
    assert breakpoints(more, OldestOver(500, 4)) == "1.0 2.0 3.0 4.1"
    assert breakpoints(more, OldestOver(500, 2)) == "1.0 2.0"


@pytest.mark.parametrize(
    ("sizes", "marked"),
    [
        ((99,), ""),
        ((100,), "1.0"),
        ((100, 10, 89), "1.0"),
        ((100, 10, 90), "1.0 3.0"),
        ((100, 100), "1.0"),
        ((100, 10, 90, 10, 90), "1.0 3.0 5.0"),
        ((100, 10, 90, 10, 90, 10, 229), "1.0 3.0 5.0"),
        ((100, 10, 90, 10, 90, 10, 230), "3.0 5.0 7.0"),
        ((100, 10, 90, 10, 390, 10, 229), "1.0 3.0 5.0"),
        ((300, 10, 90, 10, 90, 10, 229), "1.0 3.0 5.0"),
        ((300, 10, 90, 10, 90, 10, 230), "1.0 5.0 7.0"),
    ],
)
def test_sticky_breakpoints_stay_until_two_are_worth_merging(sizes: tuple[int, ...], marked: str) -> None:
    """At least 100 tokens between, at most 3; with three, the least pair merges for 1.2 times its 200 tokens."""
    assert breakpoints(grown(Thread(), *sizes), Sticky(100, 3)) == marked


def test_sticky_breakpoints_after_a_rewind_are_those_of_the_thread_that_is_left() -> None:
    trail, root = ThreadIndex(), Thread()
    base = grown(root, 100, 10)
    assert breakpoints(grown(base, 200), Sticky(100), trail=trail) == "1.0 3.0"
    assert breakpoints(base.then(Message.of("user", (user("no"),))), Sticky(100), trail=trail) == "1.0"


@pytest.mark.parametrize(
    ("tools", "system", "conversation", "marked"),
    [
        (1024, 1024, (1000, 24, 1024), "tools.0 system.0 2.0 3.0"),
        (1023, 1024, (1000, 24, 1024), "system.0 2.0 3.0"),
        (1023, 0, (1,), "1.0"),
        (1000, 23, (1000, 23, 1023), "2.0"),
        (1024, 1023, (1,), "tools.0 1.0"),
        (10, 10, (10,), ""),
    ],
)
def test_short_segments_go_without_a_breakpoint(
    tools: int, system: int, conversation: tuple[int, ...], marked: str
) -> None:
    thread = grown(Thread(), *conversation)
    head = {"tools": part(tools, role=""), "system": part(system) if system else NOTHING}
    assert breakpoints(thread, LongSegments(1024), **head) == marked


# ------------------------------------------------------------------------------------------------ parts


def test_the_head_ends_with_system_or_without_it_with_the_last_tool() -> None:
    thread = grown(Thread(), 10)
    assert breakpoints(thread, SegmentEnd("head"), tools=part(1, 1, role=""), system=part(1, 1)) == "system.1"
    assert breakpoints(thread, SegmentEnd("head"), tools=part(1, 1, role="")) == "tools.1"
    assert breakpoints(thread, SegmentEnd("head")) == ""


def test_documents_are_those_of_the_first_message() -> None:
    attached = (sized("user", "a", 5, "document"), sized("user", "b", 5, "document"), user("read them"))
    later = Message.of("user", (sized("user", "c", 5, "document"),))
    thread = Thread().then(Message.of("user", attached)).then(Message.of("assistant", (said("so"),))).then(later)
    assert breakpoints(thread, SegmentEnd("documents")) == "1.1"


def test_a_system_message_at_the_end_is_no_message_for_agents_that_skip_it() -> None:
    thread = grown(Thread(), 10, 10).then(Message.of("system", (sized("system", "reminder", 5),)))
    assert breakpoints(thread, LastMessage()) == "3.0"
    assert breakpoints(thread, LastN("not_system", 1)) == "2.0"
    assert breakpoints(thread, LastN("user_wire", 1)) == "1.0"


# ------------------------------------------------------------------------------------------------ forks


def test_a_fork_is_the_message_after_which_the_talk_went_on_otherwise() -> None:
    base = grown(Thread(), 10, 10, 10)
    one, other = grown(base, 10, 10, 10), base.then(Message.of("assistant", (said("other"),)))
    third = one.then(Message.of("assistant", (said("x"),)))
    fourth = one.then(Message.of("assistant", (said("y"),)))
    assert breakpoints(one, ForkPoint(1)) == "3.0"
    assert breakpoints(other, ForkPoint(1)) == "3.0"
    assert [breakpoints(each, ForkPoint(1)) for each in (third, fourth)] == ["6.0", "6.0"]
    assert [breakpoints(each, ForkPoint(2)) for each in (third, fourth)] == ["3.0 6.0", "3.0 6.0"]
    assert breakpoints(base, ForkPoint(1)) == ""


def test_what_branches_off_later_is_not_known_yet() -> None:
    """Without a log that holds it, the first branch does not know of the second; the second knows of the first."""
    trail, base = ThreadIndex(), grown(Thread(), 10)
    first = grown(base, 10)
    assert breakpoints(first, ForkPoint(), trail=trail) == ""
    second = base.then(Message.of("assistant", (said("other"),)))
    assert breakpoints(second, ForkPoint(), trail=trail) == "1.0"
    assert breakpoints(grown(first, 10), ForkPoint(), trail=trail) == ""


def test_talks_that_start_in_different_ways_are_no_fork() -> None:
    root = Thread()
    assert [breakpoints(root.then(Message.of("user", (user(text),))), ForkPoint()) for text in "ab"] == ["", ""]


# ---------------------------------------------------------------------------------------------- adaptive


def test_adaptive_breakpoints_what_stayed_and_the_end() -> None:
    trail, thread = ThreadIndex(), grown(Thread(), 10)
    assert breakpoints(thread, Adaptive(), trail=trail) == "1.0"
    thread = grown(thread, 10, 10)
    assert breakpoints(thread, Adaptive(), trail=trail) == "1.0 3.0"
    assert breakpoints(grown(thread, 10, 10), Adaptive(), trail=trail) == "3.0 5.0"


def test_adaptive_does_not_breakpoint_an_end_after_one_was_thrown_away() -> None:
    trail, base = ThreadIndex(), grown(Thread(), 10, 10)
    ends = [base.then(Message.of("user", (user(text),))) for text in "abc"]
    assert [breakpoints(end, Adaptive(), trail=trail) for end in ends] == ["3.0", "2.0", "2.0"]
    assert breakpoints(grown(ends[2], 10, 10), Adaptive(), trail=trail) == "3.0 5.0"


def test_adaptive_breakpoints_the_system_blocks_and_tools_that_stayed() -> None:
    trail, thread = ThreadIndex(), grown(Thread(), 10)
    static, dated, other = sized("system", "static", 5), sized("system", "monday", 5), sized("system", "tuesday", 5)
    tools, more = part(1, 2, role=""), part(1, 2, 3, role="")
    rows = [
        breakpoints(thread, Adaptive(), trail=trail, tools=tools, system=Part((static, dated))),
        breakpoints(thread, Adaptive(), trail=trail, tools=tools, system=Part((static, other))),
        breakpoints(thread, Adaptive(), trail=trail, tools=more, system=Part((other, static))),
        breakpoints(thread, Adaptive(), trail=trail, tools=more, system=Part((other, static))),
    ]
    assert rows == ["tools.1 system.1 1.0", "tools.1 system.0 1.0", "1.0", "tools.2 system.1 1.0"]


def test_adaptive_in_a_plan_sees_a_rewind() -> None:
    """Message 3 is thrown away and said otherwise: what stayed ends with message 2."""
    events: Any = (
        Human(0, (user("a"),)),
        Reply(1, (used("c"),)),
        Human(2, (result("c"),)),
        Reply(3, (said("b"),)),
        ThreadRewrite(4, 2, (), "edit"),
        Human(5, (result("c", "other"),)),
        Reply(6, (said("d"),)),
    )
    agent = Agent(name="x", placement=Placement((Adaptive(),)))
    rows = [spelled(call.request) for call in agent.plan(Conversation("t", events, MODEL))]
    assert rows == ["1.0", "1.0 3.0", "2.0"]


def test_adaptive_plans_share_nothing() -> None:
    """One agent plans two conversations: each plan learns for itself."""
    agent = Agent(name="x", placement=Placement((Adaptive(),)))
    events = (Human(0, (user("a"),)), Reply(1, (said("b"),)), Human(2, (user("c"),)), Reply(3, (said("d"),)))
    first, second = ([spelled(c.request) for c in agent.plan(Conversation("t", events, MODEL))] for _ in range(2))
    assert first == second == ["1.0", "1.0 3.0"]
