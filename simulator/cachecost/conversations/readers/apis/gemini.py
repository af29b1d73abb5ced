"""Converts requests and answers of Gemini's generateContent to the Messages API."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from cachecost.conversations.readers.common.json_values import array_at, object_at
from cachecost.prompts.request import NotAMessage

Body = dict[str, Any]
ROLES = {"user": "user", "function": "user", "model": "assistant", "": "user"}
SCHEMAS = ("responseJsonSchema", "responseSchema")
FREE = ("args", "response", "parameters", "parametersJsonSchema", *SCHEMAS)
"""Fields whose keys are user data."""
TRAFFIC = {
    "ON_DEMAND": "standard",
    "ON_DEMAND_FLEX": "flex",
    "ON_DEMAND_PRIORITY": "priority",
    "PROVISIONED_THROUGHPUT": "provisioned",
}
"""Service tiers by what usage on Vertex calls them (google-genai 3.4.0, TrafficType)."""
SNAKE = re.compile(r"_([a-z])")


def from_generate_content(body: Mapping[str, Any], model: str) -> Body:
    """The Messages body of a generateContent request to `model`. Raises NotAMessage with a path in Gemini's body."""
    body, parser = camel_case(body), _PartParser()
    config = object_at(body.get("generationConfig"), "generationConfig")
    contents = _list_at(body.get("contents"), "contents")
    cached = {"type": "cached_content", "name": body.get("cachedContent"), "cache_control": {"type": "ephemeral"}}
    known = [cached] if cached["name"] else []
    instruction = body.get("systemInstruction")
    if isinstance(instruction, str):  # what SDKs take, and some recorders keep
        instruction = {"parts": {"text": instruction}}
    system = object_at(instruction, "systemInstruction").get("parts") or []
    schema = next((config[name] for name in SCHEMAS if config.get(name) is not None), None)
    effort = object_at(config.get("thinkingConfig"), "generationConfig.thinkingConfig").get("thinkingLevel")
    found = {
        "model": f"{model}-explicit" if known else model,  # as in providers/rules/gemini.toml
        "max_tokens": config.get("maxOutputTokens"),
        "system": [*known, *parser.blocks(system, "systemInstruction.parts")],
        "tools": _tools(_list_at(body.get("tools") or [], "tools")),
        "tool_choice": _choice(object_at(body.get("toolConfig"), "toolConfig")),
        "output_config": {
            **({} if schema is None else {"format": {"type": "json_schema", "schema": schema}}),
            **({"effort": str(effort).lower()} if effort else {}),
        },
        "service_tier": service_tier(body),
    }
    messages: list[Body] = []
    for number, one in enumerate(contents):
        message = object_at(one, path := f"contents.{number}")
        role = str(message.get("role") or "")
        if role not in ROLES:
            raise NotAMessage(f"{path}.role", "user, model or function", role)
        content = parser.blocks(message.get("parts") or [], f"{path}.parts")
        messages.append({"role": ROLES[role], "content": content})
    return {**{name: value for name, value in found.items() if value not in (None, [], {})}, "messages": messages}


def service_tier(stated: Mapping[str, Any]) -> str | None:
    """The service tier that a body or an answer of Gemini or Converse states, or an answer of Vertex by its kind of
    traffic; None: none."""
    value = stated.get("serviceTier") or TRAFFIC.get(str(stated.get("trafficType")))
    tier = str((value.get("type") if isinstance(value, Mapping) else value) or "").lower()
    tier = tier.removeprefix("service_tier_")  # how Gemini's enum spells it
    return None if tier in ("", "unspecified") else tier


def from_candidate(whole: Mapping[str, Any]) -> list[Body]:
    """The blocks of an answer's first candidate; empty if it was blocked. Raises NotAMessage."""
    candidates = camel_case(whole).get("candidates") or [{}]
    content = object_at(array_at(candidates, "candidates")[0], "candidates.0").get("content")
    parts = object_at(content, "candidates.0.content").get("parts") or []
    return _PartParser().blocks(parts, "candidates.0.content.parts")


