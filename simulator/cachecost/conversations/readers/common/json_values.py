"""Checks of JSON values that another tool wrote. Each raises NotAMessage with the value's path.

Calls that a log does not keep in the order in which they began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from cachecost.conversations.calls import Call
from cachecost.prompts.request import NotAMessage


def by_start(calls: Iterable[Call], traces: Collection[str]) -> list[Call]:
    """The calls by their start. A session that is one of `traces` and that only one call has is none: tracers and
    gateways make up an id for every request, and calls of different sessions never go on from each other."""
    found = sorted(calls, key=attrgetter("start"))
    times = Counter(call.session for call in found)
    return [
        replace(call, session="") if times[call.session] == 1 and call.session in traces else call for call in found
    ]


def objects_in(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none if it is not a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def object_or_empty(value: Any) -> Mapping[str, Any]:
    """The object; an empty one in place of anything else. Raises nothing."""
    return value if isinstance(value, Mapping) else {}


def object_at(value: Any, path: str) -> Mapping[str, Any]:
    """The object; an empty one if there is no value."""
    return {} if value is None else require_object(value, path)


def require_object(value: Any, path: str, expected: str = "an object") -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise NotAMessage(path, expected, value)
    return value


def array_at(value: Any, path: str, expected: str = "an array") -> list[Any]:
    if not isinstance(value, list):
        raise NotAMessage(path, expected, value)
    return value
