"""Converts bodies of Gemini's generateContent to the Messages API.

Read in November 2026: the reference of the Gemini API (generateContent, caching) and the types of google-genai 3.4.
Fields are in camel case; snake case, which the API accepts too, is also read. The content of a `cachedContent` is on
Google's side: a block that only names it is put before the system prompt, with the breakpoint that ends an object, and
the model becomes the one with explicit caching. The signature of a thought only affects thinking blocks. Parts that
only Gemini has keep their name as the type.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from cachecost.conversations.readers.common.json_values import array_at, object_at
from cachecost.prompts.wire import NotAMessage

Body = dict[str, Any]
ROLES = {"user": "user", "function": "user", "model": "assistant", "": "user"}
CHOICES = {"AUTO": "auto", "ANY": "any", "NONE": "none", "VALIDATED": "auto"}
HINTS = ("thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata")
"""Fields of a part besides its content."""
SCHEMAS = ("responseJsonSchema", "responseSchema")
EXPLICIT = "-explicit"
"""What ends the id of a model that is asked with a CachedContent (`providers/rules/gemini.toml`)."""
SNAKE = re.compile(r"_([a-z])")


def from_generate_content(body: Mapping[str, Any], model: str) -> Body:
    """The Messages body of a generateContent request to `model`. Raises NotAMessage with a path in Gemini's body."""
    body, calls = camel_case(body), _CallIds()
    config = object_at(body.get("generationConfig"), "generationConfig")
    contents = _list_at(body.get("contents"), "contents")
    told = {
        "model": f"{model}{EXPLICIT}" if _cached_content(body) else model,
        "max_tokens": config.get("maxOutputTokens"),
        "system": [*_cached_content(body), *_system(body.get("systemInstruction"), calls)],
        "tools": _tools(_list_at(body.get("tools") or [], "tools")),
        "tool_choice": _choice(object_at(body.get("toolConfig"), "toolConfig")),
        "output_config": _output(config),
        "messages": [_message(one, f"contents.{number}", calls) for number, one in enumerate(contents)],
    }
    return {name: value for name, value in told.items() if name == "messages" or value not in (None, [], {})}


def from_candidate(whole: Mapping[str, Any]) -> list[Body]:
    """The blocks of an answer's first candidate; empty if it was blocked. Raises NotAMessage."""
    candidates = camel_case(whole).get("candidates") or [{}]
    content = object_at(array_at(candidates, "candidates")[0], "candidates.0").get("content")
    told = object_at(content, "candidates.0.content")
    return _blocks(told.get("parts") or [], "candidates.0.content.parts", _CallIds())


def _list_at(value: Any, path: str) -> list[Any]:
    """An array; the API takes a single object for an array of one, and some clients send it so."""
    return [value] if isinstance(value, Mapping) else array_at(value, path)


class _CallIds:
    """Assigns ids to function calls and results without one: the n-th call of a name."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def id(self, kind: str, told: Mapping[str, Any]) -> str:
        name = str(told.get("name"))
        self._counts[kind, name] += 1
        return str(told.get("id") or f"{name} {self._counts[kind, name]}")


def _cached_content(body: Mapping[str, Any]) -> list[Body]:
    name = body.get("cachedContent")
    return [{"type": "cached_content", "name": name, "cache_control": {"type": "ephemeral"}}] if name else []


def _system(value: Any, calls: _CallIds) -> list[Body]:
    """The system instruction; a text alone is what SDKs take, and some recorders keep."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    return _blocks(object_at(value, "systemInstruction").get("parts") or [], "systemInstruction.parts", calls)


def _message(value: Any, path: str, calls: _CallIds) -> Body:
    message = object_at(value, path)
    role = str(message.get("role") or "")
    if role not in ROLES:
        raise NotAMessage(f"{path}.role", "user, model or function", role)
    return {"role": ROLES[role], "content": _blocks(message.get("parts") or [], f"{path}.parts", calls)}


