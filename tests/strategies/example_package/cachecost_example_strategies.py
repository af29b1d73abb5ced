"""Two strategies of another package: one as data, made of cachecost's primitives, and one with code of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.conversations.model import Conversation
from cachecost.strategies.agent import Agent
from cachecost.strategies.placements import LastMessage, LastTool, Placement, SystemBlock

TWO_TTLS = Agent(
    name="example-two-ttls",
    what="tools and system for an hour, the end of the conversation for five minutes",
    source="the example package in cachecost's tests",
    date="2026-11-22",
    placement=Placement((LastTool(ttl="1h"), SystemBlock("last", ttl="1h"), LastMessage())),
)


class Hindsight:
    """Breakpoints no call that stands alone, with none within `seconds` before it or after it.

    Nothing is written that nobody reads. No agent can know that in advance: it is a bound. An Agent does the walk
    over the conversation; what is left is to change the calls that it plans.
    """

    name = "example-hindsight"
    what = "no breakpoints on calls that stand alone: none within five minutes before or after"
    source = "the example package in cachecost's tests"
    date = "2026-11-22"
    seconds = 300.0

    def plan(self, conversation: Conversation) -> Iterator[Call]:
        calls = list(
            Agent(name=self.name, placement=Placement((SystemBlock("last"), LastMessage()))).plan(conversation)
        )
        near = [after.start - before.start < self.seconds for before, after in pairwise(calls)]
        for call, is_after, is_before in zip(calls, [False, *near], [*near, False], strict=True):
            yield call if is_after or is_before else _unmarked(call)

    def notes(self, conversation: Conversation) -> list[str]:
        return ["It knows when the next call comes, which no agent does."]


def _unmarked(call: Call) -> Call:
    return replace(call, request=replace(call.request, breakpoints=(), automatic=None))
