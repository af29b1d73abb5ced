"""One line of a Claude Code transcript: the fields that calls are made of, and what its usage and content mean."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from cachecost.base.limits import MOST_TOKENS
from cachecost.conversations.calls import reported_uses
from cachecost.conversations.json_object import TranscriptStep
from cachecost.conversations.readers.claude_code.record_kinds import PRICED, THINKING, kind_of
from cachecost.providers.prices import terms_of
from cachecost.providers.usage import Usage

Tokens = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class LineCreation(msgspec.Struct, gc=False):
    """What a usage says of its writes, by TTL."""

    ephemeral_5m_input_tokens: Tokens | None = None
    ephemeral_1h_input_tokens: Tokens | None = None


class LineUsage(msgspec.Struct, gc=False):
    """The usage of a line of an answer, as written. What it counts is checked by its types."""

    input_tokens: Tokens | None = None
    cache_read_input_tokens: Tokens | None = None
    cache_creation_input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    cache_creation: LineCreation | None = None
    service_tier: Any = None
    speed: Any = None
    inference_geo: Any = None
    iterations: Any = None
    server_tool_use: Any = None


class LineMessage(msgspec.Struct, gc=False):
    """The message of a line."""

    id: str | None = None
    model: str | None = None
    usage: LineUsage | None = None
    content: list[Any] | str | None = None


class TranscriptLine(msgspec.Struct, rename="camel", gc=False):
    """The fields of a line that calls are made of; a line with values of other types is no such object."""

    type: str
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    timestamp: str | None = None
    is_sidechain: bool | None = None
    session_id: str | None = None
    agent_id: str | None = None
    cwd: str | None = None
    version: str | None = None
    subtype: str | None = None
    message: LineMessage | None = None
    request_id: str | None = None
    request_ref: str | None = None
    is_api_error_message: Any = None
    is_compact_summary: Any = None
    id: str | None = None
    cache_control: Any = None

    @property
    def is_whole(self) -> bool:
        """Whether it has all that a line of its type must have."""
        message = self.message
        if message is None:
            return self.type not in ("assistant", "user")
        return message.model is not None or message.usage is None or self.type != "assistant"


def lengthen(step: TranscriptStep, usage: Usage, content: list[Any], time: float | None) -> None:
    """Add one more line of its answer to a step."""
    if usage.output_tokens >= step.usage.output_tokens:
        step.usage = usage
    step.thinking = step.thinking or any(kind_of(block) in THINKING for block in content)
    if step.answered is None:
        step.ended = None
    elif time is not None and (step.ended is None or time > step.ended):
        step.ended = time


def usage_on(told: LineUsage) -> Usage:
    """The usage of a line. What of a write is in neither the 5m nor the 1h part counts as 5m."""
    written, five, hour = told.cache_creation_input_tokens or 0, 0, 0
    if (split := told.cache_creation) is not None:
        five, hour = split.ephemeral_5m_input_tokens or 0, split.ephemeral_1h_input_tokens or 0
    read, output = told.cache_read_input_tokens or 0, told.output_tokens or 0
    uses = reported_uses({"server_tool_use": told.server_tool_use}) if told.server_tool_use else ()
    return Usage(told.input_tokens or 0, read, max(five, written - hour), hour, output, uses)


def is_zero(usage: LineUsage) -> bool:
    """Whether a usage counts no token: that of a copy (its 5m and 1h part may stay). A call has input."""
    return (
        usage.input_tokens == 0
        and usage.cache_read_input_tokens == 0
        and usage.cache_creation_input_tokens == 0
        and usage.output_tokens == 0
    )


def modes_of(usage: LineUsage) -> tuple[str, ...]:
    return terms_of({name: getattr(usage, name) for name in PRICED}, False).modes


def is_summed(usage: LineUsage) -> bool:
    """Whether the usage sums several passes (server tools)."""
    passes, tools = usage.iterations, usage.server_tool_use
    return (isinstance(passes, list) and len(passes) > 1) or (isinstance(tools, dict) and any(tools.values()))


def content_of(message: LineMessage | None) -> list[Any]:
    """The blocks of a message. A text is one."""
    content = message.content if message is not None else None
    if type(content) is list:
        return content
    return [] if content is None else [content]
