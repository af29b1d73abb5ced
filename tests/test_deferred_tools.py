"""Deferred tools: no block of the tools layer; they enter where a `tool_reference` brings them in."""

from __future__ import annotations

from datetime import date

from bodies import BREAKPOINT, Body, Engine, assistant, body, breakpoint_last, marked, text, tool, tool_result, user
from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import compact
from cachecost.prompts.intake import Intake
from cachecost.prompts.passes import body_of
from cachecost.prompts.request import answer_blocks
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup
from cachecost.tokens.tokenizers import count_content, tiktoken_counter

PLAIN = marked(tool(1200, "plain"))


def deferred(size: int, name: str) -> Body:
    return {**tool(size, "described"), "name": name, "defer_loading": True}


def found(name: str) -> Body:
    reference = {"type": "tool_reference", "tool_name": name}
    return {"type": "tool_result", "tool_use_id": "t", "content": [reference]}


def test_a_deferred_tool_inserted_between_others_changes_nothing() -> None:
    engine = Engine()
    engine.call(breakpoint_last(body(user(text(500)), tools=[PLAIN])))
    outcome = engine.call(breakpoint_last(body(user(text(500)), tools=[deferred(300, "late"), PLAIN])))
    assert (outcome.read, outcome.write_5m) == (1700, 0)


def test_its_definition_enters_with_its_tokens_where_it_is_referred_to() -> None:
    turns = [user(text(1500)), assistant(text(60)), user(found("late"))]
    without = Engine().call(breakpoint_last(body(*turns, tools=[PLAIN])))
    late = deferred(300, "late")
    brought = Engine().call(breakpoint_last(body(*turns, tools=[PLAIN, late])))
    assert brought.write_5m == without.write_5m + len(compact(late))


def test_another_definition_behind_the_same_reference_is_other_content() -> None:
    engine = Engine()
    start = [user(text(1500)), assistant(text(60)), user(found("late"))]
    engine.call(breakpoint_last(body(*start, tools=[PLAIN, deferred(300, "late")])))
    again = engine.call(
        breakpoint_last(body(*start, assistant(text(70)), user(text(80)), tools=[PLAIN, deferred(300, "late")]))
    )
    other = engine.call(
        breakpoint_last(body(*start, assistant(text(70)), user(text(80)), tools=[PLAIN, deferred(301, "late")]))
    )
    assert again.write_5m == 150
    assert other.read == 1200, "only the tools in front are the same"


def test_an_unknown_reference_brings_nothing() -> None:
    outcome = Engine().call(body(user(text(1500), found("nobody")), cache_control=BREAKPOINT))
    assert outcome.uncached == 0


def test_a_plain_result_is_not_a_reference() -> None:
    outcome = Engine().call(
        breakpoint_last(body(user(text(1500)), user(tool_result(90, "late")), tools=[deferred(300, "late")]))
    )
    assert outcome.write_5m == 1590


SEARCH = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
SEARCHED = {
    "type": "tool_search_tool_result",
    "tool_use_id": "s",
    "content": {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": "late"}],
    },
}
ANSWER = [
    {"type": "server_tool_use", "id": "s", "name": "tool_search_tool_regex", "input": {"query": "late"}},
    SEARCHED,
    text(90),
]


def replayed(bodies: list[tuple[Body, list[Body]]], tokens: str) -> list[CallRow]:
    """The rows of calls 10 s apart, each with the answer it got."""
    intake, calls = Intake(keep_content=True), []
    for number, (one, answer) in enumerate(bodies):
        request = intake.body({**one, "model": "claude-sonnet-4-5"})
        response = answer_blocks(answer, request.deferred)
        calls.append(Call(request, number * 10.0, response=response, output_tokens=1))
    day = date(2026, 9, 1)
    made = Simulation(ReplaySetup(RuleBook(as_of=day), PriceBook.load(None, day), tokens=tokens))
    return list(made.rows(calls))


def test_the_next_call_reads_what_a_search_inside_a_server_loop_wrote() -> None:
    tools = [SEARCH, deferred(300, "late")]
    first = body(user(text(2000)), tools=tools, cache_control=BREAKPOINT)
    second = body(user(text(2000)), assistant(*ANSWER), user(text(50)), tools=tools, cache_control=BREAKPOINT)
    loop, after = replayed([(first, ANSWER), (second, [])], "bytes")
    written = len(compact(SEARCH)) + 2000 + len(compact(ANSWER[0])) + len(compact(SEARCHED)) + len(compact(tools[1]))
    assert (after.usage.read, after.usage.write_5m) == (written, 90 + 50)
    assert loop.usage.write_5m == written


def test_a_definition_of_two_thousand_words_is_counted_where_it_enters() -> None:
    long = {**deferred(300, "late"), "description": "word " * 2000}
    turns = [user(text(1500)), assistant(text(60)), user(found("late"))]
    plain, short = (
        replayed([(body(*turns, tools=tools), [])], "tiktoken")[0].usage.total_input
        for tools in ([PLAIN, long], [PLAIN, {**long, "name": "other"}])
    )
    assert plain - short > 2000


def test_it_counts_the_same_without_its_content() -> None:
    block = Intake(keep_content=True).body(body(user(found("late")), tools=[PLAIN, deferred(300, "late")]))
    (entering,) = block.thread.messages()[0].blocks
    counts, prose = count_content(entering)
    bare = replace(entering, content=None, brought=(), counts=counts, prose=prose)
    assert tiktoken_counter("claude-3").block(entering) == tiktoken_counter("claude-3").block(bare)


def test_what_a_reference_brings_in_is_sent_again() -> None:
    sent = body(user(found("late")), tools=[PLAIN, deferred(300, "late")])
    request = Intake(keep_content=True).body(sent)
    again = Intake(keep_content=True).body({**body_of(request), "model": request.model})
    assert again.thread.messages()[0].digest == request.thread.messages()[0].digest
    assert [one["name"] for one in body_of(request)["tools"]] == [PLAIN["name"], "late"]
