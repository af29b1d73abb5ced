"""What the server's parts tell each other: what was asked, what is answered, what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cachecost.ledger.results import CallRow
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call as a client sent it.

    `turn` is how many assistant messages the body holds: a retry, and the same call in another run, has the same.
    `start` is seconds since the epoch, by the server's clock. `retry` is what the client says in
    `x-stainless-retry-count`. `previous` is the message id that the body's `diagnostics` name (None: nothing).
    """

    id: str
    body: Mapping[str, Any]
    workspace: str
    start: float
    turn: int = 0
    retry: int = 0
    wants_diagnostics: bool = False
    previous: str | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the assistant says: wire blocks, and simulated seconds until the first token and until the end."""

    content: Sequence[Mapping[str, Any]]
    stop_reason: str = "end_turn"
    first_token_s: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ApiError:
    """What the API answers instead: an HTTP status, an error type and words (`message` as the API would say it)."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallCharge:
    """A call in the ledger. `diagnostics` is None where the client did not ask for any, or nothing differs."""

    row: CallRow
    usage: Usage
    diagnostics: Mapping[str, Any] | None = None


class Answerer(Protocol):
    """Who answers: a script, a recording, a small agent. Same call, same answer."""

    def answer(self, asked: ClientCall) -> ModelAnswer | ApiError: ...


class Meters(Protocol):
    """Who bills: the simulated cache of all workspaces."""

    def take(self, asked: ClientCall, answer: ModelAnswer) -> CallCharge | ApiError:
        """Bill a call that is about to be answered; calls come in the order they start."""
        ...

    def count(self, body: Mapping[str, Any]) -> int:
        """Input tokens of a body, as the count_tokens endpoint tells them. Raises CannotEvaluate, NotAMessage."""
        ...
