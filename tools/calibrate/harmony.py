"""A tool definition as OpenAI publishes that its models are shown it: a type in a TypeScript namespace.

By the package `openai-harmony`, written for gpt-oss; bills of the hosted models agree (`makers.py`). The package looks
for the ranks of o200k_base in the folder that TIKTOKEN_ENCODINGS_BASE names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

PLAIN = {"name": "x", "description": "x", "input_schema": {"type": "object", "properties": {}}}
"""The tool beside which others are counted."""


def tool_tokens(content: Mapping[str, Any]) -> int:
    """Tokens of one tool definition among others."""
    return _tokens([PLAIN, content]) - _tokens([PLAIN])


@cache
def _encoding() -> Any:
    harmony = import_module("openai_harmony")
    return harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)


def _tokens(tools: Sequence[Mapping[str, Any]]) -> int:
    harmony = import_module("openai_harmony")
    content = harmony.DeveloperContent.new().with_function_tools([_tool(tool) for tool in tools])
    message = harmony.Message.from_role_and_content(harmony.Role.DEVELOPER, content)
    return len(_encoding().render_conversation(harmony.Conversation.from_messages([message])))


def _tool(content: Mapping[str, Any]) -> Any:
    name, about = str(content.get("name")), str(content.get("description") or "")
    return import_module("openai_harmony").ToolDescription.new(name, about, content.get("input_schema"))
