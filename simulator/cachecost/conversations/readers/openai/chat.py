"""Converts requests and answers of OpenAI's Chat Completions API to the Messages API (Responses: responses.py).

Read from the types of OpenAI's SDKs and its API reference (November 2026), and from what gateways add to them:
`cache_control` on parts, messages and tools (LiteLLM, OpenRouter), `thinking_blocks` (LiteLLM), `reasoning_content`
(DeepSeek and others). `prompt_cache_breakpoint` becomes a breakpoint; its 30 minutes become our 5m TTL. The model of a
request in explicit mode becomes the one that caches so (`gpt-6.1-sol-explicit`).

Instructions at the start (role system or developer) are the system prompt; later ones stay in place.
Results of tools that follow each other are one user message. Parameters that do not affect the prompt are dropped.

Converts what OpenAI's two APIs share to the Messages API: content parts, breakpoints, tools, parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cachecost.base.errors import nearest
from cachecost.base.limits import json_value
from cachecost.conversations.readers.common.json_values import array_at, require_object
from cachecost.prompts.intake import PARAMETERS
from cachecost.prompts.request import BREAKPOINT, NotAMessage

Body = dict[str, Any]
DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?;base64,(.*)", re.DOTALL)
OPENAI_BREAKPOINT = "prompt_cache_breakpoint"
BREAKPOINTS = (BREAKPOINT, OPENAI_BREAKPOINT)
TEXTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")
LONG = ("1h", "12h", "24h")
"""TTLs of `prompt_cache_options` that become our 1h TTL."""
SHORT: Body = {"type": "ephemeral"}
EXPLICIT = "explicit"
CHOICES = {"auto": "auto", "none": "none", "required": "any", "any": "any"}


def ttl_parameter(body: Mapping[str, Any]) -> Body:
    """The `cache_control` of each breakpoint of a request, implicit ones too, that has no TTL of its own."""
    return _breakpoint(_cache_option(body, "ttl"))


def _breakpoint(ttl: Any) -> Body:
    return {**SHORT, "ttl": "1h"} if ttl in LONG else SHORT


def model_with_mode(body: Mapping[str, Any]) -> Any:
    """The model of a request, with the mode of its cache where that is explicit: the id of those rules.

    A gateway sends other makers' models the same parameter: they have no such mode.
    """
    model = body.get("model")
    if not isinstance(model, str) or "gpt-" not in model or _cache_option(body, "mode") != EXPLICIT:
        return model
    return f"{model.removesuffix(f'-{EXPLICIT}')}-{EXPLICIT}"


def implicit_breakpoint(body: Mapping[str, Any], pieces: Any, breakpoint: Body) -> Body:
    """The breakpoint that OpenAI places itself, where `pieces` (messages or items) have some of the client's too, or
    where it has another TTL than the host's default.

    Without this, breakpoints alone would mean that the host places none. In explicit mode it does not.
    """
    has_own = isinstance(pieces, list) and any(map(_has_own, pieces))
    is_long = breakpoint is not SHORT and "gpt-" in str(body.get("model"))
    return {BREAKPOINT: breakpoint} if _cache_option(body, "mode") != EXPLICIT and (has_own or is_long) else {}


def _cache_option(body: Mapping[str, Any], name: str) -> Any:
    options = body.get("prompt_cache_options")
    return options.get(name) if isinstance(options, Mapping) else None


def _has_own(piece: Any) -> bool:
    """Whether a message or an item, or one of its parts, has a breakpoint of OpenAI's kind."""
    if not isinstance(piece, Mapping):
        return False
    inner = [part for name in ("content", "output") if isinstance(piece.get(name), list) for part in piece[name]]
    return any(isinstance(one, Mapping) and one.get(OPENAI_BREAKPOINT) for one in (piece, *inner))


def copy_breakpoint(block: Body, raw: Mapping[str, Any], breakpoint: Body) -> Body:
    """`block` with the breakpoint of `raw`: a `cache_control` (gateways accept it), or OpenAI's own. Its TTL wins over
    the request's."""
    theirs = raw.get(OPENAI_BREAKPOINT)
    if isinstance(theirs, Mapping) and theirs.get("ttl") is not None:
        breakpoint = _breakpoint(theirs["ttl"])
    own = raw.get(BREAKPOINT) or (breakpoint if theirs else None)
    return {**block, BREAKPOINT: own} if own else block


