"""Converts LangChain's messages, serialized or as plain objects, to the Messages body that ChatAnthropic sends.

Source: langchain-core 1.8 (`load.dumpd`, `messages_to_dict`, content blocks) and langchain-anthropic 1.7 (what its
payload makes of messages), read 2026-11. As there: results of tools and the user's text after them are one user
message, a breakpoint inside a result is the result's own, arguments come from `tool_calls`, texts of white space
and empty answers are not sent, and of a block only what the API takes. Other than there a system message in the
middle stays where it is: whether it was sent there or put to the head depends on the model's profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cachecost.conversations.readers.apis import openai
from cachecost.conversations.readers.apis.formats import Body
from cachecost.conversations.readers.call_builder import parse_json_text
from cachecost.conversations.readers.common.json_values import array_at, object_or_empty, require_object
from cachecost.conversations.readers.otel.messages import blocks_of as from_parts
from cachecost.prompts.intake import OBJECTS
from cachecost.prompts.request import BREAKPOINT, NotAMessage, content_blocks

NARROWED = {
    "text": ("type", "text", "citations", BREAKPOINT),
    "thinking": ("type", "thinking", "signature", BREAKPOINT),
    "redacted_thinking": ("type", "data", BREAKPOINT),
}
"""What is sent of these; LangChain keeps more in them."""
MEDIA = {"image": "image", "file": "document", "text-plain": "document"}
"""LangChain's own blocks for pictures and documents: they have no `source`."""


def block_from(block: Any, path: str, calls: Mapping[str, Mapping[str, Any]]) -> Body:
    """The block as it is sent; an unknown type stays unchanged. Raises NotAMessage."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
        raise NotAMessage(path, "a block with a type", block)
    kind, inner, id_ = block["type"], block.get("value"), str(block.get("id"))
    if kind == "non_standard" and isinstance(inner, Mapping):
        return block_from(inner, path, calls)
    if kind in NARROWED:
        return {name: value for name, value in block.items() if name in NARROWED[kind]}
    if kind == "image_url":
        return openai.part(block, path, openai.SHORT)
    if kind in MEDIA and "source" not in block:
        return _medium(block)
    if kind == "tool_call" or (kind == "tool_use" and id_ in calls):
        return tool_use(calls.get(id_, block))
    if kind == "reasoning" and (signature := _extras(block).get("signature")):
        return {"type": "thinking", "thinking": block.get("reasoning") or "", "signature": signature}
    # what streaming leaves behind is never sent
    sent = {name: value for name, value in block.items() if name not in ("index", "partial_json")}
    if "partial_json" in block and not block.get("input"):
        sent["input"] = parse_json_text(block["partial_json"]) or {}
    return sent


def tool_use(call: Mapping[str, Any]) -> Body:
    """The block of an entry of `tool_calls`."""
    return {"type": "tool_use", "name": call.get("name"), "input": call.get("args") or {}, "id": call.get("id")}


def _medium(block: Mapping[str, Any]) -> Body:
    extras = _extras(block)
    names = (BREAKPOINT, "citations", "title", "context")
    beside = {name: block.get(name, extras.get(name)) for name in names if name in block or name in extras}
    kind, url = block.get("source_type"), block.get("url")
    media = block.get("mime_type") or "application/pdf"
    source: Body
    if isinstance(url, str) and not url.startswith("data:"):
        source = {"type": "url", "url": url}
    elif isinstance(url, str):
        media, _, data = url.removeprefix("data:").partition(";base64,")
        source = {"type": "base64", "media_type": media, "data": data}
    elif block["type"] == "text-plain" or kind == "text":
        source = {"type": "text", "media_type": block.get("mime_type") or "text/plain", "data": block.get("text")}
    elif "file_id" in block or kind == "id":
        source = {"type": "file", "file_id": block.get("file_id", block.get("id"))}
    else:
        source = {"type": "base64", "media_type": media, "data": block.get("base64", block.get("data"))}
    return {"type": MEDIA[block["type"]], "source": source, **beside}


def _extras(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """What LangChain's blocks keep of a provider's own fields."""
    return object_or_empty(block.get("extras") or block.get("metadata"))


ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}
PLAIN_ROLES = ("user", "assistant", "system", "tool", "developer", "function")


def body_from_request(request: Mapping[str, Any]) -> Body:
    """The Messages body of a request whose messages are LangChain's, Anthropic's or OpenAI's. Raises NotAMessage."""
    raw = array_at(request["messages"], "messages", "an array of messages")
    messages = [plain(message, f"messages.{number}") for number, message in enumerate(raw)]
    body = _parameters(request)
    if any(map(_is_openai, messages)):
        return {**body, **openai.from_chat({"model": body.get("model"), "messages": messages})}
    turns = openai.Turns()
    for number, message in enumerate(messages):
        blocks, role = _blocks(message, f"messages.{number}"), message["role"]
        if blocks or role != "assistant":
            turns.add("user" if role == "tool" else role, blocks, joins=role in ("tool", "user"))
    turns.system[:0] = map(dict, content_blocks(body.pop("system", []), "system"))
    return {**body, **turns.body()}


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
    return openai.from_chat_message(message) if _is_openai(message) else _blocks(message, "response")


