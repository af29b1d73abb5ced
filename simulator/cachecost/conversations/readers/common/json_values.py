"""Checks of JSON values that another tool wrote. Each raises NotAMessage with the value's path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from cachecost.base.errors import Fault
from cachecost.base.limits import LINE, OutOfLimits
from cachecost.prompts.request import NotAMessage

Value = TypeVar("Value")
DAMAGED = (msgspec.DecodeError, OutOfLimits, UnicodeDecodeError, RecursionError)
"""What decoding a damaged record raises."""


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decode(data: bytes | str | msgspec.Raw, kind: type[Value]) -> Value:
    """JSON as a value of that type. Raises what msgspec raises."""
    decoder = _decoders.get(kind) or _decoders.setdefault(kind, msgspec.json.Decoder(kind))
    value: Value = decoder.decode(data)
    return value


def decode_record(
    data: bytes | str, kind: type[Value], file: Path, faults: list[Fault], place: str = "", most: int | None = None
) -> Value | None:
    """The same of a record in a file, which may have `most` bytes; None and an error where it is damaged."""
    try:
        if most is not None and len(data) > most:
            raise LINE.error()
        return decode(data, kind)
    except DAMAGED as error:
        faults.append(Fault(str(file), f"{place}{damage_in(error)}"))
        return None


def damage_in(error: Exception) -> str:
    """What is wrong with a record that cannot be decoded."""
    if isinstance(error, OutOfLimits):
        return str(error)
    return f"damaged record: {'too many levels of nesting' if isinstance(error, RecursionError) else error}"


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
