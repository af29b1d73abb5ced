"""Translates a request for a host: its own breakpoints and boundaries, and notes on what it cannot express.

A strategy uses the Messages API's terms: a static prefix (breakpoints in tools and system), the last message (a
top-level `cache_control` or a breakpoint on it), breakpoints in between. A host with the same terms gets the
request unchanged. Otherwise:

- OpenAI from GPT-5.6 on (`implicit_breakpoint`): a breakpoint on the last message, or none, means implicit mode, which
  places one at the end of the latest user message or group of results; other breakpoints mean explicit mode. Of too
  many breakpoints the oldest are dropped silently. It looks where this request has breakpoints and, in implicit mode,
  at the ends of earlier user messages and of the first developer messages. (Guide of 2026-10-02; openai 3.54.0.)
- Gemini's CachedContent (`matching` "named"): the last breakpoint of the static prefix ends the object.
  (google-genai 3.4.0.)
- Hosts that cache automatically: no breakpoints.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from operator import attrgetter

import msgspec

from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block, Layer, Part, Thread
from cachecost.prompts.request import (
    TTL,
    Breakpoint,
    Request,
    accepts_breakpoint,
    last_breakpoint_place,
    sent_breakpoints,
)
from cachecost.providers.rules import ModelRules

EARLIER_ENDS = 20
"""How many ends of earlier user messages are looked at in implicit mode (guide of 2026-10-02)."""
FIRST_BREAKPOINTS, LATEST_BREAKPOINTS, BREAKPOINTS_OF_SDK = 2, 50, 80
"""Breakpoints that are looked at: the first 2 and the latest 50 (guide), or the latest 80 (SDK of November 2026)."""
MOST_PARTS = 256
"""System prompts without their instructions that are kept."""


class HostRequest(msgspec.Struct, frozen=True):
    """A request as a host receives it. `looks_at` are the only places where it looks for an entry; None: rule 9.
    `uncached` are blocks that are no part of the prefix."""

    request: Request
    looks_at: tuple[Breakpoint, ...] | None = None
    notes: tuple[str, ...] = ()
    uncached: tuple[Block, ...] = ()


def translate(request: Request, rules: ModelRules) -> HostRequest:
    """`request` in the terms of the host of `rules`."""
    count = None if rules.caches_instructions else request.params.get("instruction_blocks")
    if not isinstance(count, int) or count < 1:
        return _translated(request, rules)
    kept = []
    for one in request.breakpoints:
        if one.layer is not Layer.SYSTEM:
            kept.append(one)
        elif one.index >= count:
            kept.append(replace(one, index=one.index - count))
    cached = replace(request, system=_part_after(request.system, count), breakpoints=tuple(kept))
    return replace(_translated(cached, rules), uncached=request.system.blocks[:count])


def _translated(request: Request, rules: ModelRules) -> HostRequest:
    if rules.uses_breakpoints:
        able = [breakpoint for breakpoint in request.breakpoints if breakpoint.layer in rules.breakpoint_layers]
        most = rules.maximum_breakpoints - (request.automatic is not None)
        kept = able[-most:] if rules.surplus_breakpoints == "oldest_dropped" and len(able) > most else able
        if len(kept) == len(request.breakpoints):
            return HostRequest(request)
        notes = _lost_notes(len(request.breakpoints) - len(able), len(able) - len(kept), rules)
        return HostRequest(replace(request, breakpoints=tuple(kept)), notes=notes)
    if rules.matching == "breakpoint":
        return _breakpoint_openai(request, rules)
    if rules.matching == "named":
        # the last breakpoint of the static prefix ends the object; one in messages would need a new object per call
        head = [breakpoint for breakpoint in request.breakpoints if breakpoint.layer is not Layer.MESSAGES]
        lost = []
        if len(head) < len(request.breakpoints) or request.automatic:
            lost.append(f"{rules.host} has no moving breakpoint: an object would be made anew for each call.")
        if not head:
            lost.append("The static prefix has no breakpoint, so no object is made.")
        end = tuple(head[-1:])
        return HostRequest(replace(request, breakpoints=end, automatic=None), end, tuple(lost))
    if not request.breakpoints and request.automatic is None:
        return HostRequest(request)
    by_itself = "caches by itself" if rules.matching != "none" else f"has no prompt cache for {rules.model}"
    note = f"{rules.host} {by_itself}: breakpoints and TTLs are left out."
    return HostRequest(replace(request, breakpoints=(), automatic=None), notes=(note,))


@lru_cache(maxsize=MOST_PARTS)
def _part_after(part: Part, count: int) -> Part:
    """A part without its first `count` blocks, the same one each time."""
    return Part(part.blocks[count:])


def _breakpoint_openai(request: Request, rules: ModelRules) -> HostRequest:
    """OpenAI's breakpoints: implicit for the last message, explicit for the others; of too many the oldest are
    dropped.
    """
    sent = (
        request if rules.implicit_breakpoint else replace(request, breakpoints=sent_breakpoints(request).breakpoints)
    ).breakpoints
    able = [breakpoint for breakpoint in sent if breakpoint.layer in rules.breakpoint_layers]
    implicit = _implicit(request, able) if rules.implicit_breakpoint else None
    explicit = [
        breakpoint
        for breakpoint in able
        if not (implicit and _is_at(breakpoint, implicit, last_breakpoint_place(request, "5m")))
    ]
    kept = explicit[max(0, len(explicit) - rules.maximum_breakpoints + (implicit is not None)) :]
    if rules.assumptions.openai_boundaries == "sdk":
        looks_at = explicit[-BREAKPOINTS_OF_SDK:]
    else:
        looks_at = [*explicit[:FIRST_BREAKPOINTS], *explicit[FIRST_BREAKPOINTS:][-LATEST_BREAKPOINTS:]]
    own = []
    if implicit:
        own.append(implicit)
        if rules.assumptions.openai_developer_end == "readable":  # a call leaves an entry there, at no charge
            own += filter(None, [_end_of_developer(request, implicit.ttl)])
        looks_at += [*islice(_user_ends(request.thread, implicit.ttl), 1 + EARLIER_ENDS), *own]
    breakpoints = {breakpoint.block_key: breakpoint for breakpoint in (*own, *kept)}
    translated = replace(
        request, breakpoints=tuple(sorted(breakpoints.values(), key=attrgetter("prompt_order"))), automatic=None
    )
    notes = _lost_notes(len(sent) - len(able), len(explicit) - len(kept), rules)
    return HostRequest(translated, tuple(looks_at), notes)


def _is_at(breakpoint: Breakpoint, *others: Breakpoint | None) -> bool:
    return any(other and breakpoint.block_key == other.block_key for other in others)


def _lost_notes(misplaced: int, surplus: int, rules: ModelRules) -> tuple[str, ...]:
    """Notes on breakpoints that the host does not take where they are, or so many of."""
    words = " and ".join(rules.breakpoint_layers)
    own = ", its own among them" if rules.implicit_breakpoint else ""
    most = f"{rules.host} writes at {rules.maximum_breakpoints} breakpoints at most{own}"
    return (
        *([f"{rules.host} takes breakpoints in {words} only: others are left out."] if misplaced else []),
        *([f"{most}: of more the oldest are dropped."] if surplus else []),
    )


def _implicit(request: Request, able: list[Breakpoint]) -> Breakpoint | None:
    """The breakpoint of implicit mode, at the end of the latest user message.

    Without a user message, at the end of the developer messages. None: explicit mode.
    """
    last = last_breakpoint_place(request, "5m")
    tail = request.automatic or next((breakpoint.ttl for breakpoint in able if _is_at(breakpoint, last)), None)
    if tail is None and able:
        return None
    ttl = tail or "5m"
    return next(_user_ends(request.thread, ttl), None) or _end_of_developer(request, ttl)


def _user_ends(thread: Thread, ttl: TTL) -> Iterator[Breakpoint]:
    """The ends of user messages, tool results included, latest first."""
    for node in thread.back():
        assert node.message is not None
        if node.message.role == "user" and node.message.blocks:
            last = len(node.message.blocks) - 1
            if accepts_breakpoint(node.message.blocks[last]):
                yield Breakpoint(Layer.MESSAGES, last, ttl, node)


def _end_of_developer(request: Request, ttl: TTL) -> Breakpoint | None:
    blocks = request.system.blocks
    return Breakpoint(Layer.SYSTEM, len(blocks) - 1, ttl) if blocks else None
