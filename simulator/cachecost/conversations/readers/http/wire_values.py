"""Values of other makers' bodies, held to what stands there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.prompts.wire import NotAMessage


def object_at(value: Any, path: str) -> Mapping[str, Any]:
    """An object; an empty one where nothing stands at `path`. Raises NotAMessage."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise NotAMessage(path, "an object", value)
    return value


def array_at(value: Any, path: str) -> list[Any]:
    """An array. Raises NotAMessage."""
    if not isinstance(value, list):
        raise NotAMessage(path, "an array", value)
    return value
