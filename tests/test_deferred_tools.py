"""Deferred tools: no block of the tools layer; they enter where a `tool_reference` brings them in."""

from __future__ import annotations

from bodies import MARK, Body, Engine, assistant, body, mark_last, marked, text, tool, tool_result, user

PLAIN = marked(tool(1200, "plain"))


def deferred(size: int, name: str) -> Body:
    return {**tool(size, "described"), "name": name, "defer_loading": True}


def found(name: str) -> Body:
    reference = {"type": "tool_reference", "tool_name": name}
    return {"type": "tool_result", "tool_use_id": "t", "content": [reference]}


def test_a_deferred_tool_inserted_between_others_changes_nothing() -> None:
    engine = Engine()
    engine.call(mark_last(body(user(text(500)), tools=[PLAIN])))
    outcome = engine.call(mark_last(body(user(text(500)), tools=[deferred(300, "late"), PLAIN])))
    assert (outcome.read, outcome.write_5m) == (1700, 0)


def test_its_definition_is_not_billed_where_it_is_referred_to() -> None:
    turns = [user(text(1500)), assistant(text(60)), user(found("late"))]
    without = Engine().call(mark_last(body(*turns, tools=[PLAIN])))
    brought = Engine().call(mark_last(body(*turns, tools=[PLAIN, deferred(300, "late")])))
    assert brought.write_5m == without.write_5m


def test_another_definition_behind_the_same_reference_is_other_content() -> None:
    engine = Engine()
    start = [user(text(1500)), assistant(text(60)), user(found("late"))]
    engine.call(mark_last(body(*start, tools=[PLAIN, deferred(300, "late")])))
    again = engine.call(
        mark_last(body(*start, assistant(text(70)), user(text(80)), tools=[PLAIN, deferred(300, "late")]))
    )
    other = engine.call(
        mark_last(body(*start, assistant(text(70)), user(text(80)), tools=[PLAIN, deferred(301, "late")]))
    )
    assert again.write_5m == 150
    assert other.read == 1200, "only the tools in front are the same"


def test_an_unknown_reference_brings_nothing() -> None:
    outcome = Engine().call(body(user(text(1500), found("nobody")), cache_control=MARK))
    assert outcome.uncached == 0


def test_a_plain_result_is_not_a_reference() -> None:
    outcome = Engine().call(
        mark_last(body(user(text(1500)), user(tool_result(90, "late")), tools=[deferred(300, "late")]))
    )
    assert outcome.write_5m == 1590
