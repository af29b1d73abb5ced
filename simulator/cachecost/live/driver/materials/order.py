"""The API's rules for the order of blocks in a body, checked before anything is sent (documentation, Messages)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from cachecost.prompts.blocks import THINKING
from cachecost.prompts.output_format import counts_unseen, output_format
from cachecost.prompts.wire import content_blocks

TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
Blocks = list[Mapping[str, Any]]
Turn = tuple[str, Blocks]


def faults_in(body: Mapping[str, Any]) -> list[str]:
    """Why the API would answer 400; empty if no reason is known."""
    turns = _turns(body)
    return [
        *_of_schema(body),
        *_of_tools(body),
        *_of_texts(body),
        *_of_roles(turns),
        *_of_results(turns),
        *_of_thinking(body, turns),
    ]


def _turns(body: Mapping[str, Any]) -> list[Turn]:
    """The messages as the API merges them: adjacent ones of one role are joined; system messages are left out."""
    turns: list[Turn] = []
    for number, message in enumerate(body.get("messages") or ()):
        if message["role"] == "system":
            continue
        blocks = content_blocks(message["content"], f"messages.{number}.content")
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    return turns


def _of_schema(body: Mapping[str, Any]) -> Iterator[str]:
    wanted = output_format(body)
    if isinstance(wanted, Mapping) and counts_unseen(wanted) is not None:
        yield "output_config.format: the recording holds no schema, only its size, so it cannot be sent"


def _of_tools(body: Mapping[str, Any]) -> Iterator[str]:
    names = [str(tool.get("name")) for tool in body.get("tools") or ()]
    for name, times in Counter(names).items():
        if times > 1:
            yield f"tools: names must be unique; '{name}' appears {times} times"
        if not TOOL_NAME.fullmatch(name):
            yield f"tools: '{name}' is not a valid tool name"
    choice = body.get("tool_choice") or {}
    if choice.get("type") == "tool" and choice.get("name") not in names:
        yield f"tool_choice: tool '{choice.get('name')}' is not among the tools"


def _of_texts(body: Mapping[str, Any]) -> Iterator[str]:
    for number, message in enumerate(body.get("messages") or ()):
        blocks = content_blocks(message["content"], f"messages.{number}.content")
        if not blocks:
            yield f"messages.{number}: content must not be empty"
        for index, block in enumerate(blocks):
            if block.get("type") == "text" and not str(block.get("text") or "").strip():
                yield f"messages.{number}.content.{index}: text must not be empty"


def _of_roles(turns: list[Turn]) -> Iterator[str]:
    if not turns:
        yield "messages: at least one message is required"
    elif turns[0][0] != "user":
        yield "messages.0: the first message must be the user's"


def _of_results(turns: list[Turn]) -> Iterator[str]:
    seen: set[str] = set()
    waiting: list[str] = []
    for number, (role, blocks) in enumerate(turns, 1):
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        if missing := [one for one in waiting if one not in results]:
            yield f"turn {number}: no tool_result for tool_use {', '.join(missing)} right after it"
        if strange := [one for one in results if one not in waiting]:
            yield f"turn {number}: a tool_result without a tool_use right before it: {', '.join(strange)}"
        if twice := sorted({one for one in calls if one in seen or calls.count(one) > 1}):
            yield f"turn {number}: tool_use ids must be unique: {', '.join(twice)}"
        if role == "user" and _comes_late(blocks):
            yield f"turn {number}: tool results must come before anything else"
        seen.update(calls)
        waiting = calls
    if waiting:
        yield f"turn {len(turns)}: the last message calls tools, and has no results for them"


def _comes_late(blocks: Blocks) -> bool:
    kinds = [block.get("type") == "tool_result" for block in blocks]
    return kinds != sorted(kinds, reverse=True)


def _of_thinking(body: Mapping[str, Any], turns: list[Turn]) -> Iterator[str]:
    """With manual thinking, the assistant turn before tool results must start with its thinking."""
    if (body.get("thinking") or {}).get("type") != "enabled" or len(turns) < 2:
        return
    goes_on = turns[-1][0] == "user" and any(block.get("type") == "tool_result" for block in turns[-1][1])
    if goes_on and turns[-2][1][0].get("type") not in THINKING:
        yield (
            "with manual thinking, the tool results at the end need the thinking that came before their calls, and "
            "it cannot be sent without its signature: run with --set conversation.params.thinking.type=adaptive or "
            "=disabled"
        )