def _is_openai(message: Mapping[str, Any]) -> bool:
    """Whether a message speaks of tools as Chat Completions does, which LangChain never does."""
    calls = message.get("tool_calls")
    nested = isinstance(calls, list) and any(isinstance(call, Mapping) and "function" in call for call in calls)
    return nested or message["role"] in ("developer", "function") or message.get("function_call") is not None


def _blocks(message: Mapping[str, Any], path: str) -> list[Body]:
    content = message.get("content")
    if content is None and isinstance(message.get("parts"), list):
        return from_parts(message["parts"], f"{path}.parts")
    found = message.get("tool_calls")
    found = [call for call in found if isinstance(call, Mapping)] if isinstance(found, list) else []
    calls = {str(call.get("id") or f"call {number}"): call for number, call in enumerate(found)}
    if isinstance(content, str):
        blocks = [{"type": "text", "text": content}] if content else []
    else:
        items = array_at([] if content is None else content, f"{path}.content", "a string or an array of blocks")
        blocks = [block_from(item, f"{path}.content.{n}", calls) for n, item in enumerate(items)]
        blocks = [one for one in blocks if one["type"] != "text" or str(one.get("text") or "").strip()]
    if message["role"] != "tool":
        known = {str(block.get("id")) for block in blocks if block["type"] == "tool_use"}
        return [*blocks, *(tool_use(call) for name, call in calls.items() if name not in known)]
    if blocks and all(block["type"] == "tool_result" for block in blocks):
        return blocks
    breakpoints = [block[BREAKPOINT] for block in blocks if BREAKPOINT in block]
    inner = [{name: value for name, value in block.items() if name != BREAKPOINT} for block in blocks]
    result = {
        "type": "tool_result",
        "content": content if isinstance(content, str) else inner,
        "tool_use_id": message.get("tool_call_id"),
        "is_error": message.get("status") == "error",
    }
    return [{**result, BREAKPOINT: breakpoints[-1]} if breakpoints else result]


def _parameters(request: Mapping[str, Any]) -> Body:
    """What else the Messages API takes of a request; what only other APIs have is left out."""
    stated = {**object_or_empty(request.get("model_kwargs")), **request}
    stated |= {name: parse_json_text(stated[name]) for name in (*OBJECTS, "tools") if name in stated}
    own = {
        name: value
        for name, value in stated.items()
        if (isinstance(value, int) if name in openai.LIMITS else name not in OBJECTS or isinstance(value, Mapping))
    }
    effort = stated.get("effort") or stated.get("reasoning_effort")
    body = openai.parameters(own, openai.LIMITS, effort, stated.get("response_format"))
    body |= {name: stated[name] for name in ("model", "system") if stated.get(name)}
    body |= {"tools": openai.tools(stated["tools"], "tools", openai.SHORT)} if stated.get("tools") else {}
    chosen = openai.choice(stated.get("tool_choice"), stated.get("parallel_tool_calls"))
    return {**body, **({"tool_choice": chosen} if chosen else {})}
