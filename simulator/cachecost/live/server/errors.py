"""The API's error bodies and messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cachecost.live.server.model import ApiError
from cachecost.prompts.wire import NotAMessage

INVALID = "invalid_request_error"
NOT_FOUND = "not_found_error"
MODEL = "model: "
OF_STATUS = {
    400: INVALID,
    401: "authentication_error",
    403: "permission_error",
    404: NOT_FOUND,
    405: INVALID,
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
"""Error types by HTTP status, as Anthropic's error page lists them."""
WORDS = {429: "This request would exceed your rate limit. Please try again later.", 500: "Internal server error"}
WORDS[529] = "Overloaded"


@dataclass(frozen=True, slots=True)
class DetailedError(ApiError):
    """An error with machine-readable `details`."""

    details: Mapping[str, Any] = field(default_factory=dict)


def invalid(message: str) -> ApiError:
    return ApiError(400, INVALID, message)


def not_found(message: str) -> ApiError:
    return ApiError(404, NOT_FOUND, message)


def unknown_model(name: object) -> ApiError:
    return not_found(f"{MODEL}{name}")


def missing_model(refused: ApiError) -> str | None:
    """The model that an error of `unknown_model` names; None for another error."""
    is_model = refused.type == NOT_FOUND and refused.message.startswith(MODEL)
    return refused.message.removeprefix(MODEL) if is_model else None


def of_status(status: int, message: str = "", headers: Mapping[str, str] | None = None) -> ApiError:
    """The API's error of this status, with its usual message unless one is given."""
    return ApiError(status, OF_STATUS[status], message or WORDS[status], headers or {})


def not_a_message(fault: NotAMessage) -> ApiError:
    """An error in a body, as the API words it: `messages.0.role: Input should be …`."""
    _, _, rest = str(fault).partition(": expected ")
    expected, _, got = rest.rpartition("; got ")
    missing = got.startswith("nothing")  # a hint may follow
    return invalid(f"{fault.path}: {'Field required' if missing else f'Input should be {expected}'}")


def error_body(refused: ApiError, request_id: str) -> dict[str, Any]:
    """The body of an error response."""
    error: dict[str, Any] = {"type": refused.type, "message": refused.message}
    if isinstance(refused, DetailedError):
        error["details"] = dict(refused.details)
    return {"type": "error", "error": error, "request_id": request_id}
