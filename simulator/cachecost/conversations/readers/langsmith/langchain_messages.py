"""Converts LangChain's messages, serialized or as plain objects, to the Messages body that ChatAnthropic sends.

Source: langchain-core 1.8 (`load.dumpd`, `messages_to_dict`, content blocks) and langchain-anthropic 1.7 (what its
payload makes of messages), read 2026-11. As there: results of tools and what a person says after them are one user
message, a breakpoint inside a result is the result's own, arguments come from `tool_calls`, texts of white space
and empty answers are not sent, and of a block only what the API takes. Other than there a system message in the
middle stays where it is: whether it was sent there or put to the head depends on the model's profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachecost.conversations.readers.common.dialects import Body, parse_json_text
from cachecost.conversations.readers.common.json_values import array_at, object_or_empty, require_object
from cachecost.conversations.readers.langsmith.langchain_blocks import block_from, result_of, tool_use
from cachecost.conversations.readers.openai.chat import LIMITS, from_chat, from_chat_message
from cachecost.conversations.readers.openai.parts import SHORT, choice, parameters, tools
from cachecost.conversations.readers.otel.parts import blocks_of as from_parts
from cachecost.prompts.intake import OBJECTS
from cachecost.prompts.wire import NotAMessage, content_blocks

ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}
PLAIN_ROLES = ("user", "assistant", "system", "tool", "developer", "function")
OPENAI_ROLES = ("developer", "function")


def body_from_request(request: Mapping[str, Any]) -> Body:
    """The Messages body of a request whose messages are LangChain's, Anthropic's or OpenAI's. Raises NotAMessage."""
    raw = array_at(request["messages"], "messages", "an array of messages")
    messages = [plain(message, f"messages.{number}") for number, message in enumerate(raw)]
    body = _parameters(request)
    if any(map(_is_openai, messages)):
        return {**body, **from_chat({"model": body.get("model"), "messages": messages})}
    system, sent = _split_system(messages)
    told = content_blocks(body.pop("system", []), "system")
    return {**body, "messages": sent, **({"system": [*told, *system]} if told or system else {})}


def plain(message: Any, path: str) -> dict[str, Any]:
    """A message as an object with `role` and `content`, whether it was serialized or nested in `data`."""
    require_object(message, path, "a message object")
    inner = next((message[name] for name in ("kwargs", "data") if isinstance(message.get(name), Mapping)), message)
    named = inner.get("role") or inner.get("type") or message.get("type")
    if "lc" in message and not inner.get("type") and not inner.get("role"):
        named = str((message.get("id") or [""])[-1])
    role = str(named or "").removesuffix("Chunk").removesuffix("Message").lower()
    role = ROLES.get(role, role)
    if role not in PLAIN_ROLES:
        raise NotAMessage(f"{path}.role", f"one of {', '.join(sorted({*PLAIN_ROLES, *ROLES}))}", named)
    return {**inner, "role": role}


def answer_blocks(message: Mapping[str, Any]) -> list[Body]:
    """The blocks of an answer, as `plain` gives it. Raises NotAMessage."""
    return from_chat_message(message) if _is_openai(message) else _blocks(message, "response")


def _is_openai(message: Mapping[str, Any]) -> bool:
    """Whether a message speaks of tools as Chat Completions does, which LangChain never does."""
    calls = message.get("tool_calls")
    nested = isinstance(calls, list) and any(isinstance(call, Mapping) and "function" in call for call in calls)
    return nested or message["role"] in OPENAI_ROLES or message.get("function_call") is not None


# ---------------------------------------------------------------------------------------------- messages


def _split_system(messages: Sequence[Mapping[str, Any]]) -> tuple[list[Body], list[Body]]:
    """(the system prompt, the messages) that are sent."""
    system: list[Body] = []
    sent: list[Body] = []
    for number, message in enumerate(messages):
        blocks, role = _blocks(message, f"messages.{number}"), message["role"]
        role = "user" if role == "tool" else role
        if role == "system" and not sent:
            system += blocks
        elif role == "user" and sent and sent[-1]["role"] == "user":
            sent[-1]["content"] += blocks
        elif blocks or role != "assistant":
            sent.append({"role": role, "content": blocks})
    return system, sent


def _blocks(message: Mapping[str, Any], path: str) -> list[Body]:
    if message.get("content") is None and isinstance(message.get("parts"), list):
        return from_parts(message["parts"], f"{path}.parts")
    calls = _calls(message.get("tool_calls"))
    blocks = _content(message.get("content"), f"{path}.content", calls)
    if message["role"] == "tool":
        return result_of(message, blocks)
    told = {str(block.get("id")) for block in blocks if block["type"] == "tool_use"}
    return [*blocks, *(tool_use(call) for name, call in calls.items() if name not in told)]


def _calls(calls: Any) -> dict[str, Mapping[str, Any]]:
    """The tool calls of a message's `tool_calls`, by id."""
    told = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
    return {str(call.get("id") or f"call {number}"): call for number, call in enumerate(told)}


def _content(content: Any, path: str, calls: Mapping[str, Mapping[str, Any]]) -> list[Body]:
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    items = array_at(content, path, "a string or an array of blocks")
    found = [block_from(item, f"{path}.{number}", calls) for number, item in enumerate(items)]
    return [block for block in found if block["type"] != "text" or str(block.get("text") or "").strip()]


# -------------------------------------------------------------------------------------------- parameters


def _parameters(request: Mapping[str, Any]) -> Body:
    """What else the Messages API takes of a request; what only other APIs have is left out."""
    told = {**object_or_empty(request.get("model_kwargs")), **request}
    told |= {name: parse_json_text(told[name]) for name in (*OBJECTS, "tools") if name in told}
    limits = {name: told[name] for name in LIMITS if isinstance(told.get(name), int)}
    own = {name: value for name, value in told.items() if name not in LIMITS and not _is_foreign(name, value)}
    effort = told.get("effort") or told.get("reasoning_effort")
    body = parameters({**own, **limits}, LIMITS, effort, told.get("response_format"))
    body |= {name: told[name] for name in ("model", "system") if told.get(name)}
    body |= {"tools": tools(told["tools"], "tools", SHORT)} if told.get("tools") else {}
    chosen = choice(told.get("tool_choice"), told.get("parallel_tool_calls"))
    return {**body, **({"tool_choice": chosen} if chosen else {})}


def _is_foreign(name: str, value: Any) -> bool:
    """Whether a parameter has the name of a Messages parameter, but another meaning."""
    return name in OBJECTS and not isinstance(value, Mapping)
