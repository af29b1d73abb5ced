"""The endpoints of OpenAI's API."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp

from cachecost.live.server.endpoints import Endpoints
from cachecost.live.server.messages_api import VERSION
from cachecost.live.server.openai.chat import CHAT, MAKER
from cachecost.live.server.openai.models import openai_model, openai_models
from cachecost.live.server.openai.responses import RESPONSES


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
    """Whether a request to an address that both APIs have is one to OpenAI's."""
    return "authorization" in headers and "x-api-key" not in headers and VERSION not in headers


class OpenAIModels:
    """The list of models, at the address that Anthropic's API has it at, too."""

    def __init__(self, ends: Endpoints) -> None:
        self._ends = ends

    def all(self, request: Request) -> ASGIApp:
        return self._ends.respond(request, openai_models(self._ends.served.meters.models(MAKER)), CHAT)

    def one(self, request: Request, name: str) -> ASGIApp:
        return self._ends.respond(request, openai_model(self._ends.served.meters.models(MAKER), name), CHAT)
