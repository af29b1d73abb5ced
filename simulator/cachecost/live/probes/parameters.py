"""At which layer thinking, effort and structured output stand (switches thinking_rendered_at, structured_output_at)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cachecost.live.probes.harness import Bench, Probe
from cachecost.live.probes.layers import NOTHING, Fields, layered, level_after
from cachecost.live.probes.model import Answer, Reading
from cachecost.live.probes.rounds import agreed

BUDGET = 1024
CHANGES: Mapping[str, Fields] = {
    "adaptive": {"thinking": {"type": "adaptive"}},
    "disabled": {"thinking": {"type": "disabled"}},
    "a budget": {"thinking": {"type": "enabled", "budget_tokens": BUDGET}, "max_tokens": BUDGET + 1},
}
"""Ways to change thinking from what the model does unasked. Which of them it takes, and which are no change, differs;
the one that may cost output comes last."""
SCHEMA = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
FORMAT = {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
EFFORTS = ("low", "medium", "high")
THINKING_AT = {"system": "messages", NOTHING: "tools"}
FORMAT_AT = {"tools": "system", NOTHING: "tools"}
"""Up to where a changed body reads -> the layer at whose head the change stands."""


async def _thinking(bench: Bench) -> Answer:
    return await agreed(bench, _thinking_once)


async def _thinking_once(bench: Bench) -> Reading:
    base = await layered(bench, {})
    tried = []
    for name, changed in CHANGES.items():
        level = await level_after(bench, base, {}, changed)
        tried.append(f"{name} is refused" if level is None else f"from unset to {name} reads {level}")
        if level not in (None, "messages"):
            return Reading(THINKING_AT.get(str(level)), ", ".join(tried))
    return Reading(None, f"no change of thinking that the cache notices: {', '.join(tried)}", True)


async def _format(bench: Bench) -> Answer:
    return await agreed(bench, _format_once)


async def _format_once(bench: Bench) -> Reading:
    level = await level_after(bench, await layered(bench, {}), {}, FORMAT)
    if level is None:
        return Reading(None, f"{bench.priced.model} refuses output_config.format", True)
    return Reading(FORMAT_AT.get(level), f"without to with a schema reads {level}")


async def _effort(bench: Bench) -> Answer:
    return await agreed(bench, _effort_once)


async def _effort_once(bench: Bench) -> Reading:
    base = await layered(bench, {})
    levels = {}
    for effort in EFFORTS:
        levels[effort] = await level_after(bench, base, {}, {"output_config": {"effort": effort}})
        if levels[effort] is None:
            return Reading(None, f"{bench.priced.model} refuses output_config.effort", True)
    told = ", ".join(f"from unset to {effort} reads {level}" for effort, level in levels.items())
    return Reading(_effort_at(levels), told)


def _effort_at(levels: Mapping[str, str | None]) -> str | None:
    """ "default high, changes at messages": which effort equals none given, and where the others stand."""
    same = [effort for effort, level in levels.items() if level == "messages"]
    others = _distinct(level for level in levels.values() if level != "messages")
    place = THINKING_AT.get(others[0]) if len(others) == 1 else None
    if len(same) == len(levels):
        return "no effort changes the prompt"
    if place is None or len(same) > 1:
        return None
    return f"default {same[0] if same else 'none of ' + ', '.join(levels)}, changes at {place}"


def _distinct(levels: Iterable[str | None]) -> list[str]:
    return sorted({str(level) for level in levels})


THINKING = Probe(
    "thinking_rendered_at",
    "at which layer does the thinking configuration stand?",
    _thinking,
    ((27, 2000),),
    settles=27,
    output_tokens=3 * BUDGET,
    switch="thinking_rendered_at",
)
STRUCTURED = Probe(
    "structured_output_at",
    "at which layer does the structured-output prompt stand?",
    _format,
    ((15, 2000),),
    settles=15,
    switch="structured_output_at",
)
EFFORT = Probe(
    "effort",
    "does a changed effort rewrite the messages, and which effort equals leaving it out?",
    _effort,
    ((27, 2000),),
    settles=27,
)
