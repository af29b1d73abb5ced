"""JSON whose texts are safe to show: controls and characters that turn the direction of text are escaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cachecost.base.inert import inert_text

_encode = msgspec.json.Encoder().encode


def inert_object(value: Any) -> Any:
    """The value with every text in it made inert; line ends and tabs stay."""
    if isinstance(value, str):
        return value if value.isascii() and value.isprintable() else inert_text(value)
    if isinstance(value, Mapping):
        return {inert_object(key): inert_object(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [inert_object(one) for one in value]
    return value


def inert_json(value: Any) -> bytes:
    """The value as JSON, its texts inert."""
    return _encode(inert_object(value))
