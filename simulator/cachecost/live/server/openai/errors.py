"""OpenAI's error bodies, and its checks of headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cachecost.live.keys import workspace_of
from cachecost.live.server.errors import INVALID, OF_STATUS, missing_model, of_status
from cachecost.live.server.model import ApiError

NO_KEY = "You didn't provide an API key. Provide it in an Authorization header: Authorization: Bearer YOUR_KEY"
OVERLOADED = 529
STATUSES = {OVERLOADED: 503}
"""OpenAI's status of an overloaded server; the other statuses are the same."""
TYPES = {429: "requests", 500: "server_error", 503: "server_error"}
"""Error types by status; all others are `invalid_request_error` (OpenAI's page on error codes, November 2026)."""
CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
PARAMETER = re.compile(r"([a-z_]+(?:\.[a-z_0-9]+)*): ")
"""What a message begins with if it names a part of the body."""


def header_fault(headers: Mapping[str, str]) -> ApiError | None:
    """Why these headers are refused: without a key. Any key is valid."""
    return None if workspace_of(headers) else of_status(401, NO_KEY)


def status_of(refused: ApiError) -> int:
    return STATUSES.get(refused.status, refused.status)


def error_body(refused: ApiError) -> dict[str, Any]:
    """The body of an error response. A type that is not Anthropic's (a script may say any) stays."""
    status, named = status_of(refused), PARAMETER.match(refused.message)
    kind = TYPES.get(status, INVALID) if refused.type in OF_STATUS.values() else refused.type
    error: dict[str, Any] = {"message": refused.message, "type": kind, "param": named and named[1]}
    if (model := missing_model(refused)) is not None:
        message = f"The model `{model}` does not exist or you do not have access to it."
        error |= {"message": message, "param": None, "code": "model_not_found"}
    else:
        error["code"] = _code(refused) or CODES.get(status)
    return {"error": error}


def _code(refused: ApiError) -> Any:
    return getattr(refused, "details", {}).get("error_code")
