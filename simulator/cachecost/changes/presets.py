"""Breakpoints where a preset places them, on the requests as they were sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachecost.base import structs
from cachecost.base.structs import replace
from cachecost.changes.option import BREAKPOINTS, Option, own_ttl
from cachecost.changes.steps import ReplayStep, change_breakpoints
from cachecost.prompts.request import Request
from cachecost.strategies.agent import Agent
from cachecost.strategies.placements import ThreadIndex, View
from cachecost.strategies.presets import PRESETS


def list_placing_presets() -> Iterator[Agent]:
    """The presets that do nothing but place breakpoints, by name.

    One that looks at forks is not among them: of a recording it would see forks that came later.
    """
    for _, preset in sorted(PRESETS.items()):
        does_more = preset.inquiry or preset.inquiry_by_host or preset.changes
        if not does_more and not any(primitive.sees_forks for primitive in preset.placement.primitives):
            yield preset


def preset_option(name: str) -> Option | None:
    """The breakpoints of the preset `name`; None where there is no such preset."""
    found = next((preset for preset in list_placing_presets() if preset.name == name), None)
    if found is None:
        return None
    preset = found.placement

    def change(steps: Sequence[ReplayStep]) -> list[ReplayStep]:
        trail = ThreadIndex()  # a placement may learn from the requests before

        def mark(request: Request) -> Request:
            if request.fault:
                return request
            # A preset that states no TTL has that of the request's own breakpoints.
            placement = replace(preset, ttl=own_ttl(request)) if preset.ttl == "5m" else preset
            view = View(request.thread, request.tools, request.system, trail)
            breakpoints, automatic = placement.place(view)
            return structs.replace(request, breakpoints=breakpoints, automatic=automatic)

        return change_breakpoints(mark)(steps)

    return Option(f"breakpoints={name}", "breakpoints", f"breakpoints as {name}: {found.what}", change, BREAKPOINTS)
