"""What a changed tool_choice rewrites (switch tool_choice_invalidation)."""

from __future__ import annotations

from dataclasses import replace

from cachecost.live.probes.harness import Bench, Probe
from cachecost.live.probes.layers import Layered, layered, level_after
from cachecost.live.probes.model import Answer, Reading
from cachecost.live.probes.rounds import agreed

AUTO = {"tool_choice": {"type": "auto"}}
NONE = {"tool_choice": {"type": "none"}}
ANY = {"tool_choice": {"type": "any"}}
NAMED = {"tool_choice": {"type": "tool", "name": "note"}}
READINGS = {
    ("messages", "system", "system"): "rendered_class",
    ("system", "system", "system"): "any_change",
    ("messages", "messages", "messages"): "never",
}
"""Up to where auto -> none, auto -> any, any -> a named tool read, under each reading."""


async def _run(bench: Bench) -> Answer:
    return await agreed(bench, _once)


async def _once(bench: Bench) -> Reading:
    base = await layered(bench, AUTO)
    to_none = await level_after(bench, base, AUTO, NONE)
    to_any = await level_after(bench, base, AUTO, ANY)
    if to_any is None:
        return _without_forced(bench, to_none)
    to_named = await _from_any(bench, base)
    told = f"auto to none reads {to_none}, auto to any {to_any}, any to a named tool {to_named}"
    return Reading(READINGS.get((str(to_none), to_any, str(to_named))), told)


async def _from_any(bench: Bench, base: Layered) -> str | None:
    """As any has a longer prompt than auto, the end of its messages is read off its own bill."""
    usage = (await bench.send(base.body(ANY))).usage
    await bench.settle()
    longer = replace(base, ends=(*base.ends[:2], usage.read + usage.write))
    return await level_after(bench, longer, ANY, NAMED)


def _without_forced(bench: Bench, to_none: str | None) -> Reading:
    refused = f"{bench.priced.model} refuses a forced choice"
    if to_none == "system":
        return Reading("any_change", f"auto to none reads system; {refused}")
    why = "which fits rendered_class as well as never" if to_none == "messages" else "which fits no reading"
    return Reading(None, f"{refused}, and auto to none reads {to_none}, {why}: ask a model that takes any", True)


TOOL_CHOICE = Probe(
    "tool_choice_invalidation",
    "what does a changed tool_choice rewrite in the messages?",
    _run,
    ((30, 2000),),
    settles=30,
    switch="tool_choice_invalidation",
)
