"""What Cline, Roo Code and Kilo Code store: of each record, the fields that a bill needs.

Read in the sources of Cline 3.89 and 4.1, Roo Code 3.53 and Kilo Code 5.16 (November 2026), and seen in sessions of
Cline's command line 3.0.65. Times are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cachecost.base.limits import is_tokens
from cachecost.base.times import known_time, seconds
from cachecost.providers.usage import Usage

Number = int | float | None
WHOLE_PROMPT_SINCE = seconds("2025-11-01T00:00:00Z")
"""Roo Code 3.29.5 (RooCodeInc/Roo-Code#8954): since then `tokensIn` includes what was read or written, for every
provider; before, for all but those with Anthropic's protocol. Kilo Code followed eleven days later."""
INCLUSIVE = frozenset(
    ("openai", "litellm", "doubao", "fireworks", "hicap", "lmstudio", "qwen", "qwen-code", "xai", "zai")
)
"""Providers whose usage Cline stores as they send it: the input includes what was read."""


class ModelInfo(msgspec.Struct, rename="camel"):
    """The model of a message: of a task of Cline (`modelId`), or of a session of its SDK (`id`)."""

    id: str = ""
    model_id: str = ""
    provider: str = ""
    provider_id: str = ""
    mode: str = ""


class UiMessage(msgspec.Struct, rename="camel"):
    """A message as Cline shows it. Those that say `api_req_started` are calls; `text` is then JSON (`CallInfo`)."""

    ts: Number = None
    type: str = ""
    say: str | None = None
    ask: str | None = None
    text: str | None = None
    partial: bool | None = None
    model_info: ModelInfo | None = None
    conversation_history_deleted_range: list[int] | None = None


class CallInfo(msgspec.Struct, rename="camel"):
    """The usage of a call, filled in when its answer ends. Before that, it has no counts."""

    tokens_in: Number = None
    tokens_out: Number = None
    cache_writes: Number = None
    cache_reads: Number = None
    api_protocol: str | None = None
    request: str | None = None
    cancel_reason: str | None = None
    streaming_failed_message: str | None = None

    @property
    def has_counts(self) -> bool:
        return bool(self.tokens_in or self.tokens_out or self.cache_reads or self.cache_writes)


class ModelUse(msgspec.Struct):
    """Since when a task used which model (`task_metadata.json`)."""

    ts: Number = None
    model_id: str = ""
    model_provider_id: str = ""


class TaskMetadata(msgspec.Struct):
    model_usage: list[ModelUse] = []


class TaskItem(msgspec.Struct, rename="camel"):
    """A task in a list of tasks: Roo Code's `history_item.json`, an entry of Cline's `state/taskHistory.json`."""

    id: str = ""
    workspace: str = ""
    cwd_on_task_initialization: str = ""
    root_task_id: str | None = None
    parent_task_id: str | None = None
    mode: str | None = None
    model_id: str = ""


class SentMessage(msgspec.Struct):
    """A message as it was sent; what is not decoded stays as it is written."""

    role: str = ""
    ts: Number = None
    content: msgspec.Raw = msgspec.Raw(b"")


class SdkMetrics(msgspec.Struct, rename="camel"):
    """The usage of one call in a session of the SDK. The input includes what was read or written."""

    input_tokens: Number = None
    output_tokens: Number = None
    cache_read_tokens: Number = None
    cache_write_tokens: Number = None


class SdkNote(msgspec.Struct, rename="camel"):
    """`kind` is "compaction_summary" for a summary in place of the history."""

    kind: str = ""
    display_only: bool | None = None


class SdkMessage(msgspec.Struct, rename="camel"):
    role: str = ""
    id: str = ""
    ts: Number = None
    content: msgspec.Raw = msgspec.Raw(b"")
    model_info: ModelInfo | None = None
    metrics: SdkMetrics | None = None
    metadata: SdkNote | None = None


class SdkOrigin(msgspec.Struct):
    version: str = ""


class SdkSession(msgspec.Struct, rename="camel"):
    """`agent` is "lead", "subagent" or "teammate"."""

    messages: list[SdkMessage]
    session_id: str = ""
    agent: str = ""
    origin: SdkOrigin | None = None


class SdkTotals(msgspec.Struct):
    """`usage` sums what the calls of the session itself were billed."""

    usage: SdkMetrics | None = None


class SdkManifest(msgspec.Struct):
    """The file of a session beside its messages."""

    cwd: str = ""
    provider: str = ""
    model: str = ""
    metadata: SdkTotals | None = None


def task_usage(info: CallInfo, provider: str, model: str, start: float | None, *, is_roo: bool) -> Usage:
    """The usage of a call of a task in Anthropic's convention. Raises ValueError with what is wrong with a number."""
    told = _count(info.tokens_in, "tokensIn")
    read, write = _count(info.cache_reads, "cacheReads"), _count(info.cache_writes, "cacheWrites")
    includes = _includes_cached(info, provider, model, start) if is_roo else provider in INCLUSIVE
    cached = read + write if includes and told >= read + write else 0
    return Usage(told - cached, read, write, 0, _count(info.tokens_out, "tokensOut"))


def _includes_cached(info: CallInfo, provider: str, model: str, start: float | None) -> bool:
    """Whether `tokensIn` of a call of Roo Code or Kilo Code includes what was read or written."""
    if start is None or start >= WHOLE_PROMPT_SINCE:
        return True
    protocol = info.api_protocol or ("anthropic" if "claude" in model else "openai")
    return protocol != "anthropic"


def sdk_usage(metrics: SdkMetrics) -> Usage:
    """The usage of a call of an SDK session. Raises ValueError with what is wrong with a number."""
    told, output = _count(metrics.input_tokens, "inputTokens"), _count(metrics.output_tokens, "outputTokens")
    read, write = (
        _count(metrics.cache_read_tokens, "cacheReadTokens"),
        _count(metrics.cache_write_tokens, "cacheWriteTokens"),
    )
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
    return None if milliseconds is None else known_time(milliseconds / 1000)
