"""Lines of a transcript whose fields have other types than usual, field by field: what may stay, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from cachecost.conversations.json_object import JsonObject
from cachecost.conversations.readers.claude_code.line import LineCreation, LineMessage, LineUsage, TranscriptLine
from cachecost.conversations.wire_usage import parse_usage
from cachecost.prompts.wire import NotAMessage, show_found

WORDS = {"session_id": "sessionId", "agent_id": "agentId", "cwd": "cwd", "version": "version"}
"""Fields that may be missing, or anything else."""
NAMES = {"id": "id", "request_ref": "requestRef"}
"""Fields that refer to each other, whatever they are."""
TEXTS = {"uuid": "uuid", "parent_uuid": "parentUuid", "logical_parent_uuid": "logicalParentUuid", "subtype": "subtype"}
"""Fields that only count where they are texts."""
COUNTED = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
APART = ("service_tier", "speed", "inference_geo", "iterations", "server_tool_use")
AnswerKey = tuple[object, object]
"""Message id (else the line) and request id: what the lines of one answer have in common."""


def usual_line(data: Any) -> TranscriptLine | None:
    """The line of a parsed object, if all its fields have the types that they should have."""
    try:
        line = msgspec.convert(data, TranscriptLine)
    except (msgspec.ValidationError, UnicodeEncodeError):  # the latter of half a character in a field's name
        return None
    return line if line.is_whole else None


def check_line(found: TranscriptLine, line: JsonObject, is_begun: Callable[[AnswerKey], bool], synthetic: str) -> None:
    """Complete a bare line that has a place in the tree; a field that is wrong becomes an error, and harmless.

    `is_begun` is whether an earlier line has begun an answer: only the first needs a model. Messages of the model
    `synthetic` are not looked at.
    """
    data = line.data
    found.timestamp = data.get("timestamp") if line.moment_in_seconds("timestamp") is not None else None
    found.is_sidechain = line.flag("isSidechain")
    if found.type in ("assistant", "user"):
        message = line.within(line.mapping("message"), "message")
        found.message = LineMessage()
        if found.type == "user":
            found.message.content = _content(message)
        elif message.data.get("model") == synthetic or found.is_api_error_message:
            found.message.model = synthetic
        elif message.has("usage"):
            _check_answer(found, line, message, is_begun)


def bare_line(line: JsonObject) -> TranscriptLine:
    """The line without its message, time and flags, of which nothing is checked but the type."""
    data = line.data
    found = TranscriptLine(line.text("type"))
    for name, wire in WORDS.items():
        setattr(found, name, None if data.get(wire) is None else str(data[wire] or ""))
    for name, wire in NAMES.items():
        setattr(found, name, None if data.get(wire) is None else str(data[wire]))
    for name, wire in TEXTS.items():
        setattr(found, name, data[wire] if isinstance(data.get(wire), str) else None)
    found.is_api_error_message, found.is_compact_summary = data.get("isApiErrorMessage"), data.get("isCompactSummary")
    found.cache_control = data.get("cacheControl")
    return found


def _check_answer(
    found: TranscriptLine, line: JsonObject, message: JsonObject, is_begun: Callable[[AnswerKey], bool]
) -> None:
    name, found.request_id = message.text("id", ""), line.text("requestId", "")
    told, content = message.mapping("usage"), _content(message)
    model = "" if is_begun((name or ("line", line.line), found.request_id)) else message.text("model")
    found.message = LineMessage(name, model, _usage(message, told), content)


def _usage(message: JsonObject, told: dict[str, Any]) -> LineUsage:
    try:
        usage = parse_usage(told, "usage")
    except NotAMessage as fault:
        message.fault(fault.path, str(fault).removeprefix(f"{fault.path}: "))
        return LineUsage()
    stated = {name: told.get(name) for name in (*COUNTED, *APART)}
    return LineUsage(**stated, cache_creation=LineCreation(usage.write_5m, usage.write_1h))


def _content(message: JsonObject) -> list[Any]:
    content = message.data.get("content")
    if isinstance(content, list):
        return content
    if content is not None and not isinstance(content, str):
        message.fault("content", f"expected a text or an array of blocks; got {show_found(content)}")
    return [content] if isinstance(content, str) else []
