"""Blocks of a transcript's lines, with the ids that join tool calls and their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cachecost.prompts.blocks import Block, digest_of
from cachecost.prompts.exact_json import ENCODE
from cachecost.prompts.plain_blocks import WriteSimple, plain_block

BYTES_PER_TOKEN = 4
"""Rough: only for blocks without content, and to divide the first call of a chain into head and messages, whose sum is
billed."""


class TranscriptBlock(msgspec.Struct, frozen=True, gc=False):
    """A block, with its own id and that of the tool call that it answers, as far as it has them."""

    block: Block
    id: object = None
    answers: object = None


class BlockMaker:
    """Makes blocks. `write` is certain to write the values of the line as Python's own encoder does, or does not."""

    def __init__(self, keep_content: bool) -> None:
        self.write: WriteSimple = ENCODE
        self._keep_content = keep_content

    def blocks(self, role: str, content: list[Any]) -> list[TranscriptBlock]:
        return [self._block(role, item, self.write) for item in content]

    def _block(self, role: str, item: Any, write: WriteSimple) -> TranscriptBlock:
        """A block of a transcript. A redacted one states its number of characters."""
        if not isinstance(item, dict):
            return TranscriptBlock(plain_block(role, {"type": "text", "text": str(item)}, self._keep_content))
        if "digest" in item and isinstance(item["digest"], str) and isinstance(item.get("chars"), int):
            block = _redacted_block(role, item)
        else:
            block = plain_block(role, item, self._keep_content, write)
        return TranscriptBlock(block, item.get("id"), item.get("tool_use_id"))


def _redacted_block(role: str, item: Mapping[str, Any]) -> Block:
    kind = str(item.get("type") or "text")
    size = item["chars"] + (item.get("signature_chars") or 0)
    return Block(
        kind, role, digest_of(role, kind, item["digest"].encode()), size, tokens=max(1, size // BYTES_PER_TOKEN)
    )
