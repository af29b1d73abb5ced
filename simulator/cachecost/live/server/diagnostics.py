"""What the API's cache diagnostics answer: where a request parts from the one that the client names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.live.server.divergence import Size, by_bytes, divergence
from cachecost.prompts.request import Request

NOT_FOUND = "previous_message_not_found"
UNAVAILABLE = "unavailable"
MOST_KEPT = 10_000
"""Answered requests that a client can name; the oldest goes first. The API keeps its own for a short time only."""


class Diagnostics:
    """Remembers what was answered, by workspace and message id."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._answered: dict[tuple[str, str], Request] = {}
        self._most = most

    def remember(self, workspace: str, message_id: str, request: Request) -> None:
        self._answered[workspace, message_id] = request
        if len(self._answered) > self._most:
            del self._answered[next(iter(self._answered))]

    def of(self, workspace: str, previous: str | None, request: Request) -> Mapping[str, Any] | None:
        """The `diagnostics` of an answer to `request`; None (JSON's null) for a first turn, or where nothing differs.

        A message of another workspace is not found.
        """
        if previous is None:
            return None
        before = self._answered.get((workspace, previous))
        return _missed(NOT_FOUND) if before is None else compared(before, request)


def compared(before: Request, request: Request, size: Size = by_bytes) -> Mapping[str, Any] | None:
    """The `diagnostics` of `request` after `before`."""
    found = divergence(before, request, size)
    if found is None:
        return None
    return _missed(UNAVAILABLE) if found.kind == UNAVAILABLE else _missed(found.kind, found.missed_tokens)


def _missed(kind: str, tokens: int | None = None) -> Mapping[str, Any]:
    sized = {} if tokens is None else {"cache_missed_input_tokens": tokens}
    return {"cache_miss_reason": {"type": kind, **sized}}
