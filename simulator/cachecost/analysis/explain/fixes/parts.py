"""Requests with other tools or another system prompt."""

from __future__ import annotations

from collections.abc import Sequence

from cachecost.base.structs import replace
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Block, Layer, Part
from cachecost.prompts.refusals import accepts_breakpoint
from cachecost.prompts.request import Breakpoint


def with_part(call: Call, layer: Layer, part: Part) -> Call:
    """The call with other tools or another system prompt; breakpoints stay on the same or the last block."""
    request = call.request
    was = request.tools if layer is Layer.TOOLS else request.system
    if was is part or was.digest == part.digest:
        return call
    breakpoints = _moved(request.breakpoints, layer, was.blocks, part.blocks)
    if layer is Layer.TOOLS:
        return replace(call, request=replace(request, tools=part, breakpoints=breakpoints))
    return replace(call, request=replace(request, system=part, breakpoints=breakpoints))


def _moved(
    breakpoints: Sequence[Breakpoint], layer: Layer, was: Sequence[Block], now: Sequence[Block]
) -> tuple[Breakpoint, ...]:
    moved = [_move(one, was, now) if one.layer is layer else one for one in breakpoints]
    unique = {one.block_key: one for one in moved if one is not None}
    return tuple(unique.values())


def _move(breakpoint: Breakpoint, was: Sequence[Block], now: Sequence[Block]) -> Breakpoint | None:
    """On the last block it stays on the last, else on its block or the one in its place."""
    ends = [index for index, block in enumerate(now) if accepts_breakpoint(block)]
    if not ends:
        return None
    if breakpoint.index >= len(was) - 1:
        return replace(breakpoint, index=ends[-1])
    digest = was[breakpoint.index].digest
    same = (index for index, block in enumerate(now) if block.digest == digest)
    return replace(breakpoint, index=next(same, min(breakpoint.index, ends[-1])))
