"""The lines of a rollout file of Codex CLI, decoded as far as a bill needs them.

A line is `{"timestamp", "type", "payload"}`. Content stays undecoded.
"""

from __future__ import annotations

from typing import Any

import msgspec

Raw = msgspec.Raw
ITEM_LIST = msgspec.json.Decoder(list[Raw] | None)


class Line(msgspec.Struct):
    type: str = ""
    timestamp: str | None = None
    payload: Raw = Raw(b"{}")


class Meta(msgspec.Struct):
    """`session_meta`: who began the file. `source` is {"subagent": …} for a sub-agent, else a word."""

    id: str = ""
    session_id: str | None = None
    forked_from_id: str | None = None
    cwd: str | None = None
    cli_version: str | None = None
    model_provider: str | None = None
    source: Any = None
    agent_nickname: str | None = None
    agent_role: str | None = None
    base_instructions: Raw = Raw(b"null")


class TurnContext(msgspec.Struct):
    cwd: str | None = None
    model: str | None = None
    effort: str | None = None
    service_tier: str | None = None


class Item(msgspec.Struct):
    """`response_item`: a part of the conversation, an item of the Responses API."""

    type: str = ""
    role: str | None = None


class ThreadSettings(msgspec.Struct):
    model: str | None = None
    reasoning_effort: str | None = None
    service_tier: str | None = None


class DoneItem(msgspec.Struct):
    type: str = ""


class TokenInfo(msgspec.Struct):
    total_token_usage: dict[str, Any] | None = None
    last_token_usage: dict[str, Any] | None = None
    model_context_window: int | None = None


class Event(msgspec.Struct):
    """`event_msg`."""

    type: str = ""
    started_at: float | None = None
    info: TokenInfo | None = None
    item: Raw = Raw(b"null")
    thread_settings: ThreadSettings | None = None


class UsageRecord(msgspec.Struct):
    """`token_usage_record` (Codex 0.153 and later): the bill of one response."""

    thread_id: str | None = None
    response_id: str | None = None
    usage: dict[str, Any] | None = None
    thread_token_usage: dict[str, Any] | None = None


class Compacted(msgspec.Struct):
    """`compacted`: what the history is replaced with; older files have the summary alone."""

    message: str | None = None
    replacement_history: Raw = Raw(b"null")


LINE = msgspec.json.Decoder(Line)
META = msgspec.json.Decoder(Meta)
TURN_CONTEXT = msgspec.json.Decoder(TurnContext)
ITEM = msgspec.json.Decoder(Item)
EVENT = msgspec.json.Decoder(Event)
USAGE_RECORD = msgspec.json.Decoder(UsageRecord)
COMPACTED = msgspec.json.Decoder(Compacted)
DONE_ITEM = msgspec.json.Decoder(DoneItem)
