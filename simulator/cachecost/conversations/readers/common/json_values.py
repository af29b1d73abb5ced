"""Checks of JSON values that another tool wrote. Each raises NotAMessage with the value's path."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec

from cachecost.prompts.request import NotAMessage

Value = TypeVar("Value")


@cache
def _decoder(kind: type[Value]) -> msgspec.json.Decoder[Value]:
    return msgspec.json.Decoder(kind)


def decode(data: bytes | str | msgspec.Raw, kind: type[Value]) -> Value:
    """JSON as a value of that type. Raises what msgspec raises."""
    return _decoder(kind).decode(data)


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
