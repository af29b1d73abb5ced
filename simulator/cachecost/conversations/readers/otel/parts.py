"""Converts messages of OpenTelemetry's conventions (role and parts, or one attribute per field) to content blocks.

Source: the JSON schemas of the GenAI conventions (semantic-conventions-genai, schema 1.42, 2026) for parts, on
OpenLLMetry's instrumentations and OpenInference's specification (2026) for `gen_ai.prompt.N.…` and
`llm.input_messages.N.message.…`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cachecost.base.limits import whole_number
from cachecost.conversations.readers.common.dialects import Body, parse_json_text
from cachecost.conversations.readers.common.json_values import array_at
from cachecost.conversations.readers.openai.chat import SHORT, Turns, tool_use, tools
from cachecost.prompts.request import BREAKPOINT, NotAMessage

MEDIA = ("image", "document")
ROLES = {"tool": "user", "function": "user", "developer": "system", "model": "assistant", "human": "user"}
RESULTS = ("tool", "function")
SCHEMAS = ("parameters", "input_schema")


def conversation(told: Iterable[tuple[str, list[Body]]]) -> Body:
    """`system` and `messages` of (role, blocks) in order."""
    turns = Turns()
    for role, blocks in told:
        turns.add(ROLES.get(role, role), blocks, result=role in RESULTS)
    return turns.body()


def blocks_of(parts: Any, path: str) -> list[Body]:
    """The blocks of `parts`, which may be a string. Raises NotAMessage."""
    if isinstance(parts, str):
        return [{"type": "text", "text": parts}]
    items = array_at(parts, path, "an array of parts")
    return [_block(part, f"{path}.{number}") for number, part in enumerate(items)]


def _block(part: Any, path: str) -> Body:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        raise NotAMessage(path, "a part with a type", part)
    breakpoint = {BREAKPOINT: part[BREAKPOINT]} if BREAKPOINT in part else {}
    return {**_convert_part(part), **breakpoint}


def _convert_part(part: Mapping[str, Any]) -> Body:
    """A part as a block; an unknown kind stays unchanged."""
    kind = part["type"]
    if kind == "text":
        return {"type": "text", "text": part.get("content", part.get("text"))}
    if kind == "reasoning":
        signature = {"signature": part["signature"]} if part.get("signature") else {}
        return {"type": "thinking", "thinking": part.get("content"), **signature}
    if kind == "tool_call":
        return tool_use(part.get("id"), str(part.get("name")), part.get("arguments"))
    if kind == "tool_call_response":
        return tool_result(part.get("id"), part.get("response", part.get("result")))
    source = _source(part)
    if source is not None and part.get("modality") in MEDIA:
        return {"type": part["modality"], "source": source}
    return dict(part)


def _source(part: Mapping[str, Any]) -> Body | None:
    """Where a picture or a document comes from."""
    kind = part["type"]
    if kind == "blob":
        return {"type": "base64", "media_type": part.get("mime_type"), "data": part.get("content")}
    if kind == "uri":
        return {"type": "url", "url": part.get("uri")}
    return {"type": "file", "file_id": part.get("file_id")} if kind == "file" else None


def tool_result(id_: Any, content: Any) -> Body:
    """A tool_result block. Content that is neither a string nor blocks becomes JSON."""
    is_blocks = isinstance(content, list) and all(isinstance(one, Mapping) and "type" in one for one in content)
    if is_blocks:
        content = blocks_of(content, "response")
    elif content is not None and not isinstance(content, str):
        content = json.dumps(content, ensure_ascii=False)
    return {"type": "tool_result", "tool_use_id": id_, **({} if content is None else {"content": content})}


def tools_of(definitions: Any, path: str) -> list[Body]:
    """Tools of definitions, whose schemas may stand as texts. Raises NotAMessage."""
    raw = array_at(definitions, path, "an array of tools")
    return tools([_definition(parse_json_text(tool)) for tool in raw], path, SHORT)


def _definition(told: Any) -> Any:
    if not isinstance(told, Mapping):
        return told
    tool = {name: value for name, value in told.items() if value is not None}
    return {**tool, **{name: parse_json_text(tool[name]) for name in SCHEMAS if name in tool}}


def indexed_objects(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """What stands under `prefix.0.…`, `prefix.1.…` as objects, in order of the numbers."""
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(f"{prefix}."):
            _put(root, name.removeprefix(f"{prefix}.").split("."), value)
    return in_order(root)


def _put(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        inner = tree.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        tree = inner
    tree.setdefault(path[-1], value)


def in_order(tree: Any) -> list[dict[str, Any]]:
    """The objects of a tree whose names are numbers."""
    if not isinstance(tree, dict):
        return []
    numbers = sorted((number, name) for name in tree if (number := whole_number(name)) is not None)
    return [tree[name] for _, name in numbers if isinstance(tree[name], dict)]
