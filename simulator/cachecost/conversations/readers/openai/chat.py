"""Converts requests and answers of OpenAI's Chat Completions API to the Messages API (Responses: responses.py).

Read from the types of OpenAI's SDKs and its API reference (November 2026), and from what gateways add to them:
`cache_control` on parts, messages and tools (LiteLLM, OpenRouter), `thinking_blocks` (LiteLLM), `reasoning_content`
(DeepSeek and others). `prompt_cache_breakpoint` becomes a breakpoint; its 30 minutes become our 5m TTL. The model of a
request in explicit mode becomes the one that caches so (`gpt-6.1-sol-explicit`).

Instructions at the start (role system or developer) are the system prompt; later ones stay in place.
Results of tools that follow each other are one user message. Parameters that do not affect the prompt are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.conversations.readers.common.json_values import array_at, require_object
from cachecost.conversations.readers.openai.parts import (
    SHORT,
    Body,
    Turns,
    copy_breakpoint,
    implicit_breakpoint,
    model_with_mode,
    parameters,
    parts,
    role_of,
    tool_result,
    tool_settings,
    tool_use,
    ttl_parameter,
)
from cachecost.prompts.wire import BREAKPOINT

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
    """A breakpoint on the message is one on its last block."""
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
