"""Server tools: usage sums the passes, and each pass leaves a five-minute entry on its tool results."""

from __future__ import annotations

from bodies import RULES, Body, Bytes, body, marked, text, tool_use, user
from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.prompts.blocks import Block
from cachecost.prompts.intake import Intake
from cachecost.prompts.passes import passes
from cachecost.prompts.render import Renderer
from cachecost.prompts.request import block_of, sent_breakpoints


def server_result(name: str, size: int) -> Body:
    return {"type": "web_search_tool_result", "tool_use_id": name, "content": "y" * size}


def answered(*items: Body) -> tuple[Block, ...]:
    return tuple(block_of("assistant", item) for item in items)


def simulate(request_body: Body, response: tuple[Block, ...]) -> list[Outcome]:
    intake, renderer, cache = Intake(), Renderer(Bytes()), PrefixCache()
    request = intake.body(request_body)
    outcomes = []
    for number, each in enumerate(passes(request, response)):
        prompt = renderer.render(each, sent_breakpoints(each).breakpoints, RULES)
        outcomes.append(cache.call(prompt, RULES, 100.0 + number / 1000))
    return outcomes


USE, RESULT = {**tool_use(90, "s1"), "type": "server_tool_use"}, server_result("s1", 500)
ANSWER = text(300, "found it")


def test_without_server_tools_there_is_one_pass() -> None:
    assert len(simulate(body(user(marked(text(2000)))), answered(ANSWER))) == 1


def test_the_second_pass_reads_what_the_first_wrote() -> None:
    first, second = simulate(body(user(marked(text(2000)))), answered(USE, RESULT, ANSWER))
    added = sum(block.size for block in answered(USE, RESULT))
    assert (first.read, first.write_5m) == (0, 2000)
    assert (second.read, second.write_5m) == (2000, added)


def test_results_that_came_together_are_one_pass_and_the_last_block_needs_none() -> None:
    other = server_result("s2", 100)
    request = body(user(marked(text(2000))))
    assert len(passes(Intake().body(request), answered(USE, RESULT, other, ANSWER))) == 2
    assert len(passes(Intake().body(request), answered(USE, RESULT))) == 1, "nothing was sampled after the result"
    assert len(passes(Intake().body(request), answered(RESULT, ANSWER))) == 1, "nothing was sampled before it"
    assert len(passes(Intake().body(request), answered(RESULT, ANSWER, USE, RESULT, ANSWER))) == 2


def test_automatic_caching_moves_to_the_result() -> None:
    first, second = simulate(body(user(text(2000)), cache_control={"type": "ephemeral"}), answered(USE, RESULT, ANSWER))
    assert second.read == first.write_5m == 2000 and second.uncached == 0


def test_without_any_breakpoint_the_server_breakpoints_nothing() -> None:
    outcomes = simulate(body(user(text(2000))), answered(USE, RESULT, ANSWER))
    assert [(outcome.read, outcome.write_5m) for outcome in outcomes] == [(0, 0), (0, 0)]
    assert outcomes[1].uncached > outcomes[0].uncached == 2000
