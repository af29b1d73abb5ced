"""The simulated APIs as one ASGI application, with the API's error bodies for unknown paths and methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from cachecost.live.server.arrival import count_tokens, receive_call
from cachecost.live.server.endpoints import Endpoints, JsonResponse, error_response
from cachecost.live.server.gemini import routes as gemini
from cachecost.live.server.messages_api import MESSAGES
from cachecost.live.server.model import ApiError, find_model, not_found, of_status, page_of
from cachecost.live.server.openai import routes as openai
from cachecost.live.server.state import ServerState

HELLO = "cachecost serve: simulated APIs. What your calls cost: /cachecost"


def app_of(served: ServerState, more: Sequence[BaseRoute] = ()) -> Starlette:
    """The simulated APIs; `more` are further routes, like the bill's."""
    ends = Endpoints(served)
    site = _Site(ends)
    routes = [
        ends.route("/v1/messages", site.messages),
        ends.route("/v1/messages/count_tokens", site.count_tokens),
        ends.route("/v1/models", site.models, "GET"),
        ends.route("/v1/models/{id:path}", site.model, "GET"),
        *openai.openai_routes(ends),
        *gemini.gemini_routes(ends),
        ends.route("/", site.hello, "GET"),
        *more,
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: site.not_here})
    app.router.redirect_slashes = False
    return app


class _Site:
    """The endpoints of the Messages API, and those at addresses that other APIs have, too."""

    def __init__(self, ends: Endpoints) -> None:
        self.ends = ends
        self.served = ends.served

    async def messages(self, request: Request) -> ASGIApp:
        return await self.ends.answer(MESSAGES, request)

    async def count_tokens(self, request: Request) -> ASGIApp:
        came = await receive_call(MESSAGES, request.headers, request.stream(), request.url.query)
        return self.ends.respond(request, came if isinstance(came, ApiError) else count_tokens(self.served, came))

    async def models(self, request: Request) -> ASGIApp:
        if gemini.is_gemini_client(request):
            return gemini.list_models(self.ends, request)
        if openai.is_openai_client(request.headers):
            return openai.list_models(self.ends, request)
        lifecycles = [*request.query_params.getlist("lifecycle"), *request.query_params.getlist("lifecycle[]")]
        fault = MESSAGES.header_fault(request.headers)
        return self.ends.respond(request, fault or page_of(self.served.models, request.query_params, lifecycles))

    async def model(self, request: Request) -> ASGIApp:
        if gemini.is_gemini_client(request):
            return gemini.get_model(self.ends, request)
        if openai.is_openai_client(request.headers):
            return openai.get_model(self.ends, request)
        fault = MESSAGES.header_fault(request.headers)
        return self.ends.respond(request, fault or find_model(self.served.models, request.path_params["id"]))

    async def hello(self, request: Request) -> ASGIApp:
        return JsonResponse({"message": HELLO}, self.ends.request_id(request))

    async def not_here(self, request: Request, error: Exception) -> Any:
        """The answer to unknown paths and methods."""
        assert isinstance(error, HTTPException)
        refused = (
            of_status(405, "Method Not Allowed", error.headers) if error.status_code == 405 else not_found("Not Found")
        )
        return error_response(MESSAGES, refused, self.ends.request_id(request))
