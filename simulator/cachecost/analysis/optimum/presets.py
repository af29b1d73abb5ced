"""The built-in placements of breakpoints, tried on the same calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.analysis.optimum.plan_evaluator import Breakpoints, KnownPlaces, PlanEvaluator, PlanStep
from cachecost.prompts.request import Request, refusal, sent_breakpoints
from cachecost.providers.usage import TTLS
from cachecost.strategies.placements import Placement, ThreadIndex, View
from cachecost.strategies.presets import PLACEMENTS

LEADING = (
    "none",
    "automatic",
    "base",
    "system-only",
    "progressive",
    "rfc013-as-written",
    "lagging-tail",
    "claude-code",
)
MOST_CALLS = 600
"""Recordings with more calls are tried with the leading placements only."""


@dataclass(frozen=True, slots=True)
class PresetResult:
    """A placement on these calls: its breakpoints, their cost, and how many calls the API would refuse.

    `steps` is empty where they are not needed any more.
    """

    name: str
    steps: list[PlanStep]
    usd: Decimal
    refused: int = 0


def try_presets(
    evaluator: PlanEvaluator, progress: Callable[[str, int], None], kept: int | None = None
) -> list[PresetResult]:
    """Every built-in placement at 5m and at 1h; equal breakpoints are evaluated once.

    Only the `kept` cheapest without a refused call keep their steps; None: all do.
    """
    known: dict[tuple[Breakpoints, ...], Decimal] = {}
    places = KnownPlaces()
    found, tried = [], list(_placements(len(evaluator.sent) > MOST_CALLS))
    for name, placement in tried:
        found.append(_try_preset(evaluator, name, placement, known, places))
        progress("placements", len(tried))
        if kept is not None:
            best = {one.name for one in cheapest_first(found)[:kept]}
            found = [one if one.name in best else replace(one, steps=[]) for one in found]
    return found


def cheapest_first(presets: Iterable[PresetResult]) -> list[PresetResult]:
    """The presets without a refused call, the cheapest first."""
    return sorted((one for one in presets if not one.refused), key=lambda one: one.usd)


def _placements(leading_only: bool) -> Iterator[tuple[str, Placement]]:
    for agent in PLACEMENTS:
        if agent.changes or agent.inquiry or (leading_only and agent.name not in LEADING):
            continue
        for ttl in TTLS:
            placement = replace(agent.placement, ttl=ttl)
            is_own = ttl == agent.placement.ttl
            if is_own:
                yield agent.name, placement
            elif placement.primitives and placement.ttl_error() is None:
                yield f"{agent.name}@{ttl}", placement


def _try_preset(
    evaluator: PlanEvaluator,
    name: str,
    placement: Placement,
    known: dict[tuple[Breakpoints, ...], Decimal],
    places: KnownPlaces,
) -> PresetResult:
    trail, steps, refused = ThreadIndex(), list[PlanStep](), 0
    for sent in evaluator.sent:
        request = place_breakpoints(sent.call.request, placement, trail)
        if refusal(request, sent_breakpoints(request), sent.rules):
            refused += 1
            continue
        steps.append(PlanStep(sent, places.rendered_breakpoints(sent, request)))
    breakpoints = (*(step.breakpoints for step in steps), ())
    if refused or breakpoints not in known:
        known[breakpoints] = evaluator.cost(steps)
    return PresetResult(name, steps, known[breakpoints], refused)


def place_breakpoints(request: Request, placement: Placement, trail: ThreadIndex) -> Request:
    """The request with the breakpoints of the placement."""
    breakpoints, automatic = placement.place(View(request.thread, request.tools, request.system, trail))
    return replace(request, breakpoints=breakpoints, automatic=automatic)
