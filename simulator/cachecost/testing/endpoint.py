"""The simulated API as a function from a request to a response: no socket, and no web framework."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cachecost.live.server.arrival import receive_call
from cachecost.live.server.calls import answer_call, count_tokens
from cachecost.live.server.errors import error_body, not_found
from cachecost.live.server.message import encode_json
from cachecost.live.server.messages_api import MESSAGES as API
from cachecost.live.server.model import ApiError
from cachecost.live.server.state import ServerState

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class EndpointResponse:
    """What goes back to the client: a status, headers, and a body that is there at once."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """What a client sends. `headers` are asked for by lower-case names."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)


def respond(served: ServerState, sent: ClientRequest) -> EndpointResponse:
    """The API's answer. A failure is raised as it is: it is the test that wants to see it."""
    if sent.method != "POST" or sent.path not in (MESSAGES, COUNT):
        return _error_response(not_found("Not Found"), _request_id(served, sent))
    came = at_once(receive_call(API, sent.headers, _chunks(sent.body)))
    if isinstance(came, ApiError):
        return _error_response(came, _request_id(served, sent))
    if sent.path == COUNT:
        count = count_tokens(served, came)
        name = _request_id(served, sent)
        return _error_response(count, name) if isinstance(count, ApiError) else _response(encode_json(count), name)
    answered = answer_call(served, API, came)
    if isinstance(answered.message, ApiError):
        return _error_response(answered.message, answered.request_id)
    if answered.streams:
        events = b"".join(API.events(answered))
        return _response(events, answered.request_id, "text/event-stream; charset=utf-8")
    return _response(encode_json(answered.message), answered.request_id)


async def _chunks(body: bytes) -> AsyncIterator[bytes]:
    yield body


def at_once(coroutine: Coroutine[Any, Any, Made]) -> Made:
    """The result of a coroutine that waits for nothing, within an event loop or without one."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        made: Made = stop.value
        return made
    coroutine.close()
    raise RuntimeError("the coroutine waits for something")


def _request_id(served: ServerState, sent: ClientRequest) -> str:
    return "req_" + served.ids.next(sent.method.encode(), sent.path.encode())


def _error_response(refused: ApiError, name: str) -> EndpointResponse:
    response = _response(encode_json(error_body(refused, name)), name)
    return EndpointResponse(refused.status, {**response.headers, **refused.headers}, response.body)


def _response(body: bytes, name: str, kind: str = "application/json") -> EndpointResponse:
    return EndpointResponse(200, {"content-type": kind, "content-length": str(len(body)), "request-id": name}, body)
