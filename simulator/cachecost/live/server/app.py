"""The simulated API as an ASGI application, with the API's error bodies for unknown paths and methods."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from cachecost.live.keys import without
from cachecost.live.server.arrival import receive_call, secrets_of
from cachecost.live.server.calls import answer_call, count_tokens
from cachecost.live.server.catalogue import find_model, page_of
from cachecost.live.server.errors import not_found, of_status
from cachecost.live.server.messages_api import MESSAGES
from cachecost.live.server.model import ApiError
from cachecost.live.server.openai.chat import CHAT
from cachecost.live.server.responses import JsonResponse, PacedResponse, error_response
from cachecost.live.server.served_api import ServedApi
from cachecost.live.server.state import ServerState

Handler = Callable[[Request], Awaitable[ASGIApp]]
HELLO = "cachecost serve: a simulated Messages API. What your calls cost: /cachecost"


def app_of(served: ServerState, more: Sequence[BaseRoute] = ()) -> Starlette:
    """The simulated API; `more` are further routes, like the bill's."""
    site = _Site(served)
    routes = [
        Route("/v1/messages", _guard(site, site.messages), methods=["POST"]),
        Route("/v1/messages/count_tokens", _guard(site, site.count_tokens), methods=["POST"]),
        Route("/v1/chat/completions", _guard(site, site.chat), methods=["POST"]),
        Route("/v1/models", _guard(site, site.models), methods=["GET"]),
        Route("/v1/models/{id:path}", _guard(site, site.model), methods=["GET"]),
        Route("/", _guard(site, site.hello), methods=["GET"]),
        *more,
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: site.not_here})
    app.router.redirect_slashes = False
    return app


def _guard(site: _Site, handler: Handler) -> Any:
    """`handler` with exceptions turned into the API's status 500 and a diagnostic."""

    async def endpoint(request: Request) -> ASGIApp:
        try:
            return await handler(request)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            site.report(request, error)
            return error_response(MESSAGES, of_status(500), site.request_id(request))

    return endpoint


class _Site:
    """The endpoints."""

    def __init__(self, served: ServerState) -> None:
        self.served = served

    async def messages(self, request: Request) -> ASGIApp:
        return await self._answer(MESSAGES, request)

    async def chat(self, request: Request) -> ASGIApp:
        return await self._answer(CHAT, request)

    async def _answer(self, api: ServedApi, request: Request) -> ASGIApp:
        came = await receive_call(api, request.headers, request.stream())
        if isinstance(came, ApiError):
            return error_response(api, came, self.request_id(request))
        return PacedResponse(answer_call(self.served, api, came), self.served.pauses)

    async def count_tokens(self, request: Request) -> ASGIApp:
        came = await receive_call(MESSAGES, request.headers, request.stream())
        return self._respond(request, came if isinstance(came, ApiError) else count_tokens(self.served, came))

    async def models(self, request: Request) -> ASGIApp:
        lifecycles = [*request.query_params.getlist("lifecycle"), *request.query_params.getlist("lifecycle[]")]
        fault = MESSAGES.header_fault(request.headers)
        return self._respond(request, fault or page_of(self.served.models, request.query_params, lifecycles))

    async def model(self, request: Request) -> ASGIApp:
        fault = MESSAGES.header_fault(request.headers)
        return self._respond(request, fault or find_model(self.served.models, request.path_params["id"]))

    async def hello(self, request: Request) -> ASGIApp:
        return JsonResponse({"message": HELLO}, self.request_id(request))

    def _respond(self, request: Request, value: Mapping[str, Any] | ApiError) -> JsonResponse:
        name = self.request_id(request)
        return error_response(MESSAGES, value, name) if isinstance(value, ApiError) else JsonResponse(value, name)

    def request_id(self, request: Request) -> str:
        return "req_" + self.served.ids.next(request.method.encode(), request.url.path.encode())

    async def not_here(self, request: Request, error: Exception) -> Any:
        """The answer to unknown paths and methods."""
        assert isinstance(error, HTTPException)
        refused = (
            of_status(405, "Method Not Allowed", error.headers) if error.status_code == 405 else not_found("Not Found")
        )
        return error_response(MESSAGES, refused, self.request_id(request))

    def report(self, request: Request, error: Exception) -> None:
        """Report an internal error, without the call's keys."""
        words = "".join(traceback.format_exception_only(error)).strip()
        clean = without(words.encode("utf-8", "replace"), secrets_of(request.headers)).decode("utf-8", "replace")
        self.served.say(f"internal error at {request.method} {request.url.path}: {clean}")
