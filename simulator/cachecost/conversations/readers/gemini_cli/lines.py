"""The records of a session file of Gemini CLI, decoded as far as a bill needs them. Content stays undecoded."""

from __future__ import annotations

from typing import Any

import msgspec

Raw = msgspec.Raw
EMPTY = Raw(b"null")


class ToolCall(msgspec.Struct):
    timestamp: str | None = None


class Message(msgspec.Struct):
    """A message: `type` is user, gemini, info, warning or error; only gemini has a model and tokens."""

    id: str = ""
    timestamp: str | None = None
    type: str = ""
    content: Raw = EMPTY
    tokens: dict[str, Any] | None = None
    model: str | None = None
    thoughts: Raw = EMPTY
    tool_calls: Raw = msgspec.field(default=EMPTY, name="toolCalls")


class Update(msgspec.Struct):
    """`$set`: changed metadata; with `messages`, all messages that are left; with a session id, it was resumed."""

    messages: list[Raw] | None = None
    session_id: str | None = msgspec.field(default=None, name="sessionId")


class Record(msgspec.Struct):
    """A line: the head of the session, a message, or a change. A file of one JSON value is a head with messages."""

    id: str = ""
    session_id: str | None = msgspec.field(default=None, name="sessionId")
    project_hash: str | None = msgspec.field(default=None, name="projectHash")
    kind: str | None = None
    directories: list[str] | None = None
    messages: list[Raw] | None = None
    update: Update | None = msgspec.field(default=None, name="$set")
    rewind_to: str | None = msgspec.field(default=None, name="$rewindTo")


RECORD = msgspec.json.Decoder(Record)
MESSAGE = msgspec.json.Decoder(Message)
TOOL_CALLS = msgspec.json.Decoder(list[ToolCall] | None)
