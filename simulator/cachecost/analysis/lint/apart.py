"""Requests of different conversations: what both send, and one of them behind a block that differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from cachecost.analysis.lint.loaded_request import LoadedRequest, SizedBreakpoint
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
        """The latest one that shares content with a request, up to the end of that."""
        others = map(self.size, reversed(self._recent.get(place, {}).values()))
        return next((found for one in others if (found := up_to_shared(one, request))), None)


def up_to_shared(one: LoadedRequest, other: LoadedRequest) -> LoadedRequest | None:
    """The request as if its last breakpoint were at the end of what the other one, of another conversation, sends as
    well; None where they share nothing that is long enough to be cached behind what differs."""
    if not one.live or one.prompt.cache_keys != other.prompt.cache_keys:
        return None
    found = find_shared_content(other.request, other.prompt.end, one.request, one.live[-1].prefix, one.sizes)
    parted = found.now[0].parent if found else None
    if found and parted and one.length(parted) + found.tokens >= one.rules.minimum_tokens:
        return replace(one, breakpoints=(_breakpoint_at(one, found.kept[-1]),))
    return one if have_one_static(one.request, other.request) else None


def _breakpoint_at(loaded: LoadedRequest, prefix: Prefix) -> SizedBreakpoint:
    request = loaded.request
    place = _place(request, prefix)
    return SizedBreakpoint(place, wire_path(request, place), prefix, loaded.length(prefix), "enough")


def _place(request: Request, prefix: Prefix) -> Breakpoint:
    """A place in the system prompt or the first message."""
    index = prefix.depth - 1 - len(request.tools.blocks)
    if prefix.layer is Layer.SYSTEM:
        return Breakpoint(Layer.SYSTEM, index)
    return Breakpoint(Layer.MESSAGES, index - len(request.system.blocks), node=request.thread.beginning)
