"""opencode's records as it stores them: of each, the fields that a bill needs.

Seen in opencode 1.18.33, and read in its source (session/message-v2.ts, session/session.ts) and in that of 0.6 to 1.2.
Times are milliseconds since the epoch. `tokens.input` leaves out what was read or written (since 0.3; cache writes of
providers other than Anthropic, Bedrock and Vertex were not kept before 2026).

The content of opencode's parts as blocks of the Messages API.

Messages of opencode 2: rows of `session_message`, whose role is the column `type`, in the form of earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cachecost.base.limits import is_tokens, json_value
from cachecost.conversations.readers.common.json_values import object_or_empty
from cachecost.providers.hosts import parse_model_name
from cachecost.providers.usage import Usage

Number = int | float | None


def wire_name(name: str) -> str:
    """ "session_id" -> "sessionID"."""
    head, _, end = name.partition("_id")
    return f"{head}ID" if head and not end and name.endswith("_id") else name


class CacheTokens(msgspec.Struct):
    read: Number = None
    write: Number = None


class StepTokens(msgspec.Struct):
    """The usage of a message or of one step. `total` is there since 1.2."""

    input: Number = None
    output: Number = None
    reasoning: Number = None
    cache: CacheTokens = msgspec.field(default_factory=CacheTokens)
    total: Number = None


class RecordTimes(msgspec.Struct):
    """`compacted` is when the output of a tool was cleared (pruning)."""

    created: Number = None
    completed: Number = None
    start: Number = None
    end: Number = None
    compacted: Number = None


class ModelChoice(msgspec.Struct, rename=wire_name):
    provider_id: str = ""
    model_id: str = ""
    variant: str | None = None


class WorkingFolder(msgspec.Struct):
    cwd: str = ""


class MessageRecord(msgspec.Struct, rename=wire_name):
    """A message without its parts. An assistant message is one call; before 1.0 it could be several, one a step."""

    role: str
    id: str = ""
    session_id: str = ""
    time: RecordTimes = msgspec.field(default_factory=RecordTimes)
    tokens: StepTokens | None = None
    model_id: str = ""
    provider_id: str = ""
    agent: str | None = None
    mode: str | None = None
    variant: str | None = None
    model: ModelChoice | None = None
    path: WorkingFolder | None = None
    summary: msgspec.Raw = msgspec.Raw(b"")
    error: msgspec.Raw = msgspec.Raw(b"")

    @property
    def is_summary(self) -> bool:
        """Whether it is the answer to a compaction. (A user message has an object here.)"""
        return bytes(self.summary) == b"true"

    @property
    def has_error(self) -> bool:
        return bytes(self.error) not in (b"", b"null")

    @property
    def effort(self) -> str:
        return self.variant or (self.model.variant if self.model else None) or ""


class ToolState(msgspec.Struct):
    status: str = ""
    time: RecordTimes | None = None


class PartRecord(msgspec.Struct, rename=wire_name):
    """A part of a message: text, reasoning, tool, step-finish, compaction …"""

    type: str
    id: str = ""
    message_id: str = ""
    session_id: str = ""
    tokens: StepTokens | None = None
    state: ToolState | None = None
    synthetic: bool | None = None


class SessionRecord(msgspec.Struct, rename=wire_name):
    """A session: a conversation with a person, or a sub-agent's (`parentID`).

    `tokens` are all that its calls were billed, as it counts them itself (since 1.16; 0: unknown).
    """

    id: str
    directory: str = ""
    parent_id: str | None = None
    version: str = ""
    time: RecordTimes = msgspec.field(default_factory=RecordTimes)
    project_id: str = ""
    tokens: int = 0


@dataclass(slots=True, eq=False)
class StoredPart:
    """A part, its size in bytes, and its JSON where content is wanted."""

    record: PartRecord
    size: int
    raw: bytes = b""


@dataclass(slots=True, eq=False)
class StoredMessage:
    id: str
    record: MessageRecord
    parts: list[StoredPart] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class StoredSession:
    record: SessionRecord
    messages: list[StoredMessage] = field(default_factory=list)

    @property
    def created(self) -> float:
        first = self.messages[0].record.time.created if self.messages else None
        return float(self.record.time.created or first or 0)


def usage_of(tokens: StepTokens, model: str) -> Usage:
    """The usage in Anthropic's convention. Raises ValueError with what is wrong with a number."""
    counted = _count(tokens.input, "input"), _count(tokens.cache.read, "cache.read")
    write, output = _count(tokens.cache.write, "cache.write"), _count(tokens.output, "output")
    reasoning = _count(tokens.reasoning, "reasoning")
    is_apart = reasoning and _is_reasoning_apart(tokens.total, sum(counted) + write + output, output, reasoning, model)
    return Usage(*counted, write, 0, output + reasoning if is_apart else output)


