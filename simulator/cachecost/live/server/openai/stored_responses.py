"""Responses that later calls continue by `previous_response_id`: the client sends only what is new.

What is stored under a response's id is its whole input and its output; its `instructions` are not (API reference).
A response with `store: false` cannot be continued.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachecost.live.server.errors import INVALID, DetailedError, not_found
from cachecost.live.server.model import ApiError

Body = Mapping[str, Any]
MOST = 10_000
"""Responses that are kept; the oldest is dropped first."""


class StoredResponses:
    """The responses of all workspaces."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], list[Any]] = {}

    def complete(self, workspace: str, body: Body) -> Body | ApiError:
        """The body with the items that it continues before its own."""
        if body.get("conversation") is not None:
            return not_found("conversation: cachecost serve keeps no conversations")
        previous = body.get("previous_response_id")
        if previous is None:
            return body
        earlier = self._items.get((workspace, str(previous)))
        if earlier is None:
            message = f"previous_response_id: Previous response with id '{previous}' not found."
            return DetailedError(400, INVALID, message, details={"error_code": "previous_response_not_found"})
        return {**body, "input": [*earlier, *_items(body)]}

    def keep(self, workspace: str, name: str, body: Body, output: Sequence[Any]) -> None:
        """Store an answered call, complete, and the items of its answer."""
        if body.get("store") is False:
            return
        self._items[workspace, name] = [*_items(body), *output]
        if len(self._items) > MOST:
            del self._items[next(iter(self._items))]


def _items(body: Body) -> list[Any]:
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())
