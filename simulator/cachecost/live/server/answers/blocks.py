"""Reads the parts of a body that answers depend on, and makes blocks. Missing or malformed parts are empty."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from cachecost.conversations.readers.common.json_values import object_or_empty, objects_in

Item = Mapping[str, Any]


def blocks(message: Item) -> list[Item]:
    """The blocks of a message; a string is one text block."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else objects_in(content)


def has(message: Item, kind: str) -> bool:
    return any(block.get("type") == kind for block in blocks(message))


def count_tool_calls_of_turn(body: Item) -> int:
    """How many assistant messages called tools since the last message without tool results."""
    calls = 0
    for message in reversed(objects_in(body.get("messages"))):
        if message.get("role") == "assistant":
            calls += has(message, "tool_use")
        elif message.get("role") == "user" and not has(message, "tool_result"):
            break
    return calls


def wanted_schema(body: Item) -> Item | None:
    """The JSON schema that the text must follow; None without one."""
    wanted = object_or_empty(body.get("output_config")).get("format") or body.get("output_format")
    schema = object_or_empty(wanted).get("schema")
    return schema if object_or_empty(wanted).get("type") == "json_schema" and isinstance(schema, Mapping) else None


def id_of(prefix: str, body: Item, turn: int, number: int = 0) -> str:
    """An id derived from the messages, the turn and the place in the answer, not from the workspace or time."""
    said = json.dumps([body.get("messages"), turn, number], separators=(",", ":"), default=str)
    return f"{prefix}_01{blake2b(said.encode(), digest_size=11, person=prefix.encode()).hexdigest()}"


def tool_use(body: Item, turn: int, name: str, arguments: Item, number: int = 0) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_of("toolu", body, turn, number), "name": name, "input": dict(arguments)}


def thinking(words: str) -> dict[str, Any]:
    """A thinking block; its signature is a digest of its text and only good for being sent back."""
    signature = blake2b(words.encode(), digest_size=32, person=b"signature").hexdigest()
    return {"type": "thinking", "thinking": words, "signature": signature}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def stop_reason(content: Sequence[Item]) -> str:
    """The stop reason that fits the content."""
    return "tool_use" if any(block.get("type") == "tool_use" for block in content) else "end_turn"
