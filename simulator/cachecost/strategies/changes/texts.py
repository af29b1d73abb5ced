"""Blocks as text: what a protocol without tools, or a history that is told anew, makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cachecost.prompts.blocks import Block, compact, digest_of
from cachecost.prompts.wire import text_block
from cachecost.strategies.changes.base import BYTES_PER_TOKEN, estimate_tokens

IMAGES = frozenset({"image", "document"})


def in_one_text(role: str, blocks: Sequence[Block]) -> Block:
    """One text block that says what `blocks` say, as JSON, images left out.

    Without content it has as many tokens as they have. Where some are given and some counted, all are estimated.
    """
    if all(block.tokens is None and block.content is not None for block in blocks):
        return text_block(role, "\n".join(compact(_without_images(block.content or {})).decode() for block in blocks))
    digest = digest_of(role, "text", b"as text:" + b"".join(block.digest for block in blocks))
    if any(block.tokens is not None or block.content is not None for block in blocks):
        tokens = sum(map(estimate_tokens, blocks))
        return Block("text", role, digest, tokens * BYTES_PER_TOKEN, tokens=tokens)
    return Block("text", role, digest, sum(block.size for block in blocks), counts=_counts(blocks))


def _counts(blocks: Sequence[Block]) -> dict[str, int]:
    """The counts that all of them have."""
    names = set.intersection(*(set(block.counts) for block in blocks)) if blocks else set()
    return {name: sum(block.counts[name] for block in blocks) for name in sorted(names)}


def _without_images(content: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = content.get("content")
    if not isinstance(inner, list):
        return content
    return {**content, "content": [sub for sub in inner if not (isinstance(sub, dict) and sub.get("type") in IMAGES)]}
