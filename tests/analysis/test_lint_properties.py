"""Laws of lint: breakpoints that move, shapes that change and what shapes no prompt are no difference; order is
stable.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from lint_bodies import linted

from bodies import Body, assistant, body, marked, text, tool, tool_result, tool_use, user
from cachecost.analysis.lint import LintFinding, lint

IN_PAIRS = {f"CC5{number}" for number in (24, 30, 33, 34, 35, 36, 37, *range(41, 52))}
"""What only a difference between two requests can bring about."""

sizes = st.integers(600, 900)
turns = st.lists(st.tuples(sizes, sizes, st.booleans()), min_size=1, max_size=4)


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    """A conversation with tools and a system prompt, without breakpoints."""
    messages = [user(text(draw(sizes), "q"))]
    for number, (asked, answered, is_call) in enumerate(draw(turns)):
        name = f"t{number}"
        messages.append(assistant(tool_use(answered, name) if is_call else text(answered, name)))
        messages.append(user(tool_result(asked, name) if is_call else text(asked, name)))
    return body(*messages, tools=[tool(700, "a"), tool(700, "b")], system=[text(draw(sizes), "s")])


def with_breakpoints(plain: Body, places: list[int]) -> Body:
    """Up to four breakpoints, on blocks by their number."""
    sent = deepcopy(plain)
    lists: list[Any] = [sent["tools"], sent["system"], *(one["content"] for one in sent["messages"])]
    places_of = [(items, number) for items in lists for number in range(len(items))]
    for place in places:
        items, number = places_of[place % len(places_of)]
        items[number] = marked(items[number])
    return sent


def other_shape(sent: Body) -> Body:
    """Single texts as strings, and texts of tool results as lists."""
    sent = deepcopy(sent)
    for message in sent["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_result":
                block["content"] = [{"type": "text", "text": block["content"]}]
        (only,) = message["content"]
        if set(only) == {"type", "text"}:
            message["content"] = only["text"]
    return sent


def between(found: list[LintFinding]) -> list[str]:
    return [one.code for one in found if one.code in IN_PAIRS]


four = st.lists(st.integers(0, 40), min_size=0, max_size=4)


@given(bodies(), four, four)
def test_moved_breakpoints_are_no_difference(plain: Body, before: list[int], after: list[int]) -> None:
    assert between(linted(with_breakpoints(plain, before), with_breakpoints(plain, after))) == []


@given(bodies(), four)
def test_another_shape_is_no_difference(plain: Body, places: list[int]) -> None:
    one, other = with_breakpoints(plain, places), other_shape(with_breakpoints(plain, places))
    assert between(linted(one, other)) == []
    assert [(found.code, found.path) for found in linted(one)] == [(found.code, found.path) for found in linted(other)]


@given(bodies(), four, st.integers(1, 3))
def test_a_conversation_that_goes_on_is_no_difference(plain: Body, places: list[int], more: int) -> None:
    messages = [*plain["messages"], *[assistant(text(90, "a")), user(text(90, "q"))] * more]
    grown = with_breakpoints({**plain, "messages": messages}, [*places[:3], len(messages) + 2])
    assert between(linted(with_breakpoints(plain, places), grown)) == []


@given(bodies(), four)
def test_lint_is_a_function_of_its_input_and_leaves_it_as_it_is(plain: Body, places: list[int]) -> None:
    sent = with_breakpoints(plain, places)
    kept = deepcopy(sent)
    found = lint(sent, {**sent, "max_tokens": 1}, tokens="bytes")
    assert found == lint(sent, {**sent, "max_tokens": 1}, tokens="bytes") and sent == kept
    ranks = [("error", "warning", "note").index(one.severity) for one in found]
    assert ranks == sorted(ranks)
