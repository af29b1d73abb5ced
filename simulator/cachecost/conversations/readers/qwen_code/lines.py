"""The records of a session file of Qwen Code, decoded as far as a bill needs them. Content stays undecoded."""

from __future__ import annotations

from typing import Any

import msgspec

Raw = msgspec.Raw
EMPTY = Raw(b"null")


class Origin(msgspec.Struct):
    """Where a record was copied from: `/branch` copies those of a session into a new one."""

    session: str = msgspec.field(default="", name="sessionId")


class Record(msgspec.Struct):
    """A line: `type` is user, assistant, tool_result or system."""

    type: str = ""
    uuid: str = ""
    parent: str | None = msgspec.field(default=None, name="parentUuid")
    session: str | None = msgspec.field(default=None, name="sessionId")
    timestamp: str | None = None
    subtype: str | None = None
    cwd: str | None = None
    version: str | None = None
    model: str | None = None
    message: Raw = EMPTY
    usage: dict[str, Any] | None = msgspec.field(default=None, name="usageMetadata")
    payload: Raw = msgspec.field(default=EMPTY, name="systemPayload")
    copied_from: Origin | None = msgspec.field(default=None, name="forkedFrom")
    agent_id: str | None = msgspec.field(default=None, name="agentId")
    agent_name: str | None = msgspec.field(default=None, name="agentName")


class Message(msgspec.Struct):
    parts: Raw = EMPTY


class Response(msgspec.Struct):
    """The event `qwen-code.api_response`: one answer of the API, of the session or of an agent that it started."""

    name: str = msgspec.field(default="", name="event.name")
    timestamp: str | None = msgspec.field(default=None, name="event.timestamp")
    response_id: str | None = None
    model: str | None = None
    duration_ms: float | None = None
    ttft_ms: float | None = None
    input_token_count: int | None = None
    output_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    total_token_count: int | None = None
    auth_type: str | None = None
    subagent_id: str | None = None
    subagent_name: str | None = None


class Telemetry(msgspec.Struct):
    """`ui_telemetry`."""

    event: Response = msgspec.field(default_factory=Response, name="uiEvent")


class Kind(msgspec.Struct):
    name: str = msgspec.field(default="", name="event.name")


class TelemetryKind(msgspec.Struct):
    """`ui_telemetry` of any kind: only an answer's is decoded further."""

    event: Kind = msgspec.field(default_factory=Kind, name="uiEvent")


class Compression(msgspec.Struct):
    """`chat_compression`: what the history is replaced with."""

    history: list[Raw] | None = msgspec.field(default=None, name="compressedHistory")


RECORD = msgspec.json.Decoder(Record)
MESSAGE = msgspec.json.Decoder(Message | None)
TELEMETRY = msgspec.json.Decoder(Telemetry)
TELEMETRY_KIND = msgspec.json.Decoder(TelemetryKind)
COMPRESSION = msgspec.json.Decoder(Compression | None)
