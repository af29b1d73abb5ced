"""What the endpoints of all APIs share: a call that is answered, a count, an object, an error."""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from cachecost.live.keys import query_secrets, without
from cachecost.live.server.arrival import keys_in, receive_call
from cachecost.live.server.calls import answer_call, count_call
from cachecost.live.server.errors import of_status
from cachecost.live.server.messages_api import MESSAGES
from cachecost.live.server.model import ApiError
from cachecost.live.server.responses import JsonResponse, PacedResponse, error_response
from cachecost.live.server.served_api import ServedApi
from cachecost.live.server.state import ServerState

Handler = Callable[[Request], Awaitable[ASGIApp]]


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Makes the answers of endpoints from the state of the server."""

    served: ServerState

    async def answer(self, api: ServedApi, request: Request, headers: Mapping[str, str] | None = None) -> ASGIApp:
        """The answer to a call. `headers` replace those of the request."""
        came = await receive_call(api, headers or request.headers, request.stream(), request.url.query)
        if isinstance(came, ApiError):
            return error_response(api, came, self.request_id(request))
        return PacedResponse(answer_call(self.served, api, came), self.served.pauses)

    async def count(
        self,
        api: ServedApi,
        request: Request,
        form: Callable[[int], Mapping[str, Any]],
        headers: Mapping[str, str] | None = None,
    ) -> ASGIApp:
        """The number of tokens of a call, in the form that the API gives it."""
        came = await receive_call(api, headers or request.headers, request.stream(), request.url.query)
        count = came if isinstance(came, ApiError) else count_call(self.served, api, came)
        return self.respond(request, count if isinstance(count, ApiError) else form(count), api)

    def respond(self, request: Request, value: Mapping[str, Any] | ApiError, api: ServedApi = MESSAGES) -> JsonResponse:
        name = self.request_id(request)
        return error_response(api, value, name) if isinstance(value, ApiError) else JsonResponse(value, name)

    def request_id(self, request: Request) -> str:
        return "req_" + self.served.ids.next(request.method.encode(), request.url.path.encode())

    def route(self, path: str, handler: Handler, method: str = "POST", api: ServedApi = MESSAGES) -> Route:
        """The route of a handler. Exceptions become the API's status 500 and a diagnostic."""

        async def endpoint(request: Request) -> ASGIApp:
            try:
                return await handler(request)
            except ClientDisconnect:
                return Response(status_code=499)
            except Exception as error:
                self._report(request, error)
                return error_response(api, of_status(500), self.request_id(request))

        guarded: Any = endpoint
        return Route(path, guarded, methods=[method])

    def _report(self, request: Request, error: Exception) -> None:
        """Report an internal error, without the call's keys."""
        words = "".join(traceback.format_exception_only(error)).strip()
        secrets = [*keys_in(request.headers), *query_secrets(request.url.query)]
        clean = without(words.encode("utf-8", "replace"), secrets).decode("utf-8", "replace")
        self.served.say(f"internal error at {request.method} {request.url.path}: {clean}")
