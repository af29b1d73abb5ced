"""What OpenAI's two APIs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.live.server.catalogue import EXPLICIT
from cachecost.live.server.model import ApiError
from cachecost.live.server.openai.blocks import with_own_ids
from cachecost.live.server.openai.errors import error_body, header_fault, status_of
from cachecost.live.server.served_api import EVENTS, ServedApi, Wire

MAKER = "openai"


def shown_model(message: Mapping[str, Any]) -> str:
    """The model of an answer as the API names it: the mode of its cache is none of its name."""
    return str(message["model"]).removesuffix(EXPLICIT)


class OpenAIApi(ServedApi):
    """See `ServedApi`."""

    stream_type = EVENTS

    def header_fault(self, headers: Mapping[str, str]) -> ApiError | None:
        return header_fault(headers)

    def with_own_ids(self, content: list[Mapping[str, Any]], body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        return with_own_ids(content)

    def status(self, refused: ApiError) -> int:
        return status_of(refused)

    def error(self, refused: ApiError, request_id: str) -> Wire:
        return error_body(refused)
