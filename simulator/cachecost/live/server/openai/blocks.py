"""The blocks of a Messages answer as OpenAI's APIs need them. Blocks that they have no form for are left out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Block = Mapping[str, Any]
OWN, THEIRS = "toolu_", "call_"


def with_own_ids(content: Iterable[Block]) -> list[Block]:
    """The blocks with ids of tool calls that begin as OpenAI's do; those of a recording stay."""
    return [
        {**block, "id": _own_id(str(block["id"]))} if block.get("type") == "tool_use" else block for block in content
    ]


def _own_id(name: str) -> str:
    return THEIRS + name.removeprefix(OWN) if name.startswith(OWN) else name


def text_of(content: Iterable[Block]) -> str:
    return "".join(str(block["text"]) for block in content if block.get("type") == "text")


def thinking_of(content: Iterable[Block]) -> str:
    return "".join(str(block["thinking"]) for block in content if block.get("type") == "thinking")


def calls_of(content: Iterable[Block]) -> list[Block]:
    return [block for block in content if block.get("type") == "tool_use"]


def arguments_of(call: Block) -> str:
    """The input of a tool call as JSON text; a text stays what the model wrote."""
    given = call.get("input")
    return given if isinstance(given, str) else json.dumps(given or {}, ensure_ascii=False)


def is_custom(name: str, sent: Mapping[str, Any]) -> bool:
    """Whether the tool of this name takes a text instead of arguments. Chat Completions nests its definition."""
    offered = [tool for tool in sent.get("tools") or () if isinstance(tool, Mapping) and tool.get("type") == "custom"]
    return any(
        (inner if isinstance(inner := tool.get("custom"), Mapping) else tool).get("name") == name for tool in offered
    )
