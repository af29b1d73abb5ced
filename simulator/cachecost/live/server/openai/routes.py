"""The endpoints of OpenAI's API."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from cachecost.live.server.endpoints import Endpoints
from cachecost.live.server.messages_api import VERSION
from cachecost.live.server.openai.either_api import CHAT, MAKER
from cachecost.live.server.openai.responses import RESPONSES
from cachecost.live.server.openai.usage import openai_model, openai_models


def openai_routes(ends: Endpoints) -> list[Route]:
    """Chat Completions, Responses, and the tokens of a response's input."""

    async def chat(request: Request) -> ASGIApp:
        return await ends.answer(CHAT, request)

    async def responses(request: Request) -> ASGIApp:
        return await ends.answer(RESPONSES, request)

    async def input_tokens(request: Request) -> ASGIApp:
        return await ends.count(
            RESPONSES, request, lambda count: {"object": "response.input_tokens", "input_tokens": count}
        )

    return [
        ends.route("/v1/chat/completions", chat, api=CHAT),
        ends.route("/v1/responses", responses, api=RESPONSES),
        ends.route("/v1/responses/input_tokens", input_tokens, api=RESPONSES),
    ]


def is_openai_client(headers: Mapping[str, str]) -> bool:
    """Whether a request to an address that several APIs have is one to OpenAI's."""
    return "authorization" in headers and "x-api-key" not in headers and VERSION not in headers


def list_models(ends: Endpoints, request: Request) -> ASGIApp:
    """GET /v1/models."""
    return ends.respond(request, openai_models(ends.served.meters.models(MAKER)), CHAT)


def get_model(ends: Endpoints, request: Request) -> ASGIApp:
    """GET /v1/models/ID."""
    name = request.path_params["id"]
    return ends.respond(request, openai_model(ends.served.meters.models(MAKER), name), CHAT)
