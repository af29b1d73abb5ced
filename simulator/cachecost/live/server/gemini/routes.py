"""The endpoints of Gemini's API: `/VERSION/models/MODEL:METHOD`, and the list of models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from cachecost.live.server.endpoints import Endpoints
from cachecost.live.server.gemini.generate import MAKER, GeminiApi, header_fault
from cachecost.live.server.gemini.models import gemini_model, gemini_models
from cachecost.live.server.model import not_found

VERSIONS = ("v1beta", "v1alpha", "v1")
KEY_HEADER = "x-goog-api-key"
WHOLE, STREAM, COUNT = "generateContent", "streamGenerateContent", "countTokens"
ANY = GeminiApi("")


def gemini_routes(ends: Endpoints) -> list[Route]:
    """Calls of every version of the API; the list of models of `v1` is at an address that other APIs have."""

    async def call(request: Request) -> ASGIApp:
        model, _, method = str(request.path_params["called"]).rpartition(":")
        api = GeminiApi(model, method == STREAM, request.query_params.get("alt") == "sse")
        if method == COUNT:
            return await ends.count(api, request, lambda count: {"totalTokens": count}, headers_with_key(request))
        if method in (WHOLE, STREAM):
            return await ends.answer(api, request, headers_with_key(request))
        return ends.respond(request, not_found(f"Method {method} is not simulated"), api)

    async def models(request: Request) -> ASGIApp:
        return list_models(ends, request)

    async def model(request: Request) -> ASGIApp:
        return get_model(ends, request)

    return [
        *(ends.route(f"/{version}/models/{{called:path}}", call, api=ANY) for version in VERSIONS),
        *(ends.route(f"/{version}/models", models, "GET", ANY) for version in VERSIONS[:-1]),
        *(ends.route(f"/{version}/models/{{id:path}}", model, "GET", ANY) for version in VERSIONS[:-1]),
    ]


def is_gemini_client(request: Request) -> bool:
    """Whether a request to an address that several APIs have is one to Gemini's."""
    return KEY_HEADER in request.headers or "key" in request.query_params


def list_models(ends: Endpoints, request: Request) -> ASGIApp:
    """GET /VERSION/models."""
    fault = header_fault(headers_with_key(request))
    return ends.respond(request, fault or gemini_models(ends.served.meters.models(MAKER)), ANY)


def get_model(ends: Endpoints, request: Request) -> ASGIApp:
    """GET /VERSION/models/ID."""
    fault = header_fault(headers_with_key(request))
    name = request.path_params["id"]
    return ends.respond(request, fault or gemini_model(ends.served.meters.models(MAKER), name), ANY)


def headers_with_key(request: Request) -> Mapping[str, Any]:
    """The headers; a key in the query counts as one in its header."""
    key = request.query_params.get("key")
    return {**request.headers, KEY_HEADER: key} if key and KEY_HEADER not in request.headers else request.headers
