"""Removes content: keyed digests replace everything that a person or a model wrote.

The key is derived from the source and is stored nowhere. The same source always gives the same digests, and without the
sources nobody can tell whether two recordings contain the same text. With a user's own key (`key_from`), its owner can
match the texts of several recordings.

Exact sizes and token counts can identify a known text. Rounding up to a multiple prevents that: each block then seems
up to `round_to - 1` bytes and tokens longer, and predictions are too high by as much per block (exact zeros stay).
Bills stay exact, so the length of whole prompts is known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.limits import FILE, read_whole
from cachecost.conversations.input_files import open_input
from cachecost.conversations.model import Inquiry
from cachecost.prompts.blocks import DIGEST_BYTES, compact
from cachecost.prompts.prose_shares import main_kind

ANSWER_TYPES = frozenset({"boolean", "select", "text", "number", "string"})
# Parameter names and values of the Messages API; any other word may be somebody's own.
# fmt: off
KNOWN_KEYS = frozenset({
    "tool_choice", "type", "name", "disable_parallel_tool_use", "thinking", "budget_tokens", "display",
    "output_config", "effort", "format", "schema", "task_budget", "total", "remaining", "output_format", "speed",
    "container", "skills", "skill_id", "version", "inference_geo", "max_tokens", "temperature", "top_p", "top_k",
    "stream", "service_tier", "context_management", "edits", "betas", "keep", "trigger", "value", "clear_at_least",
    "clear_tool_inputs", "verbosity", "parallel_tool_calls", "prompt_cache_key", "cache_salt", "extra_key", "user_id",
    "anthropic_beta", "thread", "previous_message_id", "compaction", "instructions", "instruction_blocks",
})
KNOWN_WORDS = frozenset({
    "message", "compaction", "advisor_message", "fallback_message", "clear_thinking_20251015", "all",
    "clear_tool_uses_20250919", "compact_20260112", "thinking_turns", "tool_uses", "input_tokens",
    "auto", "any", "tool", "none", "enabled", "disabled", "adaptive", "summarized", "omitted", "low", "medium",
    "high", "xhigh", "max", "json_schema", "tokens", "fast", "standard", "priority", "standard_only", "global",
    "us", "flex", "default", "custom", "anthropic", "latest", "context-1m-2025-08-07", "context-management-2025-06-27",
    "extended-cache-ttl-2025-04-11", "interleaved-thinking-2025-05-14", "structured-outputs-2025-11-13",
    "create", "continue", "summarize",
})
# fmt: on
TOOL_REFUSED = re.compile(
    r"Tool '(.*)' cannot (have both defer_loading=true and cache_control set\. "
    r"Tools with defer_loading cannot use prompt caching\.)",
    re.DOTALL,
)
BODY_REFUSED = re.compile(
    r"(?:tools|system|messages)(?:\.(?:\d+|content|source|text|thinking|redacted_thinking|cache_control))*: "
    r"(?:Extra inputs are not permitted|cache_control cannot be set for empty text blocks)"
)
LENGTHS = re.compile(r"cl100k|ctok-.*|unseen|sealed")
"""The counts of a block that are lengths: tokens by tokenizer, and bytes that only a signature or a file holds."""


def key_of(path: Path) -> bytes:
    """The key for a source's digests: a digest of all its bytes. Raises InputError if it cannot be read."""
    with open_input(path) as stream:
        return file_digest(stream, lambda: blake2b(digest_size=32, person=b"recording key")).digest()


def key_from(path: Path) -> bytes:
    """The key from a user's own file: a digest of its bytes, packed or not, as hard to guess as they are.

    It differs from the key that `key_of` derives from the same file. Raises InputError: unreadable, or empty.
    """
    data = read_whole(path, FILE.value())
    if not data:
        raise InputError([Fault(str(path), "expected a key, which may be any bytes; the file is empty")])
    return blake2b(data, digest_size=32, person=b"key of a user").digest()


@dataclass(frozen=True, slots=True)
class ContentFree:
    """Replaces words by digests under `key` (1 to 64 bytes). Equal words stay equal; nothing else is kept.

    Sizes and token counts of blocks are rounded up to multiples of `round_to`; 1 leaves them exact.
    """

    key: bytes
    round_to: int = 1

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= 64:
            raise ValueError(f"key of {len(self.key)} bytes: expected 1 to 64, e.g. key_of(source)")
        if self.round_to < 1:
            raise ValueError(f"round_to={self.round_to}: expected a whole number from 1")

    def size(self, number: int) -> int:
        """A length in bytes or tokens, rounded up."""
        return -(-number // self.round_to) * self.round_to

    def counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """The counts of a block: lengths rounded up; how many parameters, pages … it has, and of what size, stays."""
        return {name: self.size(number) if LENGTHS.fullmatch(name) else number for name, number in counts.items()}

    def prose(self, prose: str) -> str:
        """The content kinds of a block; where lengths are rounded, the largest alone, as shares tell a text too."""
        return prose if self.round_to == 1 else main_kind(prose)

    def digest(self, digest: bytes) -> bytes:
        """A block's identity, under the key."""
        return blake2b(digest, key=self.key, digest_size=DIGEST_BYTES, person=b"block").digest()

    def word(self, text: str) -> str:
        """Stands for `text`: "~" and 16 hex digits. Empty stays empty."""
        data = text.encode("utf-8", "surrogatepass")
        return "~" + blake2b(data, key=self.key, digest_size=8, person=b"word").hexdigest() if text else ""

    def answer_type(self, inquiry: Inquiry) -> str:
        return inquiry.answer_type if inquiry.answer_type in ANSWER_TYPES else self.word(inquiry.answer_type)

    def params(self, value: Any) -> Any:
        """Request parameters: the API's own words and numbers stay, all else becomes digests."""
        if isinstance(value, dict):
            return dict(self._pair(key, inner) for key, inner in value.items())
        if isinstance(value, list):
            return [self.params(inner) for inner in value]
        if isinstance(value, str) and value not in KNOWN_WORDS:
            return self.word(value)
        return value

    def fault(self, text: str) -> str:
        """The API's error for a body: its own words stay, the name of a tool does not."""
        if named := TOOL_REFUSED.fullmatch(text):
            return f"Tool '{self.word(named[1])}' cannot {named[2]}"
        return text if BODY_REFUSED.fullmatch(text) else self.word(text)

    def _pair(self, key: str, value: Any) -> tuple[str, Any]:
        if key in KNOWN_KEYS and (key != "schema" or value is None):
            return key, self.params(value)
        hidden = self.word(compact({"": value}).decode("utf-8", "surrogatepass"))
        return (key if key in KNOWN_KEYS else self.word(key)), hidden
