"""A prompt as OpenAI publishes that its models are shown it (the harmony format, package `openai-harmony`).

Published for gpt-oss; the hosted models are said to be trained on the same, and no bill here tells. The hidden
text that OpenAI puts before a prompt is left out: it is not billed as input. The package looks for the ranks of
o200k_base in the folder that TIKTOKEN_ENCODINGS_BASE names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import groupby
from json import dumps
from typing import Any

from cachecost.prompts.blocks import Block

KINDS = frozenset({"tool", "text", "tool_use", "tool_result"})
"""What is rendered; a prompt with anything else tells no constants."""
PLAIN = {"name": "x", "description": "x", "input_schema": {"type": "object", "properties": {}}}
"""The tool beside which others are counted."""


def can_be_shown(blocks: Iterable[Block]) -> bool:
    """Whether all of a prompt is text, tools, calls and results of text."""
    return all(_is_plain(block.kind, block.content or {}) for block in blocks)


def prompt_tokens(blocks: Sequence[Block]) -> int:
    """Tokens of a whole prompt, without the opening of the answer."""
    tools = [block.content or {} for block in blocks if block.kind == "tool"]
    system = "\n\n".join(str((block.content or {}).get("text")) for block in blocks if block.role == "system")
    rest = [block for block in blocks if block.kind != "tool" and block.role != "system"]
    head = [_developer(system, tools)] if system or tools else []
    names = {str(b.content.get("id")): str(b.content.get("name")) for b in rest if b.content and b.kind == "tool_use"}
    runs = groupby(rest, key=lambda block: block.role)
    return _tokens([*head, *(message for role, run in runs for message in _messages(role, list(run), names))])


def tool_tokens(content: Mapping[str, Any]) -> int:
    """Tokens of one tool definition among others."""
    return _tokens([_developer("", [PLAIN, content])]) - _tokens([_developer("", [PLAIN])])


def _is_plain(kind: str, content: Mapping[str, Any]) -> bool:
    inner = content.get("content") if kind == "tool_result" else None
    items = inner if isinstance(inner, list) else []
    return kind in KINDS and all(isinstance(item, Mapping) and item.get("type") == "text" for item in items)


def _library() -> Any:
    return import_module("openai_harmony")


@cache
def _encoding() -> Any:
    harmony = _library()
    return harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)


def _tokens(messages: Sequence[Any]) -> int:
    harmony = _library()
    conversation = harmony.Conversation.from_messages(messages)
    return len(_encoding().render_conversation(conversation))


def _developer(system: str, tools: Sequence[Mapping[str, Any]]) -> Any:
    harmony = _library()
    content = harmony.DeveloperContent.new()
    if system:
        content = content.with_instructions(system)
    if tools:
        content = content.with_function_tools([_tool(tool) for tool in tools])
    return harmony.Message.from_role_and_content(harmony.Role.DEVELOPER, content)


def _tool(content: Mapping[str, Any]) -> Any:
    harmony = _library()
    name, about = str(content.get("name")), str(content.get("description") or "")
    return harmony.ToolDescription.new(name, about, content.get("input_schema"))


def _messages(role: str, run: Sequence[Block], names: Mapping[str, str]) -> list[Any]:
    """The texts of a run as one message, each call and each result as one of its own."""
    harmony = _library()
    texts = [harmony.TextContent(text=_text(block.content)) for block in run if block.kind == "text"]
    calls = [_call(block.content or {}) for block in run if block.kind == "tool_use"]
    results = [_result(block.content or {}, names) for block in run if block.kind == "tool_result"]
    said = [_said(role, texts)] if texts else []
    return [*results, *said, *calls]


def _said(role: str, texts: Sequence[Any]) -> Any:
    harmony = _library()
    message = harmony.Message.from_role_and_contents(harmony.Role(role), texts)
    return message.with_channel("final") if role == "assistant" else message


def _call(content: Mapping[str, Any]) -> Any:
    harmony = _library()
    arguments = dumps(content.get("input"), separators=(",", ":"), ensure_ascii=False)
    message = harmony.Message.from_role_and_content(harmony.Role.ASSISTANT, arguments)
    called = message.with_channel("commentary").with_recipient(f"functions.{content.get('name')}")
    return called.with_content_type("<|constrain|>json")


def _result(content: Mapping[str, Any], names: Mapping[str, str]) -> Any:
    harmony = _library()
    inner = content.get("content") or ""
    items = inner if isinstance(inner, list) else [{"text": inner}]
    author = harmony.Author.new(harmony.Role.TOOL, f"functions.{names.get(str(content.get('tool_use_id')), 'x')}")
    text = "".join(_text(item) for item in items)
    message = harmony.Message.from_author_and_content(author, text)
    return message.with_recipient("assistant").with_channel("commentary")


def _text(content: Mapping[str, Any] | None) -> str:
    return str((content or {}).get("text") or "").encode("utf-8", "replace").decode("utf-8")