def _is_reasoning_apart(total: Number, others: int, output: int, reasoning: int, model: str) -> bool:
    """Whether the output leaves the reasoning out: so it does since April 2026 (anomalyco/opencode#21047).

    Before, it held what the provider's output did: Gemini's left it out. The total shows it, where there is one.
    """
    if total == others:
        return False
    return total == others + reasoning or reasoning > output or "gemini" in model.lower()


def _count(number: Number, name: str) -> int:
    """A count of tokens. A negative one is of versions that subtracted cached tokens from an input without them: 0."""
    if number is None or (isinstance(number, int) and not isinstance(number, bool) and number < 0):
        return 0
    whole = int(number) if isinstance(number, float) and number.is_integer() else number
    if not is_tokens(whole):
        raise ValueError(f"tokens.{name}: expected a whole number of tokens; got {number!r}")
    return whole


def model_of(record: MessageRecord) -> tuple[str, str | None]:
    """(model, host) of an assistant message."""
    return parse_model_name(record.model_id, record.provider_id)


Body = dict[str, Any]


def user_blocks(parts: Iterable[StoredPart]) -> list[Body]:
    """The texts and images of a user message. Raises ValueError where the JSON of a part is beyond a limit."""
    found = []
    for part in parts:
        data = _data(part)
        if part.record.type == "text" and not data.get("ignored"):
            found.append({"type": "text", "text": str(data.get("text") or "")})
        elif part.record.type == "file" and (image := _image(data)):
            found.append(image)
    return found


def answer_blocks(parts: Iterable[StoredPart]) -> list[Body]:
    """Thinking, text and tool calls of an assistant message. Raises ValueError as `user_blocks`."""
    found = []
    for part in parts:
        data = _data(part)
        if part.record.type == "text":
            found.append({"type": "text", "text": str(data.get("text") or "")})
        elif part.record.type == "reasoning":
            found.append(_thinking(data))
        elif part.record.type == "tool":
            state = object_or_empty(data.get("state"))
            told: Body = {"name": str(data.get("tool") or ""), "input": object_or_empty(state.get("input"))}
            found.append({"type": "tool_use", "id": str(data.get("callID") or ""), **told})
    return found


def result_blocks(parts: Iterable[StoredPart]) -> list[Body]:
    """The results of the tools that an assistant message called. Raises ValueError as `user_blocks`."""
    return [_result(_data(part)) for part in parts if part.record.type == "tool"]


def _data(part: StoredPart) -> Mapping[str, Any]:
    return object_or_empty(json_value(part.raw)) if part.raw else {}


def _thinking(data: Mapping[str, Any]) -> Body:
    metadata = object_or_empty(data.get("metadata"))
    signature = object_or_empty(metadata.get("anthropic")).get("signature")
    return {"type": "thinking", "thinking": str(data.get("text") or ""), "signature": str(signature or "")}


def _result(data: Mapping[str, Any]) -> Body:
    state = object_or_empty(data.get("state"))
    made: Body = {"type": "tool_result", "tool_use_id": str(data.get("callID") or "")}
    if state.get("status") == "error":
        return {**made, "content": str(state.get("error") or ""), "is_error": True}
    return {**made, "content": str(state.get("output") or "")}


def _image(data: Mapping[str, Any]) -> Body | None:
    kind, _, rest = str(data.get("url") or "").partition(";base64,")
    if not rest or not kind.startswith("data:image/"):
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": kind.removeprefix("data:"), "data": rest}}


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
        counts = (
            later.tokens.input,
            later.tokens.output,
            later.tokens.reasoning,
            later.tokens.cache.read,
            later.tokens.cache.write,
        )
        later.tokens.total = sum(count or 0 for count in counts)
        record.tokens = later.tokens
    message = StoredMessage(row_id, record)
    if kind != "assistant":
        message.parts.append(_text_part(later.text or later.summary, is_synthetic=kind != "user"))
    for number, raw in enumerate(later.content):
        message.parts.append(_part(number, bytes(raw), with_content=with_content))
    return message


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
