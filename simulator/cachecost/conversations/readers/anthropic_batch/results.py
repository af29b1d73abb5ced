"""Reads the result of a request of a batch: an answer with its usage, an error, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachecost.base.errors import Fault
from cachecost.conversations.calls import Iteration
from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.common.json_values import array_at
from cachecost.conversations.usage_shapes import usage_from
from cachecost.prompts.request import NotAMessage, content_blocks
from cachecost.providers.usage import Usage

REFUSED = 400
NOT_RUN = 499
"""The batch was canceled or expired before the request was sent. Not an HTTP status that any API uses."""
STATUS = {
    "invalid_request_error": REFUSED,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status that goes with a type of error (Anthropic's errors page)."""
KINDS = ("succeeded", "errored", "canceled", "expired")


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The answer's blocks, usage and id; or the status of a request that failed. All are empty if nothing is known."""

    usage: Usage | None = None
    answer: Sequence[Mapping[str, Any]] = ()
    status: int | None = None
    id: str = ""
    iterations: tuple[Iteration, ...] = ()


NO_RESULT = BatchResult()


def parse_result(entry: JsonObject) -> BatchResult:
    """The result of a line with a `result`; what is wrong becomes an error."""
    told = entry.mapping("result")
    if told is not entry.data.get("result"):
        return NO_RESULT
    result = entry.within(told, "result")
    kind = result.one_of("type", KINDS)
    if kind != told.get("type"):
        return NO_RESULT
    if kind == "succeeded":
        return _parse_answer(result, "message")
    return BatchResult(status=_status(result.mapping("error")) if kind == "errored" else NOT_RUN)


def parse_host_result(entry: JsonObject, answer: str) -> BatchResult:
    """The result of a line of Bedrock or Google Cloud, whose answer is in the field `answer`."""
    if entry.data.get(answer):
        return _parse_answer(entry, answer)
    error = entry.data.get("error")
    if error is None:
        return BatchResult(status=REFUSED) if entry.data.get("status") else NO_RESULT
    code = error.get("errorCode") if isinstance(error, Mapping) else None
    return BatchResult(status=code if isinstance(code, int) and code >= REFUSED else REFUSED)


def _parse_answer(place: JsonObject, name: str) -> BatchResult:
    """The result of a request that was answered with the message in field `name`."""
    message = place.mapping(name)
    if not message:
        return NO_RESULT
    path = f"{place.place}{name}"
    usage: Any = message.get("usage")
    try:
        return BatchResult(
            usage_from(usage, f"{path}.usage", "anthropic"),
            content_blocks(message.get("content"), f"{path}.content"),
            id=str(message.get("id") or ""),
            iterations=_iterations(message, f"{path}.usage"),
        )
    except NotAMessage as fault:
        place.faults.append(Fault(place.file, str(fault), place.line))
        return NO_RESULT


def _iterations(message: Mapping[str, Any], path: str) -> tuple[Iteration, ...]:
    passes = array_at(message["usage"].get("iterations") or [], f"{path}.iterations")
    return tuple(iteration_of(one, f"{path}.iterations.{number}") for number, one in enumerate(passes))


def iteration_of(raw: Any, path: str) -> Iteration:
    """One entry of `usage.iterations`. Raises NotAMessage."""
    usage = usage_from(raw, path, "anthropic")
    return Iteration(str(raw.get("type") or "message"), usage, str(raw.get("model") or ""))


def _status(error: Mapping[str, Any]) -> int:
    """An error response holds the error; some tools keep only that."""
    inner = error.get("error")
    kind = inner.get("type") if isinstance(inner, Mapping) else error.get("type")
    return STATUS.get(str(kind), REFUSED)
