"""The built-in placements of breakpoints, tried on the same calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.analysis.optimum.plan_evaluator import KnownPlaces, PlanEvaluator, PlanStep
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
    placements: list[tuple[str, Placement]] = []
    for agent in PLACEMENTS:
        is_left_out = len(evaluator.sent) > MOST_CALLS and agent.name not in LEADING
        for ttl in TTLS if not (agent.changes or agent.inquiry or is_left_out) else ():
            placement = replace(agent.placement, ttl=ttl)
            if ttl == agent.placement.ttl:
                placements.append((agent.name, placement))
            elif placement.primitives and placement.ttl_error() is None:
                placements.append((f"{agent.name}@{ttl}", placement))
    costs, found = PlacementCosts(evaluator), list[PresetResult]()
    for name, placement in placements:
        steps, refused = costs.place(placement)
        found.append(PresetResult(name, steps, costs.cost(steps), refused))
        progress("placements", len(placements))
        if kept is not None:
            best = {one.name for one in cheapest_first(found)[:kept]}
            found = [one if one.name in best else replace(one, steps=[]) for one in found]
    return found


class PlacementCosts:
    """Plans of placements on the calls of an evaluator, and their cost; equal plans are evaluated once."""

    def __init__(self, evaluator: PlanEvaluator) -> None:
        self._evaluator = evaluator
        self._known: dict[tuple[PlanStep, ...], Decimal] = {}
        self._places = KnownPlaces()

    def place(self, placement: Placement) -> tuple[list[PlanStep], int]:
        """The calls that the API accepts with these breakpoints, and how many it would refuse."""
        trail, steps, refused = ThreadIndex(), list[PlanStep](), 0
        for sent in self._evaluator.sent:
            request = place_breakpoints(sent.call.request, placement, trail)
            if refusal(request, sent_breakpoints(request), sent.rules):
                refused += 1
            else:
                steps.append(PlanStep(sent, self._places.rendered_breakpoints(sent, request)))
        return steps, refused

    def cost(self, steps: Sequence[PlanStep]) -> Decimal:
        """USD, answers included."""
        key = tuple(steps)
        if key not in self._known:
            self._known[key] = self._evaluator.cost(steps)
        return self._known[key]


def cheapest_first(presets: Iterable[PresetResult]) -> list[PresetResult]:
    """The presets without a refused call, the cheapest first."""
    return sorted((one for one in presets if not one.refused), key=lambda one: one.usd)


def place_breakpoints(request: Request, placement: Placement, trail: ThreadIndex) -> Request:
    """The request with the breakpoints of the placement."""
    breakpoints, automatic = placement.place(View(request.thread, request.tools, request.system, trail))
    return replace(request, breakpoints=breakpoints, automatic=automatic)
