"""The types that the server's parts share: a client's call, its answer, its charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cachecost.ledger.results import CallRow
from cachecost.prompts.request import MessageThread
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class ClientCall:
    """One call as a client sent it.

    `turn` is the number of assistant messages in the body, the same for a retry. `start` is seconds since the epoch by
    the server's clock. `retry` is the header `x-stainless-retry-count`. `previous` is the message id that the body's
    `diagnostics` name (None: none). `thread` is the message thread in which it was sent. `host` is whose cache and
    prices count (None: that of the meter's setup).
    """

    id: str
    body: Mapping[str, Any]
    workspace: str
    start: float
    turn: int = 0
    retry: int = 0
    wants_diagnostics: bool = False
    previous: str | None = None
    thread: MessageThread | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """An answer: wire blocks, and simulated seconds until the first token and until the end."""

    content: Sequence[Mapping[str, Any]]
    stop_reason: str = "end_turn"
    first_token_s: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error of the API: an HTTP status, an error type and the API's message."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallCharge:
    """The ledger row and usage of a call. `diagnostics` is None if not requested, or if nothing differs.

    `thinking_tokens` are those of the output that are thinking.
    """

    row: CallRow
    usage: Usage
    diagnostics: Mapping[str, Any] | None = None
    thinking_tokens: int = 0


class Answerer(Protocol):
    """Generates answers: a script, a recording or a small agent. The same call gets the same answer."""

    def answer(self, asked: ClientCall) -> ModelAnswer | ApiError: ...


class Meters(Protocol):
    """Bills calls by the simulated cache of all workspaces."""

    def take(self, asked: ClientCall, answer: ModelAnswer) -> CallCharge | ApiError:
        """Bill a call that is about to be answered. Calls come in the order they start."""
        ...

    def count(self, body: Mapping[str, Any], host: str | None = None) -> int:
        """Input tokens of a body, as count_tokens returns them. Raises CannotEvaluate, NotAMessage."""
        ...

    def host_of(self, maker: str, model: str) -> str:
        """The host of a call of `model` in the API of `maker`."""
        ...

    def models(self, host: str) -> Sequence[Mapping[str, Any]]:
        """The models of a host, newest first, as /v1/models has them."""
        ...
