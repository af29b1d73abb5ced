"""What each API that the server speaks must have. Between its ends, every call is a Messages call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from cachecost.live.server.faults import InjectedFault
from cachecost.live.server.model import ApiError

if TYPE_CHECKING:
    from cachecost.live.server.arrival import ReceivedCall
    from cachecost.live.server.state import ServerState
    from cachecost.live.server.threads import ResolvedCall

Wire = dict[str, Any]
EVENTS = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True)
class ServedResponse:
    """What goes to the client of `api`: an answer or an error, when, and a fault to inject.

    `message` is an answer of the Messages API, `sent` the body as the client sent it. `start` is when the call began,
    in seconds since the epoch; `thinking_tokens` are part of the output.
    """

    request_id: str
    message: Mapping[str, Any] | ApiError
    api: ServedApi
    sent: Mapping[str, Any] = field(default_factory=dict)
    start: float = 0.0
    streams: bool = False
    first_token_s: float = 0.0
    seconds: float = 0.0
    fault: InjectedFault | None = None
    thinking_tokens: int = 0


class ServedApi(Protocol):
    """How an API words its calls, answers and errors; each inherits from it what it does not do otherwise.

    `name` is what a record calls it (None: the Messages API), `id_prefix` begins the ids of its answers, and
    `stream_type` is the content type of a stream.
    """

    @property
    def name(self) -> str | None: ...
    @property
    def id_prefix(self) -> str: ...
    @property
    def stream_type(self) -> str: ...

    def header_fault(self, headers: Mapping[str, str]) -> ApiError | None:
        """Why these headers are refused."""
        ...

    def resolve(self, served: ServerState, arrived: ReceivedCall, start: float) -> ResolvedCall | ApiError:
        """The complete Messages call of a body. Raises NotAMessage."""
        ...

    def fault(self, arrived: ReceivedCall, resolved: ResolvedCall) -> ApiError | None:
        """The first error in a complete call, apart from its prompt."""
        return None

    def is_streamed(self, sent: Mapping[str, Any]) -> bool:
        """Whether the answer to a valid body is a stream."""
        return bool(sent.get("stream"))

    def with_own_ids(self, content: list[Mapping[str, Any]], body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The blocks of an answer, with ids of tool calls as this API writes them. `body` is the Messages call."""
        return content

    def keep(self, served: ServerState, arrived: ReceivedCall, resolved: ResolvedCall, answer: ServedResponse) -> None:
        """Store what later calls may refer to."""
        return

    def status(self, refused: ApiError) -> int:
        """The HTTP status of an error."""
        return refused.status

    def error(self, refused: ApiError, request_id: str) -> Wire:
        """The body of an error."""
        ...

    def whole(self, answer: ServedResponse) -> Mapping[str, Any]:
        """The answer as one object."""
        ...

    def events(self, answer: ServedResponse) -> Iterator[bytes]:
        """The answer as a stream."""
        ...
