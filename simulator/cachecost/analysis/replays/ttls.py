"""Other TTLs for the existing breakpoints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from cachecost.base.structs import replace
from cachecost.prompts.blocks import Layer
from cachecost.prompts.request import TTL, Request


def set_ttl(ttl: TTL) -> Callable[[Request], Request]:
    """Every breakpoint with this TTL."""
    return partial(_with_ttls, ttl_of=lambda layer: ttl)


def set_hour_on(layers: Sequence[Layer]) -> Callable[[Request], Request]:
    """1h for breakpoints on these layers, 5m for others."""
    return partial(_with_ttls, ttl_of=lambda layer: "1h" if layer in layers else "5m")


def _with_ttls(request: Request, ttl_of: Callable[[Layer], TTL]) -> Request:
    breakpoints = tuple(replace(breakpoint, ttl=ttl_of(breakpoint.layer)) for breakpoint in request.breakpoints)
    automatic = ttl_of(Layer.MESSAGES) if request.automatic else None
    if breakpoints == request.breakpoints and automatic == request.automatic:
        return request
    return replace(request, breakpoints=breakpoints, automatic=automatic)
