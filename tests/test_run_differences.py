"""Two runs of a command, compared: the place, the kind, and that nothing else is a difference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachecost.base.structs import replace
from cachecost.budgets.determinism import AROUND, align, excerpt, find_difference, find_differences
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, compact, digest_of
from cachecost.prompts.intake import Intake

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab1 ", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_a_difference_is_found_exactly_where_there_is_one(first: Any, second: Any) -> None:
    """Keys in another order are another prompt, so the text decides."""
    found = find_difference(first, second)
    assert (found is None) == (compact({"": first}) == compact({"": second}))
    if found is not None:
        mine, theirs = (_at(value, found.path) for value in (first, second))
        assert mine != theirs or list(mine) != list(theirs)


def _at(value: Any, path: Sequence[str | int]) -> Any:
    for step in path:
        value = value[step]
    return value


@given(st.text("abc", max_size=60), st.text("abc", max_size=60), st.text("abc", max_size=60))
def test_the_character_is_the_first_that_differs(same: str, one: str, other: str) -> None:
    first, second = f"{same}x{one}", f"{same}y{other}"
    found = find_difference({"text": first}, {"text": second})
    assert found is not None
    assert (found.path, found.character) == (("text",), len(same))
    assert found.first == excerpt(first, len(same)) and len(found.first) <= 2 * AROUND + 2
    assert "x" in found.first and "y" in found.second


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("It is 2026-11-24T10:15:59Z.", "It is 2026-11-24T10:16:00Z.", "time"),
        ("Today: 2026-11-24", "Today: 2026-11-25", "time"),
        ("at 9:59", "at 10:00", "time"),
        ("now=1795515359.27", "now=1795515361.02", "time"),
        ("now=1795515359270", "now=1795515361020", "time"),
        ("run 123e4567-e89b-12d3-a456-426614174000", "run 923e4567-e89b-12d3-a456-426614174000", "id"),
        ("trace 4bf92f3577b34da6", "trace a3ce929d0e0e4736", "id"),
        ("<Tool at 0x7f2ac4761fd0>", "<Tool at 0x7f2ad8c084a0>", "id"),
        ("session sess_8Kd92mmQ1x", "session sess_1Pd92mmQ1y", "id"),
        ("one, two, three", "three, one, two", "order"),
        ("{'b', 'a'}", "{'a', 'b'}", "order"),
        ("10:12", "12:10", "time"),
        ("seed 482", "seed 77", "random number"),
        ("a fine day", "a grey day", "unknown"),
        ("a text", "a text that goes on", "unknown"),
        (["x", "y"], ["y", "x"], "order"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "order"),
        ({"a": 1}, {"b": 1}, "unknown"),
        (1, 2, "random number"),
    ],
)
def test_kinds(first: object, second: object, kind: str) -> None:
    found = find_difference(first, second)
    assert found is not None
    assert found.kind == kind


# ------------------------------------------------------------------------------------------------ calls


def run_of(*bodies: dict[str, Any], answers: Sequence[str] = ()) -> list[Call]:
    """The calls of these bodies over a common default; `answers` are the ids of the tool calls that were answered."""
    intake = Intake(keep_content=True)
    whole = [{"model": "claude-opus-4-6", "max_tokens": 5, "messages": [user("Hello")], **body} for body in bodies]
    calls = [Call(intake.body(body), 2.0 * number) for number, body in enumerate(whole)]
    return [replace(calls[0], response=tuple(map(_tool_use, answers))), *calls[1:]]


def _tool_use(name: str) -> Block:
    content = {"type": "tool_use", "id": name, "name": "x", "input": {}}
    data = compact(content)
    return Block("tool_use", "assistant", digest_of("assistant", "tool_use", data), len(data), content)


def user(*texts: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def tool(name: str, about: str = "") -> dict[str, Any]:
    return {"name": name, "description": about, "input_schema": {"type": "object"}}


MARK = {"cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("first", "second", "places"),
    [
        ({}, {}, []),
        ({"system": "a"}, {"system": "b"}, [("system.0.text", "unknown")]),
        ({"tools": [tool("a"), tool("b")]}, {"tools": [tool("b"), tool("a")]}, [("tools.0", "order")]),
        (
            {"tools": [tool("a"), tool("b", "1")]},
            {"tools": [tool("a"), tool("b", "2")]},
            [("tools.1.description", "r")],
        ),
        ({"tools": [tool("a")]}, {"tools": [tool("a"), tool("b")]}, [("tools.1", "unknown")]),
        ({"messages": [user("a", "b 1")]}, {"messages": [user("a", "b 2")]}, [("messages.0.content.1.text", "r")]),
        ({"max_tokens": 5}, {"max_tokens": 6}, [("max_tokens", "r")]),
        ({"model": "claude-opus-4-6"}, {"model": "claude-opus-4-5"}, [("model", "r")]),
        (
            {"system": [{"type": "text", "text": "a", **MARK}, {"type": "text", "text": "b"}]},
            {"system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", **MARK}]},
            [("cache_control.0", "r")],
        ),
        (
            {"system": "at 1:01", "messages": [user("c d")]},
            {"system": "at 1:02", "messages": [user("d c")]},
            [("system.0.text", "time"), ("messages.0.content.0.text", "order")],
        ),
    ],
)
def test_places(first: dict[str, Any], second: dict[str, Any], places: list[tuple[str, str]]) -> None:
    kinds = {"r": "random number"}
    found = find_differences(run_of(first), run_of(second))
    assert [(one.path, one.kind) for one in found] == [(path, kinds.get(kind, kind)) for path, kind in places]


def test_one_run_made_more_calls() -> None:
    (found,) = find_differences(run_of({}), run_of({}, {"system": "x"}))
    assert (found.call, found.path, found.first, found.second) == (2, "number of calls", "1 calls", "2 calls")


def test_ids_of_the_simulated_api_are_no_difference() -> None:
    def run(sent: str, answered: str) -> list[Call]:
        used = {"type": "tool_use", "id": sent, "name": "x", "input": {}}
        result = {"type": "tool_result", "tool_use_id": sent, "content": "done"}
        messages = [user("Hi"), {"role": "assistant", "content": [used]}, {"role": "user", "content": [result]}]
        return run_of({}, {"messages": messages}, answers=[answered])

    assert not find_differences(run("toolu_1", "toolu_1"), run("toolu_2", "toolu_2"))
    own = find_differences(run("toolu_1", "toolu_9"), run("toolu_2", "toolu_9"))
    assert [one.path for one in own] == ["messages.1.content.0.id", "messages.2.content.0.tool_use_id"]


@given(st.permutations(range(5)), st.permutations(range(5)))
def test_parallel_calls_in_any_order_are_the_same(one: list[int], other: list[int]) -> None:
    first, second = (run_of(*({"messages": [user(f"part {n}")]} for n in order)) for order in (one, other))
    assert not find_differences(first, align(first, second))


@given(st.permutations(range(4)), st.integers(0, 3))
def test_a_call_that_differs_stands_beside_the_one_that_it_is_like(order: list[int], spoilt: int) -> None:
    first = run_of(*({"system": "at 1:01", "messages": [user(f"part {n}")]} for n in range(4)))
    others = [{"system": f"at 1:0{1 + (n == spoilt)}", "messages": [user(f"part {n}")]} for n in order]
    (found,) = find_differences(first, align(first, run_of(*others)))
    assert (found.call, found.path, found.kind) == (spoilt + 1, "system.0.text", "time")
