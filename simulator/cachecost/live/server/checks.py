"""The API's checks of a body apart from its prompt. The meter checks the closed list of rule 6."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from cachecost.live.server.errors import invalid
from cachecost.live.server.model import ApiError

Body = Mapping[str, Any]
SAMPLING = ("temperature", "top_p", "top_k")
STRICT = "2026-10-21"
"""The version without sampling parameters, documents in assistant messages and citations in requests."""
EXTRA = "Extra inputs are not permitted"


def body_fault(body: Body, version: str) -> ApiError | None:
    """The first error that the API finds in `body` before it looks at the prompt; None: no error."""
    return _first(_missing(body), _max_tokens(body), _by_version(body, version))


def count_fault(body: Body, version: str) -> ApiError | None:
    """The same for count_tokens, which takes no `max_tokens`."""
    return _first(_missing(body), _by_version(body, version))


def _first(*checks: Iterator[str]) -> ApiError | None:
    """The first error. A check runs only if those before it found nothing, so it may rely on them."""
    message = next(chain(*checks), None)
    return None if message is None else invalid(message)


def _missing(body: Body) -> Iterator[str]:
    if not isinstance(body.get("model"), str):
        yield "model: Field required" if body.get("model") is None else "model: Input should be a valid string"
    elif not body["model"]:
        yield "model: String should have at least 1 character"
    if body.get("messages") is None:
        yield "messages: Field required"
    elif not isinstance(body["messages"], list):
        yield "messages: Input should be a valid list"
    elif not body["messages"]:
        yield "messages: at least one message is required"


def _max_tokens(body: Body) -> Iterator[str]:
    told = body.get("max_tokens")
    if told is None:
        yield "max_tokens: Field required"
    elif not isinstance(told, int) or isinstance(told, bool):
        yield "max_tokens: Input should be a valid integer"
    elif told < 0:
        yield "max_tokens: Input should be greater than or equal to 0"
    if not isinstance(body.get("stream") or False, bool):
        yield "stream: Input should be a valid boolean"


def _by_version(body: Body, version: str) -> Iterator[str]:
    if version != STRICT:
        return
    yield from (f"{name}: {EXTRA}" for name in SAMPLING if body.get(name) is not None)
    for place, role, block in _blocks(body):
        if role == "assistant" and block.get("type") == "document":
            yield f"{place}: document blocks are not supported in assistant messages"
        if role == "user" and block.get("type") == "text" and block.get("citations"):
            yield f"{place}.text.citations: {EXTRA}"
        if block.get("type") == "search_result" and any(one.get("citations") for one in _inner(block)):
            yield f"{place}.search_result.content.citations: {EXTRA}"


def _blocks(body: Body) -> Iterator[tuple[str, object, Mapping[str, Any]]]:
    """Each block of the messages with its path and role; anything else is refused elsewhere."""
    for number, message in enumerate(body.get("messages") or []):
        if isinstance(message, Mapping):
            for index, block in enumerate(_inner(message)):
                yield f"messages.{number}.content.{index}", message.get("role"), block


def _inner(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = value.get("content")
    return [one for one in content if isinstance(one, Mapping)] if isinstance(content, list) else []
