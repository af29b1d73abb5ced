"""Reads one line of a Claude Code transcript: its usage and content."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.transcript_steps import TranscriptStep
from cachecost.conversations.wire_usage import parse_usage
from cachecost.prompts.wire import NotAMessage, show_found
from cachecost.providers.usage import Usage

THINKING = ("thinking", "redacted_thinking")
PRICED = {"service_tier": "batch", "speed": "fast", "inference_geo": "us"}
"""Fields of a usage with the value that changes the price, in the order of `steps.MODES`."""


def client_of(line: JsonObject) -> str:
    """The version of Claude Code that wrote the line."""
    return str(line.data.get("version") or "")


def lengthen(step: TranscriptStep, usage: Usage, content: list[Any], time: float | None) -> None:
    """Add one more line of its answer to a step."""
    if usage.output_tokens >= step.usage.output_tokens:
        step.usage = usage
    step.thinking = step.thinking or any(kind_of(block) in THINKING for block in content)
    if step.answered is None:
        step.ended = None
    elif time is not None and (step.ended is None or time > step.ended):
        step.ended = time


def usage_on(message: JsonObject, told: dict[str, Any]) -> Usage:
    """The usage of a line. What of a write is in neither the 5m nor the 1h part counts as 5m."""
    try:
        usage = parse_usage(told, "usage")
    except NotAMessage as fault:
        message.fault(fault.path, str(fault).removeprefix(f"{fault.path}: "))
        return Usage()
    missing = (told.get("cache_creation_input_tokens") or 0) - usage.write
    return replace(usage, write_5m=usage.write_5m + missing) if missing > 0 else usage


def is_zero(usage: dict[str, Any]) -> bool:
    """Whether a usage counts no token: that of a copy (its 5m and 1h part may stay). A call has input."""
    counted = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    return all(usage.get(name) == 0 for name in counted)


def modes_of(usage: dict[str, Any]) -> tuple[str, ...]:
    return tuple([mode for name, mode in PRICED.items() if usage.get(name) == mode])


def is_summed(usage: dict[str, Any]) -> bool:
    """Whether the usage sums several passes (server tools)."""
    passes, tools = usage.get("iterations"), usage.get("server_tool_use")
    return (isinstance(passes, list) and len(passes) > 1) or (isinstance(tools, dict) and any(tools.values()))


def content_of(message: JsonObject) -> list[Any]:
    """The blocks of a message. A text is one."""
    content = message.data.get("content")
    if isinstance(content, list):
        return content
    if content is not None and not isinstance(content, str):
        message.fault("content", f"expected a text or an array of blocks; got {show_found(content)}")
    return [content] if isinstance(content, str) else []


def kind_of(block: object) -> object:
    return block.get("type") if isinstance(block, dict) else "text"
