"""What a strategy produces from a conversation: requests with their times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from cachecost.conversations.calls import PlannedCall
from cachecost.conversations.model import Conversation


class Strategy(Protocol):
    """A way to send a conversation. `source` says who does it so, `date` when that was read."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def date(self) -> str: ...

    def plan(self, conversation: Conversation) -> Iterator[PlannedCall]:
        """The calls, in the order they start. Never prices, never looks at a cache."""
        ...

    def notes(self, conversation: Conversation) -> list[str]:
        """What this strategy cannot do here, in sentences for the report; empty if there is nothing to say."""
        ...
