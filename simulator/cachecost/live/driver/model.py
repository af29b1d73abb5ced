"""What sends a call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from cachecost.ledger.results import ZERO
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """One answered call. `start` is seconds since the epoch, `first_token_s` seconds until its first token.

    `doubt`: why its usage cannot be what was billed ("": it can). `unknown_usd` then counts as spent in addition.
    """

    usage: Usage
    start: float
    first_token_s: float
    response: Mapping[str, Any] = field(default_factory=dict)
    doubt: str = ""
    unknown_usd: Decimal = ZERO


class OverBudget(Exception):
    """The upper bound of the next call exceeds what is left of the budget; nothing was sent."""


class CallFailed(Exception):
    """The API refused a call, or its last retry failed; `status` is None where there was no answer."""

    def __init__(self, message: str, status: int | None = None, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class Sender(Protocol):
    """Sends bodies within a budget that is never exceeded."""

    async def send(self, body: Mapping[str, Any]) -> AnsweredCall:
        """Send one Messages call. Raises OverBudget before, CallFailed after the last retry."""
        ...

    async def count(self, body: Mapping[str, Any]) -> int:
        """Input tokens by the count_tokens endpoint (free of charge). Raises CallFailed."""
        ...
