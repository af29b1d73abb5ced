"""Breakpoints where a preset places them, on the requests as they were sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cachecost.analysis.replays.steps import ReplayStep, change_breakpoints
from cachecost.analysis.whatif.option import BREAKPOINTS, Option, own_ttl
from cachecost.base import structs
from cachecost.prompts.request import Request
from cachecost.strategies.agent import Agent
from cachecost.strategies.placements import Placement, ThreadIndex, View
from cachecost.strategies.presets import PRESETS

DEFAULT_TTL = "5m"


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
    placement = found.placement

    def change(steps: Sequence[ReplayStep]) -> list[ReplayStep]:
        return change_breakpoints(_PresetMarking(placement).mark)(steps)

    return Option(f"breakpoints={name}", "breakpoints", f"breakpoints as {name}: {found.what}", change, BREAKPOINTS)


@dataclass(slots=True)
class _PresetMarking:
    """Marks the requests of one replay, in their order; a placement may learn from the requests before."""

    placement: Placement
    trail: ThreadIndex = field(default_factory=ThreadIndex)

    def mark(self, request: Request) -> Request:
        """The request with the preset's breakpoints; where that states no TTL, with the TTL of the request's own."""
        if request.fault:
            return request
        placement = self.placement
        if placement.ttl == DEFAULT_TTL:
            placement = replace(placement, ttl=own_ttl(request))
        view = View(request.thread, request.tools, request.system, self.trail)
        breakpoints, automatic = placement.place(view)
        return structs.replace(request, breakpoints=breakpoints, automatic=automatic)
