"""The simulated APIs as one ASGI application: which address is whose, and what is answered elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from cachecost.live.server.answering import count_tokens
from cachecost.live.server.endpoints import Endpoints, Handler, JsonResponse, error_response
from cachecost.live.server.gemini_api import COUNT, KEY_HEADER, STREAM, WHOLE, GeminiApi
from cachecost.live.server.messages_api import MESSAGES, VERSION
from cachecost.live.server.model import ApiError, find_model, listed_models, not_found, of_status, page_of
from cachecost.live.server.openai_api import CHAT, RESPONSES
from cachecost.live.server.served_api import ServedApi
from cachecost.live.server.state import ServerState

HELLO = "cachecost serve: simulated APIs. What your calls cost: /cachecost"
GEMINI = GeminiApi("")
GEMINI_VERSIONS = ("v1beta", "v1alpha")
"""Versions whose addresses no other API has; `v1/models` is one that all three have."""


def app_of(served: ServerState, more: Sequence[BaseRoute] = ()) -> Starlette:
    """The simulated APIs; `more` are further routes, like the bill's."""
    site = _Site(Endpoints(served))
    route = site.ends.route
    routes = [
        route("/v1/messages", site.answers(MESSAGES)),
        route("/v1/messages/count_tokens", site.count_tokens),
        route("/v1/models", site.models, "GET"),
        route("/v1/models/{id:path}", site.model, "GET"),
        route("/v1/chat/completions", site.answers(CHAT), api=CHAT),
        route("/v1/responses", site.answers(RESPONSES), api=RESPONSES),
        route("/v1/responses/input_tokens", site.input_tokens, api=RESPONSES),
        *(route(f"/{version}/models/{{called:path}}", site.gemini, api=GEMINI) for version in (*GEMINI_VERSIONS, "v1")),
        *(route(f"/{version}/models", site.models, "GET", GEMINI) for version in GEMINI_VERSIONS),
        *(route(f"/{version}/models/{{id:path}}", site.model, "GET", GEMINI) for version in GEMINI_VERSIONS),
        route("/", site.hello, "GET"),
        *more,
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: site.not_here})
    app.router.redirect_slashes = False
    return app


class _Site:
    """The handlers of the endpoints."""

    def __init__(self, ends: Endpoints) -> None:
        self.ends = ends
        self.served = ends.served

    def answers(self, api: ServedApi) -> Handler:
        """What answers the calls of an API."""

        async def answer(request: Request) -> ASGIApp:
            return await self.ends.answer(api, request)

        return answer

    async def count_tokens(self, request: Request) -> ASGIApp:
        came = await self.ends.receive(MESSAGES, request)
        return self.ends.respond(request, came if isinstance(came, ApiError) else count_tokens(self.served, came))

    async def input_tokens(self, request: Request) -> ASGIApp:
        return await self.ends.count(
            RESPONSES, request, lambda count: {"object": "response.input_tokens", "input_tokens": count}
        )

    async def gemini(self, request: Request) -> ASGIApp:
        """`MODEL:METHOD`."""
        model, _, method = str(request.path_params["called"]).rpartition(":")
        api = GeminiApi(model, method == STREAM, request.query_params.get("alt") == "sse")
        if method == COUNT:
            return await self.ends.count(api, request, lambda count: {"totalTokens": count})
        if method in (WHOLE, STREAM):
            return await self.ends.answer(api, request)
        return self.ends.respond(request, not_found(f"Method {method} is not simulated"), api)

    async def models(self, request: Request) -> ASGIApp:
        api = _api_asked(request)
        if fault := _models_fault(api, request):
            return self.ends.respond(request, fault, api)
        if api is MESSAGES:
            query = request.query_params
            lifecycles = [*query.getlist("lifecycle"), *query.getlist("lifecycle[]")]
            return self.ends.respond(request, page_of(self.served.models, query, lifecycles))
        models = [dict(api.model_object(one)) for one in listed_models(self.served.meters.models(api.maker))]
        return self.ends.respond(request, api.model_list(models), api)

    async def model(self, request: Request) -> ASGIApp:
        api = _api_asked(request)
        known = self.served.models if api is MESSAGES else self.served.meters.models(api.maker)
        found = _models_fault(api, request) or find_model(known, request.path_params["id"])
        return self.ends.respond(request, found if isinstance(found, ApiError) else api.model_object(found), api)

    async def hello(self, request: Request) -> ASGIApp:
        return JsonResponse({"message": HELLO}, self.ends.request_id(request))

    async def not_here(self, request: Request, error: Exception) -> Any:
        """The answer to unknown paths and methods."""
        assert isinstance(error, HTTPException)
        refused = (
            of_status(405, "Method Not Allowed", error.headers) if error.status_code == 405 else not_found("Not Found")
        )
        return error_response(MESSAGES, refused, self.ends.request_id(request))


def _api_asked(request: Request) -> ServedApi:
    """Whose client asks for models: `/v1/models` is an address of all three APIs."""
    headers = request.headers
    if not request.url.path.startswith("/v1/") or KEY_HEADER in headers or "key" in request.query_params:
        return GEMINI
    is_openai = "authorization" in headers and "x-api-key" not in headers and VERSION not in headers
    return CHAT if is_openai else MESSAGES


def _models_fault(api: ServedApi, request: Request) -> ApiError | None:
    """Why the headers are refused; those of OpenAI's clients are known by their key."""
    return None if api is CHAT else api.header_fault(api.headers(request.headers, request.query_params))
