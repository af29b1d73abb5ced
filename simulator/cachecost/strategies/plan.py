"""What a strategy produces from a conversation: requests with their times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from cachecost.conversations.model import Conversation
from cachecost.prompts.blocks import Block
from cachecost.prompts.request import Request


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One request and when it is sent.

    `start` is seconds since the epoch, `first_token_s` how long until its first token (the entry it
    writes can be read from then). Output is `output_tokens` where known, else the sum over `output`.
    """

    start: float
    request: Request
    output: tuple[Block, ...] = ()
    output_tokens: int | None = None
    first_token_s: float | None = None
    purpose: str = "main"
    turn: int = 0
    inquiry: int | None = None
    host: str | None = None
    workspace: str = ""
    is_batch: bool = False


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
