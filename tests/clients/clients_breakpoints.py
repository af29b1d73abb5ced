"""Breakpoints that stand in a recording, and those that a placement would have set on the same calls."""

from collections.abc import Iterable, Mapping
from typing import Any

from cachecost.prompts.intake import Intake
from cachecost.prompts.request import Breakpoint, Request
from cachecost.strategies.placements import Placement, ThreadIndex, View

Place = tuple[str, int, int, str]
"""Layer, message (from 1; 0 outside messages), block, TTL."""


def requests_of(bodies: Iterable[Mapping[str, Any]]) -> list[Request]:
    intake = Intake(keep_content=True)
    return [intake.body(body) for body in bodies]


def marked(requests: Iterable[Request]) -> list[tuple[list[Place], str | None]]:
    """For each call its breakpoints, and the TTL of a top-level `cache_control`."""
    return [(describe(request.breakpoints), request.automatic) for request in requests]


def placed(requests: Iterable[Request], placement: Placement) -> list[tuple[list[Place], str | None]]:
    """The same as `placement` has it, with one trail for all calls, as a plan has it."""
    trail = ThreadIndex()
    found = []
    for request in requests:
        breakpoints, automatic = placement.place(View(request.thread, request.tools, request.system, trail))
        found.append((describe(breakpoints), automatic))
    return found


def describe(breakpoints: Iterable[Breakpoint]) -> list[Place]:
    return [
        (str(breakpoint.layer), breakpoint.node.length if breakpoint.node else 0, breakpoint.index, breakpoint.ttl)
        for breakpoint in breakpoints
    ]
