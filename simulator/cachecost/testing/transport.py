"""Transports for clients made with httpx2 or httpx: every request is answered in this process.

One class serves both libraries: the answer is made of the one that the request is of.
"""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Any, Self

from cachecost.live.server.state import ServerState
from cachecost.testing.endpoint import ClientRequest, EndpointResponse, respond

LIBRARIES = ("httpx2", "httpx")


class Transport:
    """`httpx2.Client(transport=…)`, `httpx.Client(transport=…)`."""

    def __init__(self, served: ServerState) -> None:
        self._served = served

    def handle_request(self, request: Any) -> Any:
        """Called by the client with its library's request; answers with its library's response."""
        return _library_response(respond(self._served, _client_request(request, request.read())), request)

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Nothing is open."""


class AsyncTransport:
    """`httpx2.AsyncClient(transport=…)`, `httpx.AsyncClient(transport=…)`."""

    def __init__(self, served: ServerState) -> None:
        self._served = served

    async def handle_async_request(self, request: Any) -> Any:
        """Called by the client with its library's request; answers with its library's response."""
        return _library_response(respond(self._served, _client_request(request, await request.aread())), request)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Nothing is open."""


def _client_request(request: Any, body: bytes) -> ClientRequest:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return ClientRequest(request.method, request.url.path, headers, body)


def _library_response(response: EndpointResponse, request: Any) -> Any:
    library = importlib.import_module(_library_of(request))
    return library.Response(response.status, headers=dict(response.headers), content=response.body, request=request)


def _library_of(request: object) -> str:
    """The library that a request is of, also where a project has a class of its own."""
    families = (made.__module__.partition(".")[0] for made in type(request).__mro__)
    return next((name for name in families if name in LIBRARIES), LIBRARIES[0])
