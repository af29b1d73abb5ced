"""What `cachecost optimize --json` prints."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from cachecost.analysis.optimum.optimum import Optimum
from cachecost.analysis.optimum.plan_evaluator import PlanStep, build_call
from cachecost.base.formatting import exact
from cachecost.prompts.refusals import wire_path
from cachecost.views.optimum.sentences import plan_words


def optimum_object(found: Optimum) -> dict[str, Any]:
    """The object of docs/reference/output-formats.md, with the sentence of the plan. Dollars are decimal strings."""
    strategies = {one.name: exact(one.usd) for one in found.presets if not one.refused}
    if found.recorded_usd is not None:
        strategies = {found.first: exact(found.recorded_usd), **strategies}
    return {
        "format": 1,
        "best": {
            "cost_usd": exact(found.usd),
            "words": plan_words(found.plan),
            "plan": [_step(step) for step in found.plan],
        },
        "lower_bound_usd": exact(found.lower_bound_usd),
        "lower_bound_without_pings_usd": exact(found.lower_bound.usd),
        "proved_optimal": found.is_optimal,
        "strategies": strategies,
        "refused_strategies": {one.name: one.refused for one in found.presets if one.refused},
        "answers_usd": exact(found.answers_usd),
        "depends_on": found.depends_on,
        "assumptions": [
            {
                "assumption": one.switch,
                "value": one.value,
                "best_usd": exact(one.plan_usd),
                "best_preset_usd": exact(one.preset_usd),
            }
            for one in found.assumptions
        ],
        "prefill": {name: asdict(load) for name, load in found.loads.items()},
        "first_token": None if found.fit is None else {**asdict(found.fit), "supported": found.fit.is_supported},
        "tokens": {"source": found.token_source, "error_margin": found.error_margin},
        "refused_calls": len(found.refused),
    }


def _step(step: PlanStep) -> dict[str, Any]:
    call = build_call(step)
    breakpoints = [
        {"path": wire_path(call.request, breakpoint), "ttl": breakpoint.ttl} for breakpoint in call.request.breakpoints
    ]
    return {"start": call.start, "purpose": call.purpose, "breakpoints": breakpoints}
