"""The content of opencode's parts as blocks of the Messages API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cachecost.base.limits import json_value
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.readers.opencode.records import StoredPart

Body = dict[str, Any]


def user_blocks(parts: Iterable[StoredPart]) -> list[Body]:
    """The texts and images of a user message. Raises ValueError where the JSON of a part is beyond a limit."""
    found = []
    for part in parts:
        data = _data(part)
        if part.record.type == "text" and not data.get("ignored"):
            found.append({"type": "text", "text": str(data.get("text") or "")})
        elif part.record.type == "file" and (image := _image(data)):
            found.append(image)
    return found


def answer_blocks(parts: Iterable[StoredPart]) -> list[Body]:
    """Thinking, text and tool calls of an assistant message. Raises ValueError as `user_blocks`."""
    found = []
    for part in parts:
        data = _data(part)
        if part.record.type == "text":
            found.append({"type": "text", "text": str(data.get("text") or "")})
        elif part.record.type == "reasoning":
            found.append(_thinking(data))
        elif part.record.type == "tool":
            state = object_or_empty(data.get("state"))
            told: Body = {"name": str(data.get("tool") or ""), "input": object_or_empty(state.get("input"))}
            found.append({"type": "tool_use", "id": str(data.get("callID") or ""), **told})
    return found


def result_blocks(parts: Iterable[StoredPart]) -> list[Body]:
    """The results of the tools that an assistant message called. Raises ValueError as `user_blocks`."""
    return [_result(_data(part)) for part in parts if part.record.type == "tool"]


def _data(part: StoredPart) -> Mapping[str, Any]:
    return object_or_empty(json_value(part.raw)) if part.raw else {}


def _thinking(data: Mapping[str, Any]) -> Body:
    metadata = object_or_empty(data.get("metadata"))
    signature = object_or_empty(metadata.get("anthropic")).get("signature")
    return {"type": "thinking", "thinking": str(data.get("text") or ""), "signature": str(signature or "")}


def _result(data: Mapping[str, Any]) -> Body:
    state = object_or_empty(data.get("state"))
    made: Body = {"type": "tool_result", "tool_use_id": str(data.get("callID") or "")}
    if state.get("status") == "error":
        return {**made, "content": str(state.get("error") or ""), "is_error": True}
    return {**made, "content": str(state.get("output") or "")}


def _image(data: Mapping[str, Any]) -> Body | None:
    """An image that is stored with the message (a data URL)."""
    kind, _, rest = str(data.get("url") or "").partition(";base64,")
    if not rest or not kind.startswith("data:image/"):
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": kind.removeprefix("data:"), "data": rest}}