def parts(content: Any, path: str, breakpoint: Body) -> list[Body]:
    """The blocks of a `content`: a text, parts, or nothing. Raises NotAMessage."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    items = array_at(content, path, "a text or an array of parts")
    return [part(one, f"{path}.{number}", breakpoint) for number, one in enumerate(items)]


def part(raw: Any, path: str, breakpoint: Body) -> Body:
    """The block of one content part; an unknown kind stays unchanged."""
    kind = require_object(raw, path, "a content part object").get("type")
    if not isinstance(kind, str):
        raise NotAMessage(f"{path}.type", "the part's type", kind)
    if kind in TEXTS or kind == "refusal":
        block = {"type": "text", "text": text(raw, "refusal" if kind == "refusal" else "text", path)}
    elif kind in ("image_url", "input_image"):
        block = _image(raw, path)
    elif kind in ("file", "input_file"):
        block = _document(raw)
    else:
        block = {name: value for name, value in raw.items() if name not in BREAKPOINTS}
    return copy_breakpoint(block, raw, breakpoint)


def text(raw: Mapping[str, Any], name: str, path: str) -> str:
    """The text that must stand under a name. Raises NotAMessage."""
    value = raw.get(name)
    if not isinstance(value, str):
        raise NotAMessage(f"{path}.{name}", "a text", value)
    return value


def _image(raw: Mapping[str, Any], path: str) -> Body:
    """An image. Its `detail` stays, because it decides the tokens."""
    told = raw.get("image_url")
    inner = told if isinstance(told, Mapping) else raw
    url = inner.get("url") if isinstance(told, Mapping) else told
    if url is None and raw.get("file_id") is None:
        raise NotAMessage(f"{path}.image_url", "an image's URL", None)
    detail = inner.get("detail") or "auto"
    return {"type": "image", "source": _source(url, raw), **({} if detail == "auto" else {"detail": detail})}


def _document(raw: Mapping[str, Any]) -> Body:
    inner = raw.get("file")
    told = inner if isinstance(inner, Mapping) else raw
    title = {"title": told["filename"]} if told.get("filename") else {}
    return {"type": "document", "source": _source(told.get("file_data") or told.get("file_url"), told), **title}


def _source(url: Any, told: Mapping[str, Any]) -> Body:
    data = DATA_URL.fullmatch(url) if isinstance(url, str) else None
    if data:
        return {"type": "base64", "media_type": data[1], "data": data[2]}
    return {"type": "file", "file_id": told.get("file_id")} if url is None else {"type": "url", "url": url}


# -------------------------------------------------------------------------------------- tool calls


def tool_use(called: Any, name: str, arguments: Any) -> Body:
    """A call of a tool. Arguments that are no JSON object stay the text that the model wrote."""
    return {"type": "tool_use", "id": called, "name": name, "input": _object(arguments)}


def tool_result(called: Any, blocks: list[Body]) -> Body:
    """The tool_result block; a single text is written as a string."""
    alone = blocks[0] if len(blocks) == 1 else {}
    plain = alone.get("type") == "text" and BREAKPOINT not in alone
    return {"type": "tool_result", "tool_use_id": called, "content": alone["text"] if plain else blocks}


def _object(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        value = json_value(arguments or "{}")
    except ValueError:
        return arguments
    return value if isinstance(value, dict) else arguments


# -------------------------------------------------------------------------- tools and parameters


def tools(raw: Any, path: str, breakpoint: Body) -> list[Body]:
    """The definitions. A function's stands in Chat under "function", in Responses on the tool itself."""
    items = array_at(raw, path, "an array of tools")
    return [
        _tool(require_object(one, f"{path}.{number}", "a tool object"), breakpoint) for number, one in enumerate(items)
    ]


def tool_settings(definitions: Any, tool_choice: Any, parallel: Any, breakpoint: Body) -> Body:
    """`tools` and `tool_choice`, as far as they are set. Raises NotAMessage."""
    chosen = choice(tool_choice, parallel if definitions else None)
    return {
        **({"tools": tools(definitions, "tools", breakpoint)} if definitions is not None else {}),
        **({"tool_choice": chosen} if chosen else {}),
    }


