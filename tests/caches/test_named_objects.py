"""Named objects: made once, read whole, never longer alive for it."""

from __future__ import annotations

import pytest
from trees import Tree, rules

from cachecost.base.structs import replace
from cachecost.caches.explicit_objects import ExplicitObjectCache

GEMINI = rules(host="gemini", minimum_tokens=100, ttl_s={"5m": 300.0, "1h": 3600.0}, refreshes_on_read=False)
HEAD = ("T:80", "S:20", "|")


def test_the_first_call_makes_it_and_the_next_ones_read_it_until_its_end() -> None:
    tree, objects = Tree(), ExplicitObjectCache()
    calls = [
        objects.call(tree.prompt(*HEAD, f"M{start}:7", tail=3, breakpoint=3), GEMINI, start)
        for start in (0, 299, 300, 599)
    ]
    table = [(call.read, call.write_5m, call.write_1h, call.uncached) for call in calls]
    assert table == [(0, 100, 0, 10), (100, 0, 0, 10), (0, 100, 0, 10), (100, 0, 0, 10)]
    assert [call.hit is tree.end(*HEAD) for call in calls] == [False, True, False, True]


def test_a_read_lengthens_its_life_where_the_rules_say_so() -> None:
    tree, objects, renewed = Tree(), ExplicitObjectCache(), replace(GEMINI, refreshes_on_read=True)
    reads = [objects.call(tree.prompt(*HEAD, breakpoint=3), renewed, start).read for start in (0, 299, 598, 898)]
    assert reads == [0, 100, 100, 0]


def test_an_object_for_an_hour() -> None:
    tree, objects = Tree(), ExplicitObjectCache()
    prompt = tree.prompt(*HEAD, "M:7", breakpoint=3, ttl="1h")
    calls = [objects.call(prompt, GEMINI, start) for start in (0, 3599, 3600)]
    assert [(call.read, call.write_5m, call.write_1h) for call in calls] == [(0, 0, 100), (100, 0, 0), (0, 0, 100)]


@pytest.mark.parametrize("head", [("T:80", "S:19", "|"), ("|", "T:80", "S:20")], ids=["too short", "in messages"])
def test_what_is_no_object_is_sent_as_it_is(head: tuple[str, ...]) -> None:
    tree, objects = Tree(), ExplicitObjectCache()
    calls = [objects.call(tree.prompt(*head, breakpoint=3), GEMINI, start) for start in (0, 1)]
    assert [(call.read, call.write_5m, call.uncached, call.breakpoints) for call in calls] == [
        (0, 0, calls[0].uncached, ())
    ] * 2
    assert calls[0].uncached == tree.end(*head).tokens


def test_tools_alone_are_an_object() -> None:
    tree, objects = Tree(), ExplicitObjectCache()
    calls = [objects.call(tree.prompt("T:120", "/", f"S{at}:9", "|", breakpoint=2), GEMINI, at) for at in (0, 1)]
    assert [(call.read, call.write_5m, call.uncached) for call in calls] == [(0, 120, 9), (120, 0, 9)]


def test_without_a_breakpoint_there_is_no_object() -> None:
    tree, objects = Tree(), ExplicitObjectCache()
    assert [objects.call(tree.prompt(*HEAD, "M:7"), GEMINI, start).uncached for start in (0, 1)] == [107, 107]


def test_another_head_is_another_object_and_one_that_is_being_made_cannot_be_read() -> None:
    tree, objects = Tree(), ExplicitObjectCache()
    prompt, other = tree.prompt(*HEAD, breakpoint=3), tree.prompt("T:80", "X:20", "|", breakpoint=3)
    reads = [objects.call(sent, GEMINI, start, 2).read for sent, start in ((prompt, 0), (prompt, 1), (prompt, 3))]
    assert reads == [0, 0, 100]
    assert objects.call(other, GEMINI, 4).read == 0
    assert objects.state(tree.end(*HEAD), "5m", GEMINI, 4) == "live"
    assert objects.state(tree.end("T:80"), "5m", GEMINI, 4) == "absent"
