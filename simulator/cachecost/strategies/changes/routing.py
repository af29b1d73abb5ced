"""Where calls go and whether they succeed: side calls to another model, calls that fail and are sent again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from cachecost.conversations.calls import PlannedCall
from cachecost.prompts.blocks import NOTHING, Layer, estimate_tokens
from cachecost.prompts.request import Request
from cachecost.strategies.changes.base import AgentChange
from cachecost.strategies.changes.keepalive import Delays, Timed, sort_calls
from cachecost.strategies.model_facts import EvenSampler


@dataclass(frozen=True, slots=True)
class RouteAsides(AgentChange):
    """Side calls go to `model`, which has a cache of its own; left out, they stay where they are.

    Main calls whose answer is at most `short_tokens` long go there, too: an upper bound of what a router can do, which
    must guess. `thinking` "off" assumptions it off where it was asked for; effort and speed do not go along to another
    model. `tools: none` sends no tools. Questions of tools are not routed: they have options of their own (`inquiry`).
    """

    model: str | None = None
    thinking: Literal["same", "off"] = "off"
    tools: Literal["same", "none"] = "same"
    short_tokens: int = 0

    def plan_calls(self, calls: Iterator[PlannedCall]) -> Iterator[PlannedCall]:
        for call in calls:
            yield replace(call, request=self._route(call.request)) if self._is_routed(call) else call

    def _is_routed(self, call: PlannedCall) -> bool:
        if call.purpose != "main" or not self.short_tokens:
            return call.purpose == "aside"
        tokens = call.output_tokens
        return (sum(map(estimate_tokens, call.output)) if tokens is None else tokens) <= self.short_tokens

    def _route(self, request: Request) -> Request:
        params = self._params(request.params)
        routed = replace(request, model=self.model or request.model, params=params)
        if self.tools == "same":
            return routed
        breakpoints = tuple(breakpoint for breakpoint in request.breakpoints if breakpoint.layer is not Layer.TOOLS)
        params.pop("tool_choice", None)
        return replace(routed, tools=NOTHING, breakpoints=breakpoints)

    def _params(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        params = dict(recorded)
        if self.thinking == "off" and "thinking" in params:
            params["thinking"] = {"type": "disabled"}
        if self.model is not None:
            params.pop("speed", None)
            config = {
                name: value for name, value in (params.pop("output_config", None) or {}).items() if name != "effort"
            }
            params.update({"output_config": config} if config else {})
        return params


@dataclass(frozen=True, slots=True)
class CallRetries(AgentChange):
    """A share `rate` of all calls fails once and is sent again `wait_s` seconds later.

    `refused` (429, 500, 529) is not billed and touches no cache, so it is no call in the report: it only costs time.
    `timeout` comes after the first token: the lost attempt is billed in full, with `output_tokens` of answer, and what
    it wrote can be read by the next one. Calls that go on from a late one start 2 s after it where they would start
    before. Anthropic's SDK (_constants.py) waits 0.5 s to 8 s, and times out
    after 600 s unless told otherwise: `wait_s` is then 600.
    """

    rate: float = 0.02
    fails: Literal["refused", "timeout"] = "refused"
    wait_s: float = 1.0
    output_tokens: int = 0

    def plan_calls(self, calls: Iterator[PlannedCall]) -> Iterator[PlannedCall]:
        return sort_calls(self._again(calls))

    def _again(self, calls: Iterator[PlannedCall]) -> Iterator[Timed]:
        fails, delays = EvenSampler(self.rate), Delays()
        for call in calls:
            start, is_lost = delays.start(call), fails()
            if is_lost and self.fails == "timeout":
                lost = replace(call, start=start, output=(), output_tokens=self.output_tokens, purpose="failed")
                yield call.start, lost
            yield call.start, delays.delay(call, start + self.wait_s if is_lost else start)


CHANGES: dict[str, type[AgentChange]] = {"retries": CallRetries, "route_asides": RouteAsides}