def _blocks(parts: Any, path: str, calls: _CallIds) -> list[Body]:
    one_or_more = parts if isinstance(parts, list) else [parts]
    return [_block(object_at(part, f"{path}.{n}"), f"{path}.{n}", calls) for n, part in enumerate(one_or_more)]


def _block(part: Mapping[str, Any], path: str, calls: _CallIds) -> Body:
    kinds = [name for name, value in part.items() if name not in HINTS and value is not None]
    if not kinds and "thoughtSignature" in part:  # the last piece of a stream
        return {"type": "text", "text": ""}
    if len(kinds) != 1:
        raise NotAMessage(path, "a part with one kind of content", part)
    kind, value = kinds[0], part[kinds[0]]
    if kind == "text":
        return _thinking(part) if part.get("thought") else {"type": "text", "text": value}
    told = object_at(value, f"{path}.{kind}")
    if kind == "functionCall":
        return {
            "type": "tool_use",
            "id": calls.id(kind, told),
            "name": told.get("name"),
            "input": told.get("args") or {},
        }
    if kind == "functionResponse":
        content = json.dumps(told.get("response"))
        return {"type": "tool_result", "tool_use_id": calls.id(kind, told), "content": content}
    return _file(kind, told) if kind in ("inlineData", "fileData") else {**told, "type": kind}


def _thinking(part: Mapping[str, Any]) -> Body:
    signed = {"signature": part["thoughtSignature"]} if part.get("thoughtSignature") else {}
    return {"type": "thinking", "thinking": part.get("text"), **signed}


def _file(kind: str, told: Mapping[str, Any]) -> Body:
    media = str(told.get("mimeType") or "")
    base64 = {"type": "base64", "media_type": media, "data": told.get("data")}
    source = base64 if kind == "inlineData" else {"type": "url", "url": told.get("fileUri")}
    form = media.partition("/")[0]
    return {"type": form if form in ("image", "video", "audio") else "document", "source": source}


def _tools(tools: list[Any]) -> list[Body]:
    """Each function as a tool, in order; Google's own tools under their names."""
    found: list[Body] = []
    for number, one in enumerate(tools):
        for kind, value in object_at(one, f"tools.{number}").items():
            if kind == "functionDeclarations":
                path = f"tools.{number}.{kind}"
                found += [_function(object_at(each, path)) for each in _list_at(value or [], path)]
            elif value is not None:
                found.append({"type": kind, "name": kind, **(value if isinstance(value, Mapping) else {})})
    return found


def _function(told: Mapping[str, Any]) -> Body:
    schema = told.get("parametersJsonSchema") or told.get("parameters") or {"type": "object"}
    rest = {name: told[name] for name in ("name", "description") if told.get(name) is not None}
    return {**rest, "input_schema": schema}


def _choice(config: Mapping[str, Any]) -> Body | None:
    told = object_at(config.get("functionCallingConfig"), "toolConfig.functionCallingConfig")
    kind = CHOICES.get(str(told.get("mode")))
    names = array_at(told.get("allowedFunctionNames") or [], "toolConfig.functionCallingConfig.allowedFunctionNames")
    if kind == "any" and len(names) == 1:
        return {"type": "tool", "name": names[0]}
    return {"type": kind} if kind else None


def _output(config: Mapping[str, Any]) -> Body:
    """Effort and format."""
    schema = next((config[name] for name in SCHEMAS if config.get(name) is not None), None)
    effort = object_at(config.get("thinkingConfig"), "generationConfig.thinkingConfig").get("thinkingLevel")
    shape = {"format": {"type": "json_schema", "schema": schema}} if schema is not None else {}
    return {**shape, **({"effort": str(effort).lower()} if effort else {})}


def camel_case(value: Any) -> Any:
    """`value` with the names of its own fields in camel case: not those in schemas, arguments and responses."""
    if isinstance(value, list):
        return [camel_case(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    named = {SNAKE.sub(lambda found: found[1].upper(), name): one for name, one in value.items()}
    return {name: one if name in FREE else camel_case(one) for name, one in named.items()}


FREE = ("args", "response", "parameters", "parametersJsonSchema", *SCHEMAS)
"""Fields whose keys are user data."""
