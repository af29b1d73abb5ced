"""Converts requests and answers of Amazon Bedrock's Converse API to the Messages API; its cache points become
breakpoints."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cachecost.conversations.readers.apis.gemini import service_tier
from cachecost.conversations.readers.common.json_values import array_at, object_at, require_object
from cachecost.prompts.request import BREAKPOINT, CACHE_POINT, NotAMessage

Body = dict[str, Any]
KINDS = frozenset(
    {"text", "json", "image", "document", "video", "audio", "toolUse", "toolResult", "reasoningContent", CACHE_POINT}
    | {"guardContent", "citationsContent", "searchResult"}
)
"""The keys of content blocks."""


def from_converse(body: Mapping[str, Any], model: str) -> Body:
    """The Messages body of a Converse request to `model`. Raises NotAMessage with a path in Converse's body."""
    config, inference, output, performance = (
        object_at(body.get(name), name)
        for name in ("toolConfig", "inferenceConfig", "outputConfig", "performanceConfig")
    )
    choice, messages = config.get("toolChoice"), []
    system = from_converse_blocks(body.get("system") or [], "system")
    tools = _convert(config.get("tools") or [], "toolConfig.tools", _tool)
    if choice is not None:
        kind, chosen = _kind_and_value(choice, "toolConfig.toolChoice")
        choice = {"type": kind, **object_at(chosen, f"toolConfig.toolChoice.{kind}")}
    for number, one in enumerate(array_at(body.get("messages"), "messages")):
        message = object_at(one, f"messages.{number}")
        content = from_converse_blocks(message.get("content"), f"messages.{number}.content")
        messages.append({"role": message.get("role"), "content": content})
    found = {
        "model": model,
        "max_tokens": inference.get("maxTokens"),
        "system": system,
        "tools": tools,
        "tool_choice": choice,
        "output_config": {"format": output["textFormat"]} if output.get("textFormat") else None,
        "service_tier": service_tier(body),
        "speed": performance.get("latency"),
        "messages": messages,
    }
    found |= object_at(body.get("additionalModelRequestFields"), "additionalModelRequestFields")
    return {name: value for name, value in found.items() if value not in (None, [])}


def from_converse_blocks(items: Any, path: str) -> list[Body]:
    """The blocks of a content, with the cache points as breakpoints. Raises NotAMessage."""
    return _convert(items, path, _block)


def from_converse_answer(whole: Mapping[str, Any]) -> list[Body]:
    """The blocks of an answer. Raises NotAMessage."""
    message = require_object(require_object(whole.get("output"), "output").get("message"), "message")
    return from_converse_blocks(message.get("content") or [], "output.message.content")


def _convert(items: Any, path: str, convert: Callable[[str, Any, str], Body], is_inner: bool = False) -> list[Body]:
    blocks: list[Body] = []
    for number, item in enumerate(array_at(items, path)):
        place = f"{path}.{number}"
        kind, value = _kind_and_value(item, place)
        if kind != CACHE_POINT:
            blocks.append(convert(kind, value, place))
        elif not (blocks or is_inner):
            raise NotAMessage(f"{place}.{CACHE_POINT}", "a block before it", None)
        else:
            ttl = object_at(value, place).get("ttl")
            if is_inner:
                blocks.append({"type": CACHE_POINT})
            blocks[-1][BREAKPOINT] = {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}
    return blocks


def _kind_and_value(item: Any, path: str) -> tuple[str, Any]:
    kinds = [(kind, value) for kind, value in object_at(item, path).items() if value is not None]
    if len(kinds) != 1:
        raise NotAMessage(path, "an object with one key", item)
    return kinds[0]


def _block(kind: str, value: Any, path: str) -> Body:
    if kind in ("text", "json"):  # a result that is JSON reaches the model as text
        return {"type": "text", "text": value if kind == "text" else json.dumps(value)}
    place = f"{path}.{kind}"
    block = object_at(value, place)
    if kind == "toolUse":
        named = {name: block.get(name) for name in ("name", "input")}
        return {"type": "tool_use", "id": block.get("toolUseId"), **named}
    if kind == "toolResult":
        content = _convert(block.get("content") or [], f"{place}.content", _block, is_inner=True)
        error = {"is_error": True} if block.get("status") == "error" else {}
        return {"type": "tool_result", "tool_use_id": block.get("toolUseId"), "content": content, **error}
    if kind == "reasoningContent" and "redactedContent" in block:
        return {"type": "redacted_thinking", "data": block["redactedContent"]}
    if kind == "reasoningContent":
        text = object_at(block.get("reasoningText"), f"{place}.reasoningText")
        signed = {"signature": text["signature"]} if text.get("signature") else {}
        return {"type": "thinking", "thinking": text.get("text") or "", **signed}
    if kind not in ("image", "document"):
        return {**block, "type": kind}
    source = dict(object_at(block.get("source"), f"{place}.source"))
    if isinstance(source.get("bytes"), str):
        media = f"{'image' if kind == 'image' else 'application'}/{block.get('format')}"
        source = {"type": "base64", "media_type": media, "data": source["bytes"]}
    names = {"title": "name", "citations": "citations"}
    return {"type": kind, "source": source, **{ours: block[name] for ours, name in names.items() if block.get(name)}}


def _tool(kind: str, value: Any, path: str) -> Body:
    tool = object_at(value, f"{path}.{kind}")
    if kind != "toolSpec":
        return {**tool, "type": kind}
    schema = object_at(tool.get("inputSchema"), f"{path}.{kind}.inputSchema").get("json")
    return {**{name: part for name, part in tool.items() if name != "inputSchema"}, "input_schema": schema}
