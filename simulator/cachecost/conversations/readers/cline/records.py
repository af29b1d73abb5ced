"""What Cline, Roo Code and Kilo Code store: of each record, the fields that a bill needs.

Read in the sources of Cline 3.89 and 4.1, Roo Code 3.53 and Kilo Code 5.16 (November 2026), and seen in sessions of
Cline's command line 3.0.65. Times are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cachecost.base.limits import is_tokens
from cachecost.base.times import seconds
from cachecost.providers.usage import Usage

Number = int | float | None
WHOLE_PROMPT_SINCE = seconds("2025-11-01T00:00:00Z")
"""Roo Code 3.29.5 (RooCodeInc/Roo-Code#8954): since then `tokensIn` includes what was read or written, for every
provider; before, for all but those with Anthropic's protocol. Kilo Code followed eleven days later."""
INCLUSIVE = frozenset(
    ("openai", "litellm", "doubao", "fireworks", "hicap", "lmstudio", "qwen", "qwen-code", "xai", "zai")
)
"""Providers whose usage Cline stores as they send it: the input includes what was read."""


class ModelInfo(msgspec.Struct):
    """The model of a message: of a task of Cline (`modelId`), or of a session of its SDK (`id`)."""

    id: str = ""
    modelId: str = ""
    provider: str = ""
    providerId: str = ""
    mode: str = ""


class UiMessage(msgspec.Struct):
    """A message as Cline shows it. Those that say `api_req_started` are calls; `text` is then JSON (`CallInfo`)."""

    ts: Number = None
    type: str = ""
    say: str | None = None
    ask: str | None = None
    text: str | None = None
    partial: bool | None = None
    modelInfo: ModelInfo | None = None
    conversationHistoryDeletedRange: list[int] | None = None


class CallInfo(msgspec.Struct):
    """The usage of a call, filled in when its answer ends. Before that, it has no counts."""

    tokensIn: Number = None
    tokensOut: Number = None
    cacheWrites: Number = None
    cacheReads: Number = None
    apiProtocol: str | None = None
    request: str | None = None
    cancelReason: str | None = None
    streamingFailedMessage: str | None = None

    @property
    def has_counts(self) -> bool:
        return bool(self.tokensIn or self.tokensOut or self.cacheReads or self.cacheWrites)


class ModelUse(msgspec.Struct):
    """Since when a task used which model (`task_metadata.json`)."""

    ts: Number = None
    model_id: str = ""
    model_provider_id: str = ""


class TaskMetadata(msgspec.Struct):
    model_usage: list[ModelUse] = []


class TaskItem(msgspec.Struct):
    """A task in a list of tasks: Roo Code's `history_item.json`, an entry of Cline's `state/taskHistory.json`."""

    id: str = ""
    workspace: str = ""
    cwdOnTaskInitialization: str = ""
    rootTaskId: str | None = None
    parentTaskId: str | None = None
    mode: str | None = None
    modelId: str = ""


class SentMessage(msgspec.Struct):
    """A message as it was sent; what is not decoded stays as it is written."""

    role: str = ""
    ts: Number = None
    content: msgspec.Raw = msgspec.Raw(b"")


class SdkMetrics(msgspec.Struct):
    """The usage of one call in a session of the SDK. The input includes what was read or written."""

    inputTokens: Number = None
    outputTokens: Number = None
    cacheReadTokens: Number = None
    cacheWriteTokens: Number = None


class SdkNote(msgspec.Struct):
    """`kind` is "compaction_summary" for a summary in place of the history."""

    kind: str = ""
    displayOnly: bool | None = None


class SdkMessage(msgspec.Struct):
    role: str = ""
    id: str = ""
    ts: Number = None
    content: msgspec.Raw = msgspec.Raw(b"")
    modelInfo: ModelInfo | None = None
    metrics: SdkMetrics | None = None
    metadata: SdkNote | None = None


class SdkOrigin(msgspec.Struct):
    version: str = ""


class SdkSession(msgspec.Struct):
    """`agent` is "lead", "subagent" or "teammate"."""

    messages: list[SdkMessage]
    sessionId: str = ""
    agent: str = ""
    origin: SdkOrigin | None = None


class SdkManifest(msgspec.Struct):
    """The file of a session beside its messages."""

    cwd: str = ""
    provider: str = ""
    model: str = ""


def task_usage(info: CallInfo, provider: str, model: str, start: float | None, *, is_roo: bool) -> Usage:
    """The usage of a call of a task in Anthropic's convention. Raises ValueError with what is wrong with a number."""
    told = _count(info.tokensIn, "tokensIn")
    read, write = _count(info.cacheReads, "cacheReads"), _count(info.cacheWrites, "cacheWrites")
    includes = _includes_cached(info, provider, model, start) if is_roo else provider in INCLUSIVE
    cached = read + write if includes and told >= read + write else 0
    return Usage(told - cached, read, write, 0, _count(info.tokensOut, "tokensOut"))


def _includes_cached(info: CallInfo, provider: str, model: str, start: float | None) -> bool:
    """Whether `tokensIn` of a call of Roo Code or Kilo Code includes what was read or written."""
    if start is None or start >= WHOLE_PROMPT_SINCE:
        return True
    protocol = info.apiProtocol or ("anthropic" if "claude" in model else "openai")
    return protocol != "anthropic"


def sdk_usage(metrics: SdkMetrics) -> Usage:
    """The usage of a call of an SDK session. Raises ValueError with what is wrong with a number."""
    told, output = _count(metrics.inputTokens, "inputTokens"), _count(metrics.outputTokens, "outputTokens")
    read, write = _count(metrics.cacheReadTokens, "cacheReadTokens"), _count(metrics.cacheWriteTokens, "cacheWriteTokens")
    if told < read + write:
        raise ValueError(f"inputTokens: expected at least the {read + write} tokens read and written; got {told}")
    return Usage(told - read - write, read, write, 0, output)


def _count(number: Number, name: str) -> int:
    found: Any = 0 if number is None else number
    whole = int(found) if isinstance(found, float) and found.is_integer() else found
    if not is_tokens(whole):
        raise ValueError(f"{name}: expected a whole number of tokens; got {number!r}")
    return whole


def to_seconds(milliseconds: Number) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
