"""Gemini's error bodies, and its checks of headers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.live.keys import workspace_of
from cachecost.live.server.errors import missing_model, of_status
from cachecost.live.server.model import ApiError

NO_KEY = (
    "Method doesn't allow unregistered callers. Please use API Key (x-goog-api-key) or another identity to call it."
)
CODES = {529: 503, 413: 400}
"""Gemini's status of an overloaded server and of a body that is too large; the other statuses are the same."""
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
"""The canonical name of each HTTP status (Google's google.rpc.Code)."""


def header_fault(headers: Mapping[str, str]) -> ApiError | None:
    """Why these headers are refused: without a key. Any key is valid."""
    return None if workspace_of(headers) else of_status(403, NO_KEY)


def status_of(refused: ApiError) -> int:
    return CODES.get(refused.status, refused.status)


def error_body(refused: ApiError) -> dict[str, Any]:
    """The body of an error response."""
    code, model, message = status_of(refused), missing_model(refused), refused.message
    if model is not None:
        message = f"models/{model} is not found for API version v1beta, or is not supported for generateContent."
    return {"error": {"code": code, "message": message, "status": STATUSES.get(code, "UNKNOWN")}}
