"""A fast path to the blocks that most of a conversation consists of: texts, thinking, tool calls and their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from cachecost.base.kept_bytes import StoredBytes, keep_bytes, read_bytes
from cachecost.base.structs import identity_struct
from cachecost.prompts.blocks import Block, compact, digest_of, encode_simple
from cachecost.prompts.wire import BREAKPOINT, block_of

KINDS = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_result"})
SPECIAL = frozenset({BREAKPOINT, "citations", "source"})
"""Fields that make a block what only `block_of` can tell; so does a content of several blocks."""
TEXT_KEY, TEXT_OPENING, TEXT_CLOSING = b'"content":"', b'[{"type":"text","text":', b"}]"
"""What is around the text of a tool result where it stands in a block (rule 1)."""
_STORED: Any = Block.__dict__["content"]
WriteSimple = Callable[[Mapping[str, Any]], bytes | None]
"""Writes an object as `compact` does, or not at all."""
PACKED = (bytes, StoredBytes)
_decode = msgspec.json.Decoder().decode


@identity_struct
class PackedBlock(Block):
    """A block as `block_of` makes it of its content, which it keeps as compact JSON (kept_bytes.py): objects take more
    memory.

    `dataclasses.replace` asks for the content, so that what it makes is known to be something else (`packed_content`).
    """

    @property  # type: ignore[misc]
    def content(self) -> Mapping[str, Any] | None:
        """The content, parsed each time that somebody asks."""
        stored = _STORED.__get__(self)
        return _decode(read_bytes(stored)) if type(stored) in PACKED else stored  # type: ignore[no-any-return]


def has_content(block: Block) -> bool:
    """Whether a block has its content. Nothing is parsed to tell."""
    return _STORED.__get__(block) is not None


def packed_content(block: Block) -> bytes | None:
    """The compact JSON from which all of a block follows by `block_of`; None where that is not known."""
    stored = _STORED.__get__(block)
    return read_bytes(stored) if type(stored) in PACKED else None


def plain_block(
    role: str,
    content: Mapping[str, Any],
    keep_content: bool = True,
    write: WriteSimple = encode_simple,
) -> Block:
    """The block of one wire object, the same as that of `block_of`.

    `write` is faster where it is certain that it writes the object as `compact` does (exact_json.py).
    """
    kind = content.get("type")
    if not role or type(kind) is not str or kind not in KINDS or not _is_plain(content):
        return block_of(role, content, keep_content)
    payload = write(content)
    if payload is None:
        return block_of(role, content, keep_content)
    identity = _with_text_in_block(content, payload, write) if kind == "tool_result" else payload
    is_empty = kind == "text" and not content.get("text")
    make: Any = PackedBlock if keep_content else Block
    kept = keep_bytes(payload) if keep_content else None
    block: Block = make(kind, role, digest_of(role, kind, identity), len(payload), kept, is_empty_text=is_empty)
    return block


def _is_plain(content: Mapping[str, Any]) -> bool:
    """Whether an object has no breakpoint, no sub-blocks and no citations."""
    inner = content.get("content")
    return (inner is None or type(inner) is str) and SPECIAL.isdisjoint(content)


def _with_text_in_block(content: Mapping[str, Any], payload: bytes, write: WriteSimple) -> bytes:
    """The JSON of a tool result whose text stands in a block."""
    text = content.get("content")
    if text is None:
        return payload
    if [*content][-1] == "content":  # so no other key can come after it, and quotes in the text itself are escaped
        start = payload.rindex(TEXT_KEY) + len(TEXT_KEY) - 1
        return b"".join((payload[:start], TEXT_OPENING, payload[start:-1], TEXT_CLOSING, b"}"))
    whole = {**content, "content": [{"type": "text", "text": text}]}
    return write(whole) or compact(whole)
