"""Converts bodies of Amazon Bedrock's Converse API to the Messages API; its cache points become breakpoints.

Read in November 2026: the Bedrock API reference and its SDKs' types (CachePointBlock, ReasoningContentBlock,
TokenUsage). A cache point is a separate block after the block that it applies to; within a tool result there may be
none, so there it stays a block, with a breakpoint that the API refuses. Blocks that only Converse has keep their name
as the type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cachecost.conversations.readers.common.json_values import array_at, object_at
from cachecost.prompts.wire import BREAKPOINT, CACHE_POINT, NotAMessage

Body = dict[str, Any]
POINT = CACHE_POINT
KINDS = frozenset(
    {"text", "json", "image", "document", "video", "audio", "toolUse", "toolResult", "reasoningContent", POINT}
    | {"guardContent", "citationsContent", "searchResult"}
)
"""The keys of content blocks."""


def from_converse(body: Mapping[str, Any], model: str) -> Body:
    """The Messages body of a Converse request to `model`. Raises NotAMessage with a path in Converse's body."""
    config = object_at(body.get("toolConfig"), "toolConfig")
    inference = object_at(body.get("inferenceConfig"), "inferenceConfig")
    output = object_at(body.get("outputConfig"), "outputConfig")
    told = {
        "model": model,
        "max_tokens": inference.get("maxTokens"),
        "system": from_converse_blocks(body.get("system") or [], "system"),
        "tools": _convert_blocks(config.get("tools") or [], "toolConfig.tools", _tool),
        "tool_choice": _choice(config.get("toolChoice")),
        "output_config": {"format": output["textFormat"]} if output.get("textFormat") else None,
        "messages": [
            _message(one, f"messages.{n}") for n, one in enumerate(array_at(body.get("messages"), "messages"))
        ],
    }
    more = object_at(body.get("additionalModelRequestFields"), "additionalModelRequestFields")
    return {name: value for name, value in (told | dict(more)).items() if value not in (None, [])}


def _message(value: Any, path: str) -> Body:
    message = object_at(value, path)
    return {"role": message.get("role"), "content": from_converse_blocks(message.get("content"), f"{path}.content")}


def from_converse_blocks(items: Any, path: str) -> list[Body]:
    """The blocks of a content, with the cache points as breakpoints. Raises NotAMessage."""
    return _convert_blocks(items, path, _block)


def _convert_blocks(items: Any, path: str, translated: Any, is_inner: bool = False) -> list[Body]:
    blocks: list[Body] = []
    for number, item in enumerate(array_at(items, path)):
        place = f"{path}.{number}"
        kind, value = _kind_and_value(item, place)
        if kind != POINT:
            blocks.append(translated(kind, value, place))
        elif not (blocks or is_inner):
            raise NotAMessage(f"{place}.{POINT}", "a block before it", None)
        else:
            ttl = object_at(value, place).get("ttl")
            if is_inner:
                blocks.append({"type": POINT})
            blocks[-1][BREAKPOINT] = {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}
    return blocks


def _kind_and_value(item: Any, path: str) -> tuple[str, Any]:
    """(kind, value) of a Converse block, which is an object with one key."""
    kinds = [(kind, value) for kind, value in object_at(item, path).items() if value is not None]
    if len(kinds) != 1:
        raise NotAMessage(path, "an object with one key", item)
    return kinds[0]


def _block(kind: str, value: Any, path: str) -> Body:
    if kind == "text":
        return {"type": "text", "text": value}
    if kind == "json":  # a result that is JSON reaches the model as text
        return {"type": "text", "text": json.dumps(value)}
    told = object_at(value, f"{path}.{kind}")
    if kind == "toolUse":
        return {"type": "tool_use", "id": told.get("toolUseId"), "name": told.get("name"), "input": told.get("input")}
    if kind == "toolResult":
        return _result(told, f"{path}.{kind}")
    if kind == "reasoningContent":
        return _thinking(told, f"{path}.{kind}")
    if kind in ("image", "document"):
        return _file(kind, told, f"{path}.{kind}")
    return {**told, "type": kind}


def _result(told: Mapping[str, Any], path: str) -> Body:
    content = _convert_blocks(told.get("content") or [], f"{path}.content", _block, is_inner=True)
    error = {"is_error": True} if told.get("status") == "error" else {}
    return {"type": "tool_result", "tool_use_id": told.get("toolUseId"), "content": content, **error}


def _thinking(told: Mapping[str, Any], path: str) -> Body:
    if "redactedContent" in told:
        return {"type": "redacted_thinking", "data": told["redactedContent"]}
    text = object_at(told.get("reasoningText"), f"{path}.reasoningText")
    signed = {"signature": text["signature"]} if text.get("signature") else {}
    return {"type": "thinking", "thinking": text.get("text") or "", **signed}


def _file(kind: str, told: Mapping[str, Any], path: str) -> Body:
    """An image or a document: its bytes are base64, and its media type ends with the format."""
    source = dict(object_at(told.get("source"), f"{path}.source"))
    if isinstance(source.get("bytes"), str):
        media = f"{'image' if kind == 'image' else 'application'}/{told.get('format')}"
        source = {"type": "base64", "media_type": media, "data": source["bytes"]}
    named = {"title": told["name"]} if told.get("name") else {}
    cites = {"citations": told["citations"]} if told.get("citations") else {}
    return {"type": kind, "source": source, **named, **cites}


def _tool(kind: str, value: Any, path: str) -> Body:
    told = object_at(value, f"{path}.{kind}")
    if kind != "toolSpec":
        return {**told, "type": kind}
    schema = object_at(told.get("inputSchema"), f"{path}.{kind}.inputSchema").get("json")
    rest = {name: part for name, part in told.items() if name != "inputSchema"}
    return {**rest, "input_schema": schema}


def _choice(value: Any) -> Body | None:
    if value is None:
        return None
    kind, told = _kind_and_value(value, "toolConfig.toolChoice")
    return {"type": kind, **object_at(told, f"toolConfig.toolChoice.{kind}")}
