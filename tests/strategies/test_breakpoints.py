"""Which blocks a placement breakpoints, call by call."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_talks import SIX_CALLS, conversation, head, result, said, spelled, thought, used, user

from cachecost.prompts.blocks import Block, Layer, Message, Part, Thread, given_block
from cachecost.prompts.request import TTL, Request, accepts_breakpoint, block_at, block_of, text_block
from cachecost.strategies.agent import Agent
from cachecost.strategies.placements import (
    NAMES,
    ORDER,
    PRIMITIVES,
    ROLES,
    SHORTHANDS,
    Adaptive,
    AtMessage,
    Automatic,
    BeforeHuman,
    EveryKBlocks,
    EveryKTokens,
    EveryKTurns,
    FirstN,
    ForkPoint,
    Freeze,
    Hint,
    Lag,
    LastMessage,
    LastN,
    LastTool,
    LongSegments,
    OldestOver,
    Placement,
    PreviousHuman,
    Primitive,
    SegmentEnd,
    Sticky,
    SystemBlock,
    ThreadIndex,
    TurnBoundary,
    View,
)
from cachecost.strategies.presets import PRESETS


def rows(placement: Placement) -> list[str]:
    agent = Agent(name="x", placement=placement)
    return [spelled(call.request) for call in agent.plan(conversation(*SIX_CALLS))]


def thread_of(*messages: tuple[str, tuple[Block, ...]]) -> Thread:
    thread = Thread()
    for role, blocks in messages:
        thread = thread.then(Message.of(role, blocks))
    return thread


def place(thread: Thread, *primitives: Primitive, tools: Part | None = None, system: Part | None = None) -> str:
    view = View(thread, tools or Part(), system or Part())
    breakpoints, automatic = Placement(primitives).place(view)
    return spelled(Request("m", thread, view.tools, view.system, breakpoints, automatic))


@pytest.mark.parametrize(
    ("primitive", "marked"),
    [
        (LastTool(), ["tools.1"] * 6),
        (SystemBlock("last"), ["system.1"] * 6),
        (SystemBlock("first"), ["system.0"] * 6),
        (SystemBlock("each"), ["system.0 system.1"] * 6),
        (SystemBlock(1), ["system.1"] * 6),
        (SystemBlock(2), [""] * 6),
        (LastMessage(), ["1.0", "3.1", "5.0", "7.0", "9.1", "11.0"]),
        (LastMessage("first_eligible"), ["1.0", "3.0", "5.0", "7.0", "9.0", "11.0"]),
        (LastMessage("last_text"), ["1.0", "", "", "7.0", "9.1", "11.0"]),
        (LastMessage("second_last"), ["", "3.0", "4.1", "6.0", "9.0", "10.1"]),
        (LastN("any", 2), ["1.0", "2.2 3.1", "4.1 5.0", "6.0 7.0", "8.1 9.1", "10.1 11.0"]),
        (LastN("assistant", 1), ["", "2.2", "4.1", "6.0", "8.1", "10.1"]),
        (LastN("tool", 2), ["", "3.1", "3.1 5.0", "3.1 5.0", "5.0 9.1", "5.0 9.1"]),
        (LastN("tool", 1, "last_text"), ["", "", "", "", "9.1", "9.1"]),
        (LastN("any", 1, "second_last"), ["", "3.0", "", "", "9.0", ""]),
        (BeforeHuman(1), ["", "", "", "6.0", "8.1", "10.1"]),
        (BeforeHuman(2), ["", "", "", "", "6.0", "8.1"]),
        (BeforeHuman(1, "prompt"), ["", "", "", "6.0", "6.0", "10.1"]),
        (BeforeHuman(2, "prompt"), ["", "", "", "", "", "6.0"]),
        (PreviousHuman(), ["", "", "", "1.0", "7.0", "9.1"]),
        (EveryKBlocks(4), ["", "2.2", "4.1", "4.1", "7.0", "10.0"]),
        (EveryKBlocks(4, 2), ["", "2.2", "2.2 4.1", "2.2 4.1", "4.1 7.0", "7.0 10.0"]),
        (EveryKTurns(2), ["", "", "", "7.0", "7.0", "11.0"]),
        (EveryKTurns(1, 2), ["1.0", "1.0", "1.0", "1.0 7.0", "7.0 9.1", "9.1 11.0"]),
        (Lag(3), ["", "2.1", "3.1", "4.1", "7.0", "9.1"]),
        (Hint(), ["", "2.2", "4.1", "6.0", "8.1", "10.1"]),
        (Hint(2), ["", "1.0", "3.1", "5.0", "7.0", "9.1"]),
        (Automatic(), ["auto"] * 6),
        (SystemBlock("first_two"), ["system.0 system.1"] * 6),
        (SystemBlock("last_two"), ["system.0 system.1"] * 6),
        (SegmentEnd("head"), ["system.1"] * 6),
        (SegmentEnd("documents"), [""] * 6),
        (TurnBoundary(1), ["", "", "", "6.0", "8.1", "10.1"]),
        (TurnBoundary(2), ["", "", "", "6.0", "6.0 8.1", "8.1 10.1"]),
        (TurnBoundary(2, "prompt"), ["", "", "", "6.0", "6.0", "6.0 10.1"]),
        (LastN("not_system", 1), ["1.0", "3.1", "5.0", "7.0", "9.1", "11.0"]),
        (FirstN("any", 2), ["1.0", *["1.0 2.2"] * 5]),
        (FirstN("tool", 2, "first_eligible"), ["", "3.0", *["3.0 5.0"] * 4]),
        (AtMessage(3), ["", *["3.1"] * 5]),
        (AtMessage(12), [""] * 6),
        (Freeze(2, 4), ["1.0", *["1.0 3.1"] * 3, *["1.0 3.1 9.0"] * 2]),
        (Freeze(1, 3), ["1.0", *["1.0 3.0 3.1"] * 5]),
    ],
    ids=repr,
)
def test_primitive_breakpoints_these_blocks(primitive: Primitive, marked: list[str]) -> None:
    assert rows(Placement((primitive,))) == marked


@pytest.mark.parametrize(
    ("preset", "marked"),
    [
        ("none", [""] * 6),
        ("automatic", ["auto"] * 6),
        ("base", ["tools.1 system.1 auto"] * 6),
        ("jp", ["tools.1@1h system.1@1h auto"] * 6),
        ("system-only", ["system.0 system.1"] * 6),
        ("progressive", [f"system.0 system.1 {tail}" for tail in ("1.0", "3.1", "5.0", "7.0", "9.1", "11.0")]),
        (
            "rfc013-as-written",
            [f"tools.1 system.1 {rest}" for rest in ("1.0", "3.1", "5.0", "6.0 7.0", "6.0 9.1", "10.1 11.0")],
        ),
        (
            "rfc013-as-coded",
            [f"tools.1 system.1 {rest}" for rest in ("1.0", "3.0", "5.0", "7.0", "9.0", "6.0 11.0")],
        ),
    ],
)
def test_preset_breakpoints_these_blocks(preset: str, marked: list[str]) -> None:
    assert rows(PRESETS[preset].placement) == marked


def test_user_wire_counts_tool_results_and_human_does_not() -> None:
    """The breakpoint of a human-only agent stands still in a tool loop; on the wire it moves with each result."""
    loop = ["1.0", "1.0 3.1", "3.1 5.0"]
    assert rows(Placement((LastN("user_wire", 2),)))[:3] == loop
    assert rows(Placement((LastN("human", 2),)))[:3] == ["1.0"] * 3


def test_text_beside_tool_results_is_human_but_no_prompt() -> None:
    """Message 9 holds a result and a text: the API strips thinking there, RFC013 sees a tool message."""
    assert rows(Placement((LastN("human", 2),)))[4:] == ["7.0 9.1", "9.1 11.0"]
    assert rows(Placement((LastN("prompt", 2),)))[4:] == ["1.0 7.0", "7.0 11.0"]


SNAPPING = thread_of(
    ("user", (user("go"),)),
    ("assistant", (used("a"), thought("so"), said(""))),
    ("user", (result("a"), user(""))),
    ("assistant", (thought("only"),)),
)


@pytest.mark.parametrize(
    ("primitive", "marked"),
    [
        (LastMessage(), "3.0"),
        (LastMessage("second_last"), "2.0"),
        (LastMessage("first_eligible"), ""),
        (Lag(1), "3.0"),
        (Lag(3), "2.0"),
        (Lag(6), "1.0"),
        (Lag(7), ""),
        (Hint(1), "3.0"),
        (Hint(2), "2.0"),
        (Hint(3), "1.0"),
        (Hint(4), ""),
        (LastN("any", 3), "2.0 3.0"),
        (EveryKBlocks(7), "3.0"),
        (EveryKBlocks(8), ""),
    ],
    ids=repr,
)
def test_no_breakpoint_stands_on_thinking_or_empty_text(primitive: Primitive, marked: str) -> None:
    assert place(SNAPPING, primitive) == marked


def test_last_tool_skips_deferred_tools() -> None:
    deferred = block_of("", {"name": "b", "defer_loading": True})
    tools = Part((block_of("", {"name": "a"}), deferred, deferred))
    assert place(Thread(), LastTool(), tools=tools) == "tools.0"
    assert place(Thread(), LastTool(), tools=Part((deferred,))) == ""


def test_system_breakpoints_skip_empty_text() -> None:
    system = Part((text_block("system", "a"), text_block("system", "")))
    assert place(Thread(), SystemBlock("last"), system=system) == "system.0"
    assert place(Thread(), SystemBlock(1), system=system) == ""


def test_nothing_to_breakpoint_in_an_empty_request() -> None:
    placed = {place(Thread(), primitive()) for primitive in PRIMITIVES.values() if primitive is not Automatic}
    assert placed == {""}


FIVE = (LastTool(), SystemBlock("each"), LastN("any", 3))


@pytest.mark.parametrize(
    ("placement", "marked"),
    [
        (Placement(FIVE), "tools.1 system.0 system.1 11.0"),
        (Placement(FIVE, slots=6), "tools.1 system.0 system.1 9.1 10.1 11.0"),
        (Placement((*FIVE, Automatic())), "tools.1 system.0 system.1 auto"),
        (Placement((LastN("any", 3), *FIVE)), "tools.1 9.1 10.1 11.0"),
        (Placement((LastN("any", 3), *FIVE), trim="oldest_message"), "tools.1 system.0 system.1 11.0"),
        (Placement((LastN("any", 9),), trim="oldest_message"), "8.1 9.1 10.1 11.0"),
        (Placement((SystemBlock("each"), LastTool()), slots=2, trim="oldest_message"), "system.0 system.1"),
        (Placement((LastTool(), Automatic()), slots=0), "auto"),
    ],
)
def test_slots_go_by_priority_or_the_oldest_messages_leave(placement: Placement, marked: str) -> None:
    assert rows(placement)[-1] == marked


def test_a_block_chosen_twice_is_marked_once_as_the_first_says() -> None:
    placement = Placement((LastN("any", 1, ttl="1h"), LastMessage(), SystemBlock("last", ttl="1h")))
    assert rows(placement)[-1] == "system.1@1h 11.0@1h"


@pytest.mark.parametrize(
    ("primitives", "fault"),
    [
        ((LastTool(ttl="1h"), SystemBlock(), Automatic()), None),
        ((Automatic(), SystemBlock(ttl="1h")), None),
        ((LastN("any", 2, ttl="1h"), LastMessage()), None),
        ((BeforeHuman(1, ttl="1h"), Lag(20)), None),
        ((BeforeHuman(1), Lag(20, ttl="1h")), None),
        ((LastTool(), SystemBlock(ttl="1h")), "last_tool at 5m and system_block at 1h"),
        ((Automatic(ttl="1h"), LastTool()), "last_tool at 5m and automatic at 1h"),
        ((Lag(20), LastMessage(ttl="1h")), "lag at 5m and last_message at 1h"),
        ((SystemBlock(), LastN("any", 2, ttl="1h")), "system_block at 5m and last_n at 1h"),
    ],
)
def test_an_order_of_ttls_that_is_never_legal_is_seen_early(
    primitives: tuple[Primitive, ...], fault: str | None
) -> None:
    expected = fault and f"{fault}: a 1h breakpoint must not come after a 5m one"
    assert Placement(primitives).ttl_error() == expected


@pytest.mark.parametrize(("ttl", "other"), [("5m", "1h"), ("1h", "5m")])
def test_two_ttls_for_the_same_tail_are_seen_early(ttl: TTL, other: TTL) -> None:
    placement = Placement((LastMessage(ttl=ttl), Automatic(ttl=other)))
    assert placement.ttl_error() == (
        f"last_message at {ttl} and automatic at {other}: they breakpoint the same block, which can have one TTL only"
    )
    assert Placement((LastMessage(ttl=ttl), Automatic(ttl=ttl))).ttl_error() is None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Lag(0), "blocks=0: expected at least 1"),
        (lambda: LastN("any", -1), "n=-1: expected at least 1"),
        (lambda: EveryKBlocks(0), "k=0: expected at least 1"),
        (lambda: SystemBlock(-1), "which=-1: expected at least 0"),
    ],
)
def test_options_that_count_nothing_are_refused(make: object, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        make()  # type: ignore[operator]


def test_the_trail_looks_at_each_message_once_a_role(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[Message] = []

    def look(message: Message) -> bool:
        looked.append(message)
        return False

    monkeypatch.setitem(ROLES, "tool", look)
    thread, trail = Thread(), ThreadIndex()
    for number in range(50):
        thread = thread.then(Message.of("user", (user(str(number)),)))
        assert list(trail.back("tool", thread)) == []
    assert looked == thread.messages()


BLOCKS = st.sampled_from([user("x"), user(""), result("a"), result("b"), thought("t"), said("y"), used("a")])
MESSAGES = st.tuples(st.sampled_from(["user", "assistant"]), st.lists(BLOCKS, min_size=1, max_size=5).map(tuple))
THREADS = st.lists(MESSAGES, max_size=12).map(lambda messages: thread_of(*messages))
ANY_BLOCK = st.sampled_from(["last", "first_eligible", "last_text", "second_last"])
ANY_ROLE = st.sampled_from(["any", "assistant", "user_wire", "human", "prompt", "tool", "not_system"])
SMALL = st.integers(1, 6)
ANY_PRIMITIVE = st.one_of(
    st.sampled_from([LastTool(), Automatic(), *SHORTHANDS.values()]),
    st.builds(SystemBlock, st.integers(0, 6)),
    st.builds(LastMessage, ANY_BLOCK),
    st.builds(LastN, ANY_ROLE, SMALL, ANY_BLOCK),
    st.builds(BeforeHuman, SMALL, st.sampled_from(["human", "prompt"]), ANY_BLOCK),
    st.builds(PreviousHuman, ANY_BLOCK),
    st.builds(EveryKBlocks, SMALL, SMALL),
    st.builds(EveryKTurns, SMALL, SMALL),
    st.builds(Lag, SMALL),
    st.builds(Hint, SMALL),
    st.builds(TurnBoundary, SMALL, st.sampled_from(["human", "prompt"])),
    st.builds(FirstN, ANY_ROLE, SMALL, ANY_BLOCK),
    st.builds(AtMessage, SMALL, ANY_BLOCK),
    st.builds(Freeze, SMALL, SMALL),
    st.builds(OldestOver, SMALL, SMALL),
    st.builds(EveryKTokens, SMALL, SMALL),
    st.builds(Sticky, st.integers(1, 40), SMALL),
    st.builds(LongSegments, st.integers(1, 300)),
    st.builds(SegmentEnd, st.sampled_from(["head", "documents"])),
    st.builds(ForkPoint, SMALL),
    st.just(Adaptive()),
)


@given(
    THREADS,
    st.lists(ANY_PRIMITIVE, max_size=6).map(tuple),
    st.integers(0, 5),
    st.sampled_from(["priority", "oldest_message"]),
)
@example(thread_of(("user", (block_of("user", {"type": "text", "text": ""}),))), (OldestOver(1, 1),), 1, "priority")
def test_any_composition_makes_legal_breakpoints(
    thread: Thread, primitives: tuple[Primitive, ...], slots: int, trim: str
) -> None:
    """In prompt order, none twice, all on markable blocks of this request, none beyond the slots."""
    tools, system = head()
    placement = Placement(primitives, slots=slots, trim=trim)  # type: ignore[arg-type]
    breakpoints, automatic = placement.place(View(thread, tools, system))
    places = [
        (ORDER[breakpoint.layer], breakpoint.node.length if breakpoint.node else 0, breakpoint.index)
        for breakpoint in breakpoints
    ]
    assert places == sorted(set(places))
    assert len(breakpoints) <= max(slots - (automatic is not None), 0)
    request = Request("m", thread, tools, system, breakpoints, automatic)
    nodes = set(thread.back())
    for breakpoint in breakpoints:
        assert accepts_breakpoint(block_at(request, breakpoint))
        assert (breakpoint.node in nodes) == (breakpoint.layer is Layer.MESSAGES)


@given(THREADS, ANY_ROLE)
def test_a_trail_finds_what_a_plain_walk_finds(thread: Thread, role: str) -> None:
    plain = [node for node in thread.back() if node.message and ROLES[role](node.message)]  # type: ignore[index]
    trail = ThreadIndex()
    for node in reversed(list(thread.back())):
        trail.latest(role, node)  # type: ignore[arg-type]
    assert list(trail.back(role, thread)) == plain  # type: ignore[arg-type]
    assert trail.latest(role, thread) is next(iter(plain), None)  # type: ignore[arg-type]


def test_every_primitive_has_one_name() -> None:
    assert {NAMES[type(primitive)] for primitive in SHORTHANDS.values()} == {"system_block"}
    assert len(NAMES) == len(PRIMITIVES)
    assert not set(SHORTHANDS) & set(PRIMITIVES)


def test_a_tool_with_a_given_size_can_be_marked() -> None:
    assert place(Thread(), LastTool(), tools=Part((given_block("tool", "", "t", 5),))) == "tools.0"
