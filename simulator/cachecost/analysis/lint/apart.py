"""Requests of different conversations: what both send, and one of them behind a block that differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cachecost.analysis.lint.loaded_request import LoadedRequest, SizedBreakpoint
from cachecost.caches.alignment import ancestor
from cachecost.caches.changes import find_shared_content, have_one_static
from cachecost.caches.lineage import MOST_RECENT
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.refusals import wire_path
from cachecost.prompts.request import Breakpoint, Request

ConversationPlace = tuple[str, str, str | None, str]
"""File, workspace, host and model: conversations of different places share no cache."""


@dataclass(slots=True)
class RecentConversations:
    """The latest request of each recent conversation; `size` gives it its lengths."""

    size: Callable[[LoadedRequest], LoadedRequest]
    _recent: dict[ConversationPlace, dict[int, LoadedRequest]] = field(default_factory=dict)

    def add(self, request: LoadedRequest, number: int, before: int, place: ConversationPlace) -> None:
        """Keep a request instead of the one that it goes on from."""
        known = self._recent.setdefault(place, {})
        known.pop(before, None)
        known[number] = request
        if len(known) > MOST_RECENT:
            del known[next(iter(known))]

    def find_shared(self, request: LoadedRequest, place: ConversationPlace) -> LoadedRequest | None:
        """The latest one that shares content with a request, up to the end of that; of those with its own static prefix
        if there are any: their difference is in the messages."""
        recent = [*reversed(self._recent.get(place, {}).values())]
        same = [one for one in recent if _static_prefix(one) == _static_prefix(request)]
        shared = (up_to_shared(self.size(one), request) for one in same or recent)
        return next((one for one in shared if one), None)


def _static_prefix(loaded: LoadedRequest) -> tuple[bytes, bytes]:
    return loaded.request.tools.digest, loaded.request.system.digest


def up_to_shared(one: LoadedRequest, other: LoadedRequest) -> LoadedRequest | None:
    """The request as if its last breakpoint were at the end of what the other one, of another conversation, sends as
    well behind what differs: static prefixes that are one but for an order or a few characters, or content that is long
    enough to be cached. None where there is no such thing."""
    if not one.live or one.prompt.cache_keys != other.prompt.cache_keys:
        return None
    found = find_shared_content(other.request, other.prompt.end, one.request, one.live[-1].prefix, one.sizes)
    parted = found.now[0].parent if found else None
    if found and parted and one.length(parted) + found.tokens >= one.rules.minimum_tokens:
        return replace(one, breakpoints=(_breakpoint_at(one, found.kept[-1]),))
    head = ancestor(one.live[-1].prefix, min(one.live[-1].prefix.depth, one.prompt.head.depth))
    is_static = head.block is not None and have_one_static(one.request, other.request)
    return replace(one, breakpoints=(_breakpoint_at(one, head),)) if is_static else None


def _breakpoint_at(loaded: LoadedRequest, prefix: Prefix) -> SizedBreakpoint:
    request = loaded.request
    place = _place(request, prefix)
    return SizedBreakpoint(place, wire_path(request, place), prefix, loaded.length(prefix), "enough")


def _place(request: Request, prefix: Prefix) -> Breakpoint:
    """A place up to the first message."""
    index = prefix.depth - 1 - len(request.tools.blocks)
    if prefix.layer is not Layer.MESSAGES:
        return Breakpoint(prefix.layer, index if prefix.layer is Layer.SYSTEM else prefix.depth - 1)
    return Breakpoint(Layer.MESSAGES, index - len(request.system.blocks), node=request.thread.beginning)
