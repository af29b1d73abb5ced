"""opencode's records as it stores them: of each, the fields that a bill needs.

Seen in opencode 1.18.33, and read in its source (session/message-v2.ts, session/session.ts) and in that of 0.6 to 1.2.
Times are milliseconds since the epoch. `tokens.input` leaves out what was read or written (since 0.3; cache writes of
providers other than Anthropic, Bedrock and Vertex were not kept before 2026).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from cachecost.base.limits import is_tokens
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
