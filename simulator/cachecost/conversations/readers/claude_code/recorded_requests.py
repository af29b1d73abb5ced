"""The breakpoints of a request as a transcript states them (lines of type "api-request", client 2.1.282 and later)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast, get_args

from cachecost.prompts.request import TTL


class RecordedBreakpoints(NamedTuple):
    """The TTL of the breakpoints on tools and system prompt (None: there is none), and those in messages, in order."""

    head: TTL | None
    messages: tuple[TTL, ...]


def recorded_breakpoints(stated: Any) -> RecordedBreakpoints | None:
    """The breakpoints in the `cacheControl` of an api-request line; None if it states none that can be read."""
    if not isinstance(stated, list):
        return None
    found = list(_places(stated))
    if len(found) < len(stated):
        return None
    head = [ttl for layer, ttl in found if layer != "messages"]
    return RecordedBreakpoints(head[-1] if head else None, tuple(ttl for layer, ttl in found if layer == "messages"))


def _places(stated: list[Any]) -> Iterator[tuple[str, TTL]]:
    """(layer, TTL) of each breakpoint that has both: `{"path": ["system", 1], "value": {"type", "ttl"?}}`."""
    for one in stated:
        path, control = (one.get("path"), one.get("value")) if isinstance(one, Mapping) else (None, None)
        ttl = control.get("ttl", "5m") if isinstance(control, Mapping) else None
        if isinstance(path, list) and path and ttl in get_args(TTL):
            yield str(path[0]), cast("TTL", ttl)
