"""The prompt timeline of a call: its breakpoints, the kinds of blocks that were not read, and who wrote last."""

from __future__ import annotations

import pytest

from bodies import RULES, Body, Bytes, assistant, body, marked, text, tool, tool_result, tool_use, user
from cachecost.caches.breakpoints import PrefixCache
from cachecost.ledger.results import BreakpointAt, CallTimeline, build_timeline
from cachecost.prompts.intake import Intake
from cachecost.prompts.render import AS_COUNTED, Renderer
from cachecost.prompts.request import sent_breakpoints

A, B, C = text(2000, "a"), text(2000, "b"), text(2000, "c")
USE, RESULT = tool_use(100, "t"), tool_result(300, "t")


def timelines(*bodies: Body) -> list[CallTimeline]:
    intake, renderer, cache = Intake(), Renderer(Bytes()), PrefixCache()
    made = []
    for number, sent in enumerate(bodies):
        request = intake.body(sent)
        prompt = renderer.render(request, sent_breakpoints(request).breakpoints, RULES)
        made.append(build_timeline(prompt, AS_COUNTED, cache.call(prompt, RULES, 10.0 * number, 0.0)))
    return made


def test_the_first_call_reads_nothing_and_has_all_its_kinds_in_prompt_order() -> None:
    (made,) = timelines(body(user(A, marked(B, "1h")), tools=[tool(200)], system=[text(500, "s")]))
    assert made == CallTimeline((BreakpointAt(4700, "1h"),), (("tool", 1), ("text", 3)), is_human=True)


def test_what_was_read_is_not_fresh() -> None:
    first = body(user(marked(A)))
    second = body(user(A), assistant(text(50, "x"), USE), user(RESULT, marked(B)))
    made = timelines(first, second)[1]
    assert made.fresh == (("tool_use", 1), ("tool_result", 1), ("text", 2))  # as the last of each stands
    assert made.breakpoints == (BreakpointAt(2000 + 50 + 100 + 300 + 2000, "5m"),)


def test_a_breakpoint_below_the_minimum_is_none() -> None:
    (made,) = timelines(body(user(marked(text(500, "a")), marked(A))))
    assert made.breakpoints == (BreakpointAt(2500, "5m"),)


@pytest.mark.parametrize(
    ("messages", "is_human"),
    [
        ((user(A),), True),
        ((user(A), assistant(USE), user(RESULT)), False),
        ((user(A), assistant(USE), user(RESULT, B)), True),
        ((user(A), assistant(USE), user(B, RESULT)), True),
        ((user(A), assistant(B)), False),
    ],
)
def test_a_message_of_tool_results_alone_is_no_persons(messages: tuple[Body, ...], is_human: bool) -> None:
    (made,) = timelines(body(*messages))
    assert made.is_human is is_human
