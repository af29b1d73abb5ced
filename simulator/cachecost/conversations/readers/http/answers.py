"""Converts the answer of a model API, streamed or not, to the Messages API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cachecost.conversations.calls import Iteration
from cachecost.conversations.readers.anthropic_batch.results import STATUS, iteration_of
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.readers.common.traces import FAILED
from cachecost.conversations.readers.http.bodies import Misplaced, answer, decode_content, parse_array
from cachecost.conversations.readers.http.converse import from_converse_blocks
from cachecost.conversations.readers.http.gemini import from_candidate
from cachecost.conversations.readers.http.routes import Route
from cachecost.conversations.readers.http.streams import join_events
from cachecost.conversations.readers.openai.chat import from_chat_message
from cachecost.conversations.readers.openai.responses import from_responses_output
from cachecost.conversations.usage_shapes import usage_from, with_searches
from cachecost.prompts.wire import NotAMessage
from cachecost.providers.usage import Usage

SHAPES = {"messages": "anthropic", "converse": "bedrock", "chat": "openai", "responses": "openai", "gemini": "gemini"}
USAGES = ("usage", "usageMetadata", "usage_metadata")
IDS = ("id", "responseId")
MODELS = ("model", "modelVersion")


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A parsed answer. `status` is that of an error after HTTP status 200; `created` is in seconds."""

    content: Sequence[dict[str, Any]] = ()
    usage: Usage | None = None
    iterations: tuple[Iteration, ...] = ()
    id: str = ""
    model: str = ""
    created: float | None = None
    status: int | None = None
    served: Mapping[str, Any] = field(default_factory=dict)
    """The answer with its usage: it may name the service tier and the region."""


def answer_of(data: bytes, headers: Mapping[str, str], at: str, route: Route) -> HttpAnswer:
    """The answer in a body of a route's API; empty if the recorder kept no body. Raises NotAMessage."""
    data = decode_content(data, headers.get("content-encoding", ""), at)
    if not data.strip():
        return HttpAnswer()
    is_array = route.api == "gemini" and data.lstrip().startswith(b"[")
    value = parse_array(data, at) if is_array else answer(data, headers.get("content-type", ""), at)
    try:
        whole = join_events(value, route.api) if isinstance(value, list) else value
        return _error(whole) or _whole(whole, route)
    except NotAMessage as error:
        raise Misplaced(at, error) from None


def _error(whole: Mapping[str, Any]) -> HttpAnswer | None:
    error = whole.get("error")
    if not isinstance(error, Mapping) or whole.get("usage"):
        return None
    code = error.get("code")
    known = STATUS.get(str(error.get("type")), FAILED)
    return HttpAnswer(status=code if isinstance(code, int) and 400 <= code <= 599 else known)


def _whole(whole: Mapping[str, Any], route: Route) -> HttpAnswer:
    """The answer of one API, converted to the Messages API. Raises NotAMessage."""
    usage = _first(whole, USAGES)
    created = whole.get("created") or whole.get("created_at")
    return HttpAnswer(
        _content(whole, route),
        None if usage is None else with_searches(usage_from(usage, "usage", SHAPES[route.api]), whole),
        _iterations(usage) if route.api == "messages" else (),
        str(_first(whole, IDS) or ""),
        str(_first(whole, MODELS) or ""),
        float(created) if isinstance(created, (int, float)) and 0 < created < 1e11 else None,
        served={**usage, **whole} if isinstance(usage, Mapping) else whole,
    )


def _first(whole: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((whole[name] for name in names if whole.get(name) is not None), None)


def _content(whole: Mapping[str, Any], route: Route) -> list[dict[str, Any]]:
    if route.api == "responses":
        return from_responses_output(_at(whole, "output", list))
    if route.api == "converse":
        message = _at(_at(whole, "output", dict), "message", dict)
        return from_converse_blocks(message.get("content") or [], "output.message.content")
    if route.api == "messages":
        return list(_at(whole, "content", list))
    if route.api == "gemini":
        return from_candidate(whole)
    choices = _at(whole, "choices", list)
    message = choices[0].get("message") if choices and isinstance(choices[0], Mapping) else None
    return from_chat_message(message) if isinstance(message, Mapping) else []


def _at(value: Mapping[str, Any], name: str, kind: type) -> Any:
    found = value.get(name)
    if not isinstance(found, kind):
        raise NotAMessage(name, "an array" if kind is list else "an object", found)
    return found


def _iterations(usage: Any) -> tuple[Iteration, ...]:
    passes = object_or_empty(usage).get("iterations")
    usages = [one for one in passes if isinstance(one, Mapping)] if isinstance(passes, list) else []
    return tuple(iteration_of(one, f"usage.iterations.{number}") for number, one in enumerate(usages))
