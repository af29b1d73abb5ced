"""Usage in the two forms of OpenAI's APIs: its input includes what was read from the cache or written to it.

Field names: openai 3.54, `CompletionUsage` and `ResponseUsage`. Chat Completions does not split writes by TTL.

OpenAI's checks of a body apart from its prompt, and what of it is not simulated.

OpenAI's /v1/models: the models whose rules are known.

Responses that later calls continue by `previous_response_id`: the client sends only what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from cachecost.conversations.calls import parse_usage
from cachecost.live.server.model import INVALID, ApiError, DetailedError, find_model, invalid, listed_models, not_found
from cachecost.providers.usage import Usage

Body = Mapping[str, Any]


def body_fault(body: Body, asked: str, limits: Mapping[str, int]) -> ApiError | None:
    """The first error in `body`. `asked` is the field that holds the prompt, `limits` the least value of each limit of
    the output.
    """
    message = next(_faults(body, asked, limits), None)
    return None if message is None else invalid(message)


def _faults(body: Body, asked: str, limits: Mapping[str, int]) -> Iterator[str]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if body.get(asked) in (None, [], ""):
        yield f"{asked}: Missing required parameter"
    if not isinstance(body.get("stream") or False, bool):
        yield "stream: expected a boolean"
    for name, least in limits.items():
        told = body.get(name)
        if told is not None and (not isinstance(told, int) or isinstance(told, bool)):
            yield f"{name}: expected an integer"
        elif told is not None and told < least:
            yield f"{name}: integer below minimum value. Expected a value >= {least}, but got {told} instead."
    if body.get("n") not in (None, 1):
        yield "n: cachecost serve gives one choice"
    if body.get("background"):
        yield "background: cachecost serve answers at once"


Wire = dict[str, Any]


def chat_usage(message: Mapping[str, Any], thinking_tokens: int) -> Wire:
    """The usage of a Messages answer as Chat Completions has it. `thinking_tokens` are part of its output."""
    usage = parse_usage(message["usage"], "usage")
    return {
        "prompt_tokens": usage.total_input,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_input + usage.output_tokens,
        "prompt_tokens_details": {**_details(usage), "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thinking_tokens, "audio_tokens": 0},
    }


def responses_usage(message: Mapping[str, Any], thinking_tokens: int) -> Wire:
    """The same as Responses has it."""
    usage = parse_usage(message["usage"], "usage")
    written = {"ttl_30m_tokens": usage.write_5m, "ttl_12h_tokens": usage.write_1h}
    return {
        "input_tokens": usage.total_input,
        "input_tokens_details": {**_details(usage), "cache_write_tokens_details": written},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": thinking_tokens},
        "total_tokens": usage.total_input + usage.output_tokens,
    }


def _details(usage: Usage) -> Wire:
    return {"cached_tokens": usage.read, "cache_write_tokens": usage.write}


def openai_models(models: Sequence[Mapping[str, Any]]) -> Wire:
    """The list, from the wire objects of the Messages API."""
    return {"object": "list", "data": [_model(one) for one in listed_models(models)]}


def openai_model(models: Sequence[Mapping[str, Any]], name: str) -> Wire | ApiError:
    """One model by its id or alias."""
    found = find_model(models, name)
    return found if isinstance(found, ApiError) else _model(found)


def _model(one: Mapping[str, Any]) -> Wire:
    created = int(datetime.fromisoformat(one["created_at"]).timestamp())
    return {"id": one["id"], "object": "model", "created": created, "owned_by": "openai"}


MOST = 10_000
"""Responses that are kept; the oldest is dropped first."""


class StoredResponses:
    """The responses of all workspaces."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], list[Any]] = {}

    def complete(self, workspace: str, body: Body) -> Body | ApiError:
        """The body with the items that it continues before its own."""
        if body.get("conversation") is not None:
            return not_found("conversation: cachecost serve keeps no conversations")
        previous = body.get("previous_response_id")
        if previous is None:
            return body
        earlier = self._items.get((workspace, str(previous)))
        if earlier is None:
            message = f"previous_response_id: Previous response with id '{previous}' not found."
            return DetailedError(400, INVALID, message, details={"error_code": "previous_response_not_found"})
        return {**body, "input": [*earlier, *_items(body)]}

    def keep(self, workspace: str, name: str, body: Body, output: Sequence[Any]) -> None:
        """Store an answered call, complete, and the items of its answer."""
        if body.get("store") is False:
            return
        self._items[workspace, name] = [*_items(body), *output]
        if len(self._items) > MOST:
            del self._items[next(iter(self._items))]


def _items(body: Body) -> list[Any]:
    given = body.get("input")
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given or ())
