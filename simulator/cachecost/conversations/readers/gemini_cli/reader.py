"""Reads sessions of Gemini CLI (`session-*.jsonl`, `session-*.json`) as calls, with their requests as far as they go.

The file has the messages, the tool calls with their results, and the tokens of each answer, but neither the system
prompt nor the tools: they are sized by the bill (common/session_calls.py)..
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cachecost.conversations.readers.common.json_values import array_at, object_at, object_or_empty
from cachecost.conversations.readers.common.peek import top_keys
from cachecost.conversations.readers.common.session_calls import Body, RoleBlocks, SessionFormat
from cachecost.conversations.readers.gemini_cli.files import read_session
from cachecost.conversations.readers.http.exchange import from_generate_content

LACKS = (
    "Gemini CLI's sessions lack system prompt and tools: sized by the bill; "
    "calls for compression, routing and loop detection are not in them"
)


def sniff(head: bytes) -> str | None:
    """Why a file that begins with `head` is a session of Gemini CLI; None if it is not."""
    keys = set(top_keys(head.removeprefix(b"\xef\xbb\xbf").lstrip()))
    if {"sessionId", "projectHash"} <= keys:
        return 'its first object has a "sessionId" and a "projectHash"'
    return None


def _to_blocks(kind: str, value: Any) -> Iterator[RoleBlocks]:
    if kind == "tools":
        yield "assistant", [_tool_use(object_at(call, "toolCalls")) for call in array_at(value, "toolCalls")]
    elif kind == "results":
        for call in array_at(value, "toolCalls"):
            yield from _blocks("user", object_or_empty(call).get("result"))
    else:
        yield from _blocks("model" if kind == "gemini" else "user", value)


def _tool_use(call: Any) -> Body:
    return {"type": "tool_use", "id": call.get("id"), "name": call.get("name"), "input": call.get("args") or {}}


def _blocks(role: str, content: Any) -> Iterator[RoleBlocks]:
    if not content:
        return
    parts = [{"text": part} if isinstance(part, str) else part for part in _parts(content)]
    body = from_generate_content({"contents": [{"role": role, "parts": parts}]}, "")
    yield "assistant" if role == "model" else "user", body["messages"][0]["content"]


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


FORMAT = SessionFormat("gemini-cli", "Gemini CLI", read_session, _to_blocks)
calls, session_files = FORMAT.calls, FORMAT.session_files