def camel_case(value: Any) -> Any:
    """`value` with the names of its own fields in camel case: not those in schemas, arguments and responses."""
    if isinstance(value, list):
        return [camel_case(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    named = {SNAKE.sub(lambda found: found[1].upper(), name): one for name, one in value.items()}
    return {name: one if name in FREE else camel_case(one) for name, one in named.items()}


def _list_at(value: Any, path: str) -> list[Any]:
    """The API takes a single object for an array of one, and some clients send it so."""
    return [value] if isinstance(value, Mapping) else array_at(value, path)


class _PartParser:
    """Converts parts to blocks. Function calls and results without an id get one: the n-th call of a name."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def blocks(self, parts: Any, path: str) -> list[Body]:
        several = parts if isinstance(parts, list) else [parts]
        return [self._block(object_at(part, f"{path}.{n}"), f"{path}.{n}") for n, part in enumerate(several)]

    def _block(self, part: Mapping[str, Any], path: str) -> Body:
        hints = ("thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata")
        kinds = [name for name, value in part.items() if name not in hints and value is not None]
        if not kinds and "thoughtSignature" in part:  # the last piece of a stream
            return {"type": "text", "text": ""}
        if len(kinds) != 1:
            raise NotAMessage(path, "a part with one kind of content", part)
        kind, value = kinds[0], part[kinds[0]]
        if kind == "text" and not part.get("thought"):
            return {"type": "text", "text": value}
        if kind == "text":
            signed = {"signature": part["thoughtSignature"]} if part.get("thoughtSignature") else {}
            return {"type": "thinking", "thinking": value, **signed}
        content = object_at(value, f"{path}.{kind}")
        if kind == "functionCall":
            arguments = content.get("args") or {}
            return {"type": "tool_use", "id": self._id(kind, content), "name": content.get("name"), "input": arguments}
        if kind == "functionResponse":
            result = json.dumps(content.get("response"))
            return {"type": "tool_result", "tool_use_id": self._id(kind, content), "content": result}
        if kind not in ("inlineData", "fileData"):
            return {**content, "type": kind}
        media = str(content.get("mimeType") or "")
        base64 = {"type": "base64", "media_type": media, "data": content.get("data")}
        source = base64 if kind == "inlineData" else {"type": "url", "url": content.get("fileUri")}
        form = media.partition("/")[0]
        return {"type": form if form in ("image", "video", "audio") else "document", "source": source}

    def _id(self, kind: str, call: Mapping[str, Any]) -> str:
        name = str(call.get("name"))
        self._counts[kind, name] += 1
        return str(call.get("id") or f"{name} {self._counts[kind, name]}")


def _tools(tools: list[Any]) -> list[Body]:
    found: list[Body] = []
    for number, one in enumerate(tools):
        for kind, value in object_at(one, f"tools.{number}").items():
            path = f"tools.{number}.{kind}"
            if kind != "functionDeclarations":
                more = value if isinstance(value, Mapping) else {}
                found += [] if value is None else [{"type": kind, "name": kind, **more}]
                continue
            for each in _list_at(value or [], path):
                tool = object_at(each, path)
                schema = tool.get("parametersJsonSchema") or tool.get("parameters") or {"type": "object"}
                named = {name: tool[name] for name in ("name", "description") if tool.get(name) is not None}
                found.append({**named, "input_schema": schema})
    return found


def _choice(config: Mapping[str, Any]) -> Body | None:
    path = "toolConfig.functionCallingConfig"
    calling = object_at(config.get("functionCallingConfig"), path)
    kind = {"AUTO": "auto", "ANY": "any", "NONE": "none", "VALIDATED": "auto"}.get(str(calling.get("mode")))
    names = array_at(calling.get("allowedFunctionNames") or [], f"{path}.allowedFunctionNames")
    if kind == "any" and len(names) == 1:
        return {"type": "tool", "name": names[0]}
    return {"type": kind} if kind else None
