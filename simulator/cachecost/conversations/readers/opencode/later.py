"""Messages of opencode 2: rows of `session_message`, whose role is the column `type`, in the form of earlier ones.

Read in opencode 1.18.33, which has the table and does not fill it yet, and in what others read of version 2 (August
to October 2026); no session of version 2 was at hand. An answer has its model as an object and its parts in `content`;
`output` leaves reasoning out. A row of type "compaction" holds the summary, whose call is not stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cachecost.base.limits import json_value
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.conversations.readers.opencode.records import (
    MessageRecord,
    ModelChoice,
    PartRecord,
    RecordTimes,
    StepTokens,
    StoredMessage,
    StoredPart,
    ToolState,
    wire_name,
)

TABLE = "session_message"
ROLES = {"user": "user", "synthetic": "user", "assistant": "assistant", "compaction": "compaction"}
"""The role of a row by its type; rows of other types (switches of agent and model, shell …) are left out."""


class LaterModel(msgspec.Struct, rename=wire_name):
    id: str = ""
    provider_id: str = ""
    variant: str | None = None


class LaterTimes(msgspec.Struct):
    created: int | float | None = None
    completed: int | float | None = None
    pruned: int | float | None = None


class LaterPart(msgspec.Struct):
    type: str = ""
    time: LaterTimes | None = None


class LaterMessage(msgspec.Struct):
    """The fields of all types of rows that matter."""

    time: LaterTimes = msgspec.field(default_factory=LaterTimes)
    tokens: StepTokens | None = None
    model: LaterModel | None = None
    agent: str | None = None
    text: str = ""
    summary: str = ""
    content: list[msgspec.Raw] = []
    error: msgspec.Raw = msgspec.Raw(b"")


def message_of(row_id: str, kind: str, later: LaterMessage, *, with_content: bool) -> StoredMessage:
    """A row as a message of the earlier form. Raises msgspec.DecodeError, or ValueError beyond a limit."""
    record = MessageRecord(ROLES[kind], id=row_id, agent=later.agent, error=later.error)
    record.time = RecordTimes(created=later.time.created, completed=later.time.completed)
    if later.model:
        record.model_id, record.provider_id, record.variant = (
            later.model.id,
            later.model.provider_id,
            later.model.variant,
        )
        record.model = ModelChoice(later.model.provider_id, later.model.id, later.model.variant)
    if later.tokens:
        record.tokens = _with_total(later.tokens)
    message = StoredMessage(row_id, record)
    if kind != "assistant":
        message.parts.append(_text_part(later.text or later.summary, is_synthetic=kind != "user"))
    for number, raw in enumerate(later.content):
        message.parts.append(_part(number, bytes(raw), with_content=with_content))
    return message


def _with_total(tokens: StepTokens) -> StepTokens:
    """The usage with the total that shows that reasoning is apart from the output."""
    counts = tokens.input, tokens.output, tokens.reasoning, tokens.cache.read, tokens.cache.write
    tokens.total = sum(count or 0 for count in counts)
    return tokens


def _text_part(text: str, *, is_synthetic: bool) -> StoredPart:
    raw = msgspec.json.encode({"type": "text", "text": text})
    return StoredPart(PartRecord("text", id="000000", synthetic=is_synthetic), len(raw), raw)


def _part(number: int, raw: bytes, *, with_content: bool) -> StoredPart:
    told = msgspec.json.decode(raw, type=LaterPart)
    record = PartRecord(told.type, id=f"{number:06}")
    if told.type == "tool":
        times = told.time or LaterTimes()
        record.state = ToolState(time=RecordTimes(end=times.completed, compacted=times.pruned))
    return StoredPart(record, len(raw), _earlier(raw) if with_content else b"")


def _earlier(raw: bytes) -> bytes:
    """The JSON of a part in the earlier form: a tool has other names."""
    data = object_or_empty(json_value(raw))
    if data.get("type") != "tool":
        return raw
    state = object_or_empty(data.get("state"))
    told = {"status": state.get("status"), "input": state.get("input"), "output": _output(state)}
    made = {"type": "tool", "tool": data.get("name"), "callID": data.get("id")}
    return msgspec.json.encode({**made, "state": {**told, "error": str(state.get("error") or "")}})


def _output(state: Mapping[str, Any]) -> str:
    content = state.get("content")
    texts = [block.get("text") for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))
