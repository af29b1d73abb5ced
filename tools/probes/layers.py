"""In which layer a changed parameter is rendered: a body with a breakpoint after each layer, sent with and without.

The ends of the layers come from bills, not counts: read + written is the prefix up to the last breakpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.probes.bodies import ASK, Body, filler, prefix_words, text, tool, user, words_for
from tools.probes.harness import ProbeRun
from tools.probes.model import Unsettled

LAYERS = ("tools", "system", "messages")
NEAR = 2
"""Tokens by which two bills of one prefix may differ."""
STEP = 150
"""Tokens of the system prompt and of the message, enough to separate the ends of the layers."""
NOTHING = "nothing"
Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LayeredBody:
    """A body with text in each layer. `ends` are tokens up to the end of tools, system and messages, as billed."""

    start: str
    head: str
    step: str
    ends: tuple[int, ...] = ()

    def body(self, fields: Fields, breakpoints: int = len(LAYERS)) -> Body:
        """The body with `fields`, and breakpoints after the first `breakpoints` layers."""
        tools, system, messages = ("5m" if number < breakpoints else None for number in range(len(LAYERS)))
        return {
            "tools": [tool(f"{self.start} {self.head}", tools)],
            "system": [text(self.step, system)],
            "messages": [user(text(f"{self.step} {ASK}", messages))],
            **fields,
        }

    def level(self, read: int) -> str:
        """The last layer that was read completely, "nothing", or the number of tokens if no layer ends there."""
        if not read:
            return NOTHING
        ends = zip(LAYERS, self.ends, strict=True)
        return next((layer for layer, end in ends if abs(read - end) <= NEAR), f"{read} tokens")


async def write_layers(probe_run: ProbeRun, fields: Fields) -> LayeredBody:
    """A fresh body, written layer by layer. Raises Unsettled if nothing of it was cached."""
    start, head = probe_run.fresh(), filler(await prefix_words(probe_run))
    plain = LayeredBody(start, head, filler(await words_for(probe_run, STEP)))
    ends = [await _end(probe_run, plain.body(fields, breakpoints)) for breakpoints in range(1, len(LAYERS) + 1)]
    if not ends[0]:
        raise probe_run.not_cached_error()
    if ends[1] - ends[0] <= NEAR or ends[2] - ends[1] <= NEAR:
        raise Unsettled(f"the ends of the three layers should differ, and were billed at {ends}")
    return LayeredBody(start, plain.head, plain.step, tuple(ends))


async def _end(probe_run: ProbeRun, body: Body) -> int:
    usage = (await probe_run.send(body)).usage
    await probe_run.settle()
    return usage.read + usage.write


async def level_after(probe_run: ProbeRun, base: LayeredBody, fields: Fields, changed: Fields) -> str | None:
    """How far the changed body reads what the unchanged one wrote; None if the API refuses it.

    The unchanged one is sent again: its entries must still exist, or the result means nothing. Raises Unsettled.
    """
    sent = await probe_run.send_unless_refused(base.body({**fields, **changed}))
    if sent is None:
        return None
    await probe_run.settle()
    again = base.level((await probe_run.send(base.body(fields))).usage.read)
    await probe_run.settle()
    if again != LAYERS[-1]:
        raise Unsettled(f"the unchanged body read {again} when sent again, instead of messages")
    return base.level(sent.usage.read)