def _tool(raw: Mapping[str, Any], breakpoint: Body) -> Body:
    kind = raw.get("type")
    inner = raw.get(str(kind))
    told = inner if isinstance(inner, Mapping) else raw
    if kind == "function" or (kind is None and "parameters" in raw):
        names = {"name": "name", "description": "description", "parameters": "input_schema"}
        more = {name: told[name] for name in ("strict", "defer_loading") if told.get(name)}
        block = {ours: told[theirs] for theirs, ours in names.items() if told.get(theirs) is not None} | more
    elif told is not raw:
        block = {"type": kind, **told}
    else:
        block = dict(raw)
    bare = {name: value for name, value in block.items() if name not in BREAKPOINTS}
    return copy_breakpoint(copy_breakpoint(bare, told, breakpoint), raw, breakpoint)


def choice(raw: Any, parallel: Any) -> Body | None:
    """The `tool_choice`, or None. Raises NotAMessage."""
    told = _choice(raw)
    if parallel is False and (told or {}).get("type") != "none":
        return {**(told or {"type": "auto"}), "disable_parallel_tool_use": True}
    return told


def _choice(raw: Any) -> Body | None:
    if raw is None:
        return None
    if isinstance(raw, str) and raw in CHOICES:
        return {"type": CHOICES[raw]}
    if not isinstance(raw, Mapping):
        raise NotAMessage("tool_choice", "auto, none, required or an object", raw)
    kind = str(raw.get("type"))
    inside = raw.get(kind)
    told = inside if isinstance(inside, Mapping) else raw
    if kind in ("auto", "any", "none"):
        return dict(raw)
    if kind == "allowed_tools":
        return {"type": CHOICES.get(str(told.get("mode")), "auto")}
    return {"type": "tool", "name": told.get("name") or kind}


def parameters(body: Mapping[str, Any], limits: Iterable[str], effort: Any, format_: Any) -> Body:
    """What else shapes the prompt: the limit of the output, effort and format; and what gateways take as ours."""
    kept = {name: body[name] for name in (*PARAMETERS, BREAKPOINT) if _is_ours(name, body.get(name))}
    limit = next((body[name] for name in limits if body.get(name) is not None), None)
    config = {"effort": effort, "format": _format(format_)}
    told = {name: value for name, value in config.items() if value is not None}
    ours = kept.get("output_config") or {}
    return {
        **kept,
        **({} if limit is None else {"max_tokens": limit}),
        **({"output_config": {**told, **ours}} if told and isinstance(ours, Mapping) else {}),
    }


def verbosity(told: Any) -> Body:
    """The verbosity parameter: top-level in Chat, in `text` in Responses."""
    return {} if told is None else {"verbosity": told}


def _is_ours(name: str, value: Any) -> bool:
    """Whether a parameter is the Messages API's: OpenAI's own `context_management` is an array, and no part of the
    prompt."""
    is_theirs = name == "context_management" and isinstance(value, list)
    return value is not None and name != "tool_choice" and not is_theirs


def _format(raw: Any) -> Body | None:
    """The output format. Chat nests the schema in "json_schema", Responses does not."""
    if not isinstance(raw, Mapping) or raw.get("type") in (None, "text"):
        return None
    inner = raw.get("json_schema")
    schema = (inner if isinstance(inner, Mapping) else raw).get("schema")
    return {"type": raw["type"], **({} if schema is None else {"schema": schema})}


# ------------------------------------------------------------------------------------------ messages


def role_of(message: Mapping[str, Any], path: str, roles: Sequence[str]) -> str:
    """The role of a message, which is one of `roles`. Raises NotAMessage."""
    role = message.get("role")
    if role not in roles:
        raise NotAMessage(f"{path}.role", f"one of {', '.join(roles)}", role, nearest(str(role), roles))
    return str(role)


class Turns:
    """Collects system blocks and messages. Consecutive pieces of one message are joined."""

    def __init__(self) -> None:
        self.system: list[Body] = []
        self.messages: list[dict[str, Any]] = []
        self._open = ""

    def add(self, role: str, blocks: Sequence[Body], result: bool = False, joins: bool = False) -> None:
        """Add one piece. `result`: a tool result, joined to the results before it; `joins`: joined to the piece before
        it if that has the same role."""
        kind = "result" if result else role if joins else ""
        if role == "system" and not self.messages:
            self.system += blocks
        elif kind and kind == self._open:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": list(blocks)})
        self._open = kind

    def body(self) -> Body:
        """The fields of a Messages body."""
        return {**({"system": self.system} if self.system else {}), "messages": self.messages}


