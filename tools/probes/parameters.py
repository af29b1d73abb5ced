"""In which layer thinking, effort and structured output are rendered, and what a changed tool_choice rewrites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cachecost.base.structs import replace
from tools.probes.harness import Probe, ProbeRun, ask_repeatedly
from tools.probes.layers import NOTHING, Fields, LayeredBody, level_after, write_layers
from tools.probes.model import ProbeAnswer, RoundResult

BUDGET = 1024
CHANGES: Mapping[str, Fields] = {
    "adaptive": {"thinking": {"type": "adaptive"}},
    "disabled": {"thinking": {"type": "disabled"}},
    "a budget": {"thinking": {"type": "enabled", "budget_tokens": BUDGET}, "max_tokens": BUDGET + 1},
}
"""Ways to change thinking from the model's default. Models differ in which they accept and which are a change; the one
that may cost output comes last."""
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
"""How far a changed body reads -> the layer that the change is rendered before."""


async def _thinking(probe_run: ProbeRun) -> ProbeAnswer:
    return await ask_repeatedly(probe_run, _thinking_once)


async def _thinking_once(probe_run: ProbeRun) -> RoundResult:
    base = await write_layers(probe_run, {})
    tried = []
    for name, changed in CHANGES.items():
        level = await level_after(probe_run, base, {}, changed)
        tried.append(f"{name} is refused" if level is None else f"from unset to {name} reads {level}")
        if level not in (None, "messages"):
            return RoundResult(THINKING_AT.get(str(level)), ", ".join(tried))
    return RoundResult(None, f"no change of thinking affects the cache: {', '.join(tried)}", True)


async def _format(probe_run: ProbeRun) -> ProbeAnswer:
    return await ask_repeatedly(probe_run, _format_once)


async def _format_once(probe_run: ProbeRun) -> RoundResult:
    level = await level_after(probe_run, await write_layers(probe_run, {}), {}, FORMAT)
    if level is None:
        return RoundResult(None, f"{probe_run.priced.model} refuses output_config.format", True)
    return RoundResult(FORMAT_AT.get(level), f"without to with a schema reads {level}")


async def _effort(probe_run: ProbeRun) -> ProbeAnswer:
    return await ask_repeatedly(probe_run, _effort_once)


async def _effort_once(probe_run: ProbeRun) -> RoundResult:
    base = await write_layers(probe_run, {})
    levels = {}
    for effort in EFFORTS:
        levels[effort] = await level_after(probe_run, base, {}, {"output_config": {"effort": effort}})
        if levels[effort] is None:
            return RoundResult(None, f"{probe_run.priced.model} refuses output_config.effort", True)
    words = ", ".join(f"from unset to {effort} reads {level}" for effort, level in levels.items())
    return RoundResult(_effort_at(levels), words)


def _effort_at(levels: Mapping[str, str | None]) -> str | None:
    """ "default high, changes at messages": which effort is the default, and where the others are rendered."""
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
    "in which layer is the thinking configuration rendered?",
    _thinking,
    ((27, 2000),),
    settles=27,
    output_tokens=3 * BUDGET,
    switch="thinking_rendered_at",
)
STRUCTURED = Probe(
    "structured_output_at",
    "in which layer is the structured-output prompt rendered?",
    _format,
    ((15, 2000),),
    settles=15,
    switch="structured_output_at",
)
EFFORT = Probe(
    "effort",
    "does a changed effort rewrite the messages, and which effort is the default?",
    _effort,
    ((27, 2000),),
    settles=27,
)


AUTO = {"tool_choice": {"type": "auto"}}
NONE = {"tool_choice": {"type": "none"}}
ANY = {"tool_choice": {"type": "any"}}
NAMED = {"tool_choice": {"type": "tool", "name": "note"}}
TOOL_CHOICE_READINGS = {
    ("messages", "system", "system"): "rendered_class",
    ("system", "system", "system"): "any_change",
    ("messages", "messages", "messages"): "never",
}
"""How far auto -> none, auto -> any, any -> a named tool read, under each assumption."""


async def _tool_choice(probe_run: ProbeRun) -> ProbeAnswer:
    return await ask_repeatedly(probe_run, _tool_choice_once)


async def _tool_choice_once(probe_run: ProbeRun) -> RoundResult:
    base = await write_layers(probe_run, AUTO)
    to_none = await level_after(probe_run, base, AUTO, NONE)
    to_any = await level_after(probe_run, base, AUTO, ANY)
    if to_any is None:
        return _without_forced(probe_run, to_none)
    to_named = await _from_any(probe_run, base)
    words = f"auto to none reads {to_none}, auto to any {to_any}, any to a named tool {to_named}"
    return RoundResult(TOOL_CHOICE_READINGS.get((str(to_none), to_any, str(to_named))), words)


async def _from_any(probe_run: ProbeRun, base: LayeredBody) -> str | None:
    """`any` has a longer prompt than `auto`, so the end of its messages comes from its own bill."""
    usage = (await probe_run.send(base.body(ANY))).usage
    await probe_run.settle()
    longer = replace(base, ends=(*base.ends[:2], usage.read + usage.write))
    return await level_after(probe_run, longer, ANY, NAMED)


def _without_forced(probe_run: ProbeRun, to_none: str | None) -> RoundResult:
    refused = f"{probe_run.priced.model} refuses a forced choice"
    if to_none == "system":
        return RoundResult("any_change", f"auto to none reads system; {refused}")
    why = "which fits rendered_class as well as never" if to_none == "messages" else "which fits no value"
    return RoundResult(None, f"{refused}, and auto to none reads {to_none}, {why}: use a model that accepts any", True)


TOOL_CHOICE = Probe(
    "tool_choice_invalidation",
    "what does a changed tool_choice rewrite in the messages?",
    _tool_choice,
    ((30, 2000),),
    settles=30,
    switch="tool_choice_invalidation",
)
