"""Bodies of probes: dicts of readable filler."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from tools.probes.harness import ProbeRun

Body = dict[str, Any]
FILLER = ("the", "river", "runs", "past", "an", "old", "stone", "house")
SAMPLE = 256
BREAKPOINTS = {"5m": {"type": "ephemeral"}, "1h": {"type": "ephemeral", "ttl": "1h"}}
ASK = "Say ok."
SPARE = 32
"""Tokens above the minimum, so that a prefix is certainly cached."""


def filler(words: int) -> str:
    """Filler of `words` words."""
    return " ".join(FILLER[number % len(FILLER)] for number in range(words))


def text(words: str, ttl: str | None = None) -> Body:
    """A text block, with a breakpoint if a TTL is given."""
    return with_breakpoint({"type": "text", "text": words}, ttl)


def with_breakpoint(block: Body, ttl: str | None) -> Body:
    return {**block, "cache_control": BREAKPOINTS[ttl]} if ttl else block


def user(*blocks: Body) -> Body:
    return {"role": "user", "content": list(blocks)}


def asking(words: str = ASK) -> Body:
    """A body of one short question and nothing else."""
    return {"messages": [user(text(words))]}


async def words_for(probe_run: ProbeRun, tokens: int) -> int:
    """How many words of filler have at least `tokens` tokens, by the model's count of a sample."""
    empty = await probe_run.count(asking())
    whole = await probe_run.count(asking(f"{ASK} {filler(SAMPLE)}"))
    return ceil(tokens * SAMPLE / max(1, whole - empty)) + len(FILLER)


async def prefix_words(probe_run: ProbeRun) -> int:
    """Words of filler that certainly reach the assumed minimum."""
    return await words_for(probe_run, probe_run.priced.minimum + SPARE)


def body_with_prefix(head: str, ttl: str | None, asked: str = ASK, **fields: Any) -> Body:
    """A body whose cacheable prefix is one system text."""
    return {"system": [text(head, ttl)], "messages": [user(text(asked))], **fields}


def tool(description: str, ttl: str | None = None) -> Body:
    schema: Mapping[str, Any] = {"type": "object", "properties": {}}
    return with_breakpoint({"name": "note", "description": description, "input_schema": schema}, ttl)
