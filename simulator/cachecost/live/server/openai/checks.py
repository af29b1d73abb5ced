"""OpenAI's checks of a body apart from its prompt, and what of it is not simulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.live.server.errors import invalid
from cachecost.live.server.model import ApiError

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