ROLES = ("assistant", "developer", "function", "system", "tool", "user")
LIMITS = ("max_completion_tokens", "max_tokens")


def from_chat(body: Mapping[str, Any]) -> Body:
    """A Chat Completions request as a Messages body. Raises NotAMessage with the path in `body`."""
    messages = array_at(body.get("messages"), "messages", "an array of messages")
    breakpoint, turns = ttl_parameter(body), Turns()
    for number, message in enumerate(messages):
        _add(turns, message, f"messages.{number}", breakpoint)
    given = body.get("tools") if body.get("tools") is not None else body.get("functions")
    called = body.get("tool_choice") if body.get("tool_choice") is not None else _old_choice(body)
    return {
        "model": model_with_mode(body),
        **implicit_breakpoint(body, messages, breakpoint),
        **parameters(body, LIMITS, body.get("reasoning_effort"), body.get("response_format")),
        **tool_settings(given, called, body.get("parallel_tool_calls"), breakpoint),
        **turns.body(),
    }


def from_chat_message(message: Mapping[str, Any]) -> list[Body]:
    """The blocks of an assistant's message: thinking, text, calls of tools. Raises NotAMessage."""
    return _assistant_blocks(message, "message", SHORT)


def _add(turns: Turns, raw: Any, path: str, breakpoint: Body) -> None:
    message = require_object(raw, path, "a message object")
    role = role_of(message, path, ROLES)
    if role in ("tool", "function"):
        called = message.get("tool_call_id") or message.get("name")
        blocks = parts(message.get("content"), f"{path}.content", breakpoint)
        turns.add("user", [copy_breakpoint(tool_result(called, blocks), message, breakpoint)], result=True)
    elif role == "assistant":
        turns.add("assistant", _assistant_blocks(message, path, breakpoint))
    else:
        blocks = parts(message.get("content"), f"{path}.content", breakpoint)
        turns.add("user" if role == "user" else "system", _breakpoint_last_block(blocks, message, breakpoint))


def _breakpoint_last_block(blocks: list[Body], message: Mapping[str, Any], breakpoint: Body) -> list[Body]:
    if not blocks or BREAKPOINT in blocks[-1]:
        return blocks
    return [*blocks[:-1], copy_breakpoint(blocks[-1], message, breakpoint)]


def _assistant_blocks(message: Mapping[str, Any], path: str, breakpoint: Body) -> list[Body]:
    content = message.get("content")
    shown = [] if content == "" else parts(content, f"{path}.content", breakpoint)
    refused = [{"type": "text", "text": message["refusal"]}] if isinstance(message.get("refusal"), str) else []
    return _breakpoint_last_block(
        [*_thinking_blocks(message, path), *shown, *refused, *_calls(message, path)], message, breakpoint
    )


def _thinking_blocks(message: Mapping[str, Any], path: str) -> list[Body]:
    blocks = message.get("thinking_blocks")
    if isinstance(blocks, list) and blocks:
        return [
            dict(require_object(one, f"{path}.thinking_blocks.{number}", "a block object"))
            for number, one in enumerate(blocks)
        ]
    told = message.get("reasoning_content") or message.get("reasoning")
    return [{"type": "thinking", "thinking": told}] if isinstance(told, str) else []


def _calls(message: Mapping[str, Any], path: str) -> list[Body]:
    place, old = f"{path}.tool_calls", message.get("function_call")
    calls = array_at(message.get("tool_calls") or [], place, "an array of calls")
    found = [_call(require_object(one, f"{place}.{number}", "a call object")) for number, one in enumerate(calls)]
    if isinstance(old, Mapping):
        found.append(tool_use(old.get("name"), str(old.get("name")), old.get("arguments")))
    return found


def _call(raw: Mapping[str, Any]) -> Body:
    kind = str(raw.get("type") or "function")
    told = raw.get(kind)
    if not isinstance(told, Mapping):
        return dict(raw) if "type" in raw else tool_use(raw.get("id"), str(raw.get("name")), raw.get("arguments"))
    return tool_use(raw.get("id"), str(told.get("name")), told.get("input" if kind == "custom" else "arguments"))


def _old_choice(body: Mapping[str, Any]) -> Any:
    """`function_call`, which tool_choice replaced."""
    told = body.get("function_call")
    return {"type": "function", **told} if isinstance(told, Mapping) else told
