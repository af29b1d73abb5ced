"""The block table of a recording: each block is written once, where it is first used.

A line with content says {"block": 7, "role": "user", "content": {…}}; what `block_of` derives
from role and content (kind, digest, size, flags) is left out unless it differs; "brought" are the definitions of the
deferred tools that the block refers to. A line without content says {"block": 7, "kind": "text", "role": "user",
"digest": 32 hex digits, "size": bytes, "counts": {tokenizer: tokens}, "prose": content kinds}, and
"tokens", "image", "citations", "empty" (a text of no characters) where set. In a recording made with `round_to`,
"size", "tokens" and "counts" are rounded up (content_free.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cachecost.conversations.content_free import ContentFree
from cachecost.conversations.json_object import JsonObject
from cachecost.prompts.blocks import DIGEST_BYTES, NO_COUNTS, Block
from cachecost.prompts.output_format import PLACES, counts_unseen, schema_text
from cachecost.prompts.plain_blocks import PackedBlock, packed_content, plain_block
from cachecost.prompts.wire import ROLES, text_block

PLAIN_FIELDS = frozenset({"block", "role", "content"})
"""Of a block that follows from its content."""
Count = Callable[[Block], tuple[Mapping[str, int], str]]
"""Counts a block's content: (tokens by tokenizer name, content kinds)."""
DEFAULT_PROSE = "text"


@dataclass(slots=True)
class BlockWriter:
    """Numbers blocks from 1. With `free` it writes no content; `count` counts the content before."""

    free: ContentFree | None = None
    count: Count | None = None
    _numbers: dict[tuple[bytes, int], int] = field(default_factory=dict)

    def add(self, blocks: Iterable[Block]) -> tuple[list[int], list[dict[str, Any]]]:
        """The numbers of `blocks`, and the lines of those that were not written before."""
        numbers: list[int] = []
        lines: list[dict[str, Any]] = []
        for block in blocks:
            key = (block.digest, block.size)
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers) + 1
                lines.append({"block": self._numbers[key], **self._fields(block)})
            numbers.append(self._numbers[key])
        return numbers, lines

    def params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Request parameters as written. The token counts of a removed schema stay."""
        if self.free is None:
            return dict(params)
        made: dict[str, Any] = self.free.params(dict(params))
        for place in PLACES:
            wanted, written = _within(params, place), _within(made, place)
            if isinstance(wanted, dict) and wanted.get("schema") is not None:
                self._count_schema(wanted, written, self.free)
        return made

    def _count_schema(self, wanted: Mapping[str, Any], written: dict[str, Any], free: ContentFree) -> None:
        counts = counts_unseen(wanted)
        if counts is not None:
            written.pop(free.word("counts"), None)
        elif self.count:
            counts = self.count(text_block("system", schema_text(wanted["schema"])))[0]
        if counts:
            written["counts"] = dict(sorted(free.counts(counts).items()))

    def _fields(self, block: Block) -> dict[str, Any]:
        if self.free is None and (content := packed_content(block)):
            return {"role": block.role, "content": msgspec.Raw(content)}
        if self.free:
            return _block_fields(block, block.digest, *self._count(block), free=self.free)
        return _block_fields(block, block.digest, block.counts, block.prose, free=None)

    def _count(self, block: Block) -> tuple[Mapping[str, int], str]:
        if block.content is None or block.tokens is not None or self.count is None:
            return block.counts, block.prose
        return self.count(block)


def _within(value: Any, names: Iterable[str]) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _block_fields(
    block: Block, digest: bytes, counts: Mapping[str, int], prose: str, free: ContentFree | None
) -> dict[str, Any]:
    content = None if free else block.content
    base = None if content is None else plain_block(block.role, content)
    size, tokens = (block.size, block.tokens) if free is None else _round(block, free)
    counts, prose = (free.counts(counts), free.prose(prose)) if free else (counts, prose)
    fields: dict[str, Any] = {
        "kind": block.kind if base is None or base.kind != block.kind else None,
        "role": block.role,
        "digest": (free.digest(digest) if free else digest).hex() if base is None or base.digest != digest else None,
        "size": size if base is None or base.size != size else None,
        "tokens": tokens,
        "counts": dict(sorted(counts.items())) or None,
        "prose": prose if prose != DEFAULT_PROSE else None,
        "image": block.has_image if block.has_image != (base is not None and base.has_image) else None,
        "citations": block.has_citations if block.has_citations != (base is not None and base.has_citations) else None,
        "empty": block.is_empty_text if block.is_empty_text != (base is not None and base.is_empty_text) else None,
        "brought": list(block.brought) or None if content is not None else None,
        "content": content,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _round(block: Block, free: ContentFree) -> tuple[int, int | None]:
    return free.size(block.size), None if block.tokens is None else free.size(block.tokens)


class BlockReader:
    """The blocks read so far, by number."""

    def __init__(self) -> None:
        self.blocks: dict[int, Block] = {}

    def add(self, line: JsonObject) -> None:
        """Read a block line. Errors go to its file."""
        number = line.whole("block", required=True)
        if number in self.blocks:
            line.fault("block", f"{number} is already defined")
        block = _block(line)
        self.blocks[number or 0] = block
        line.refuse_unknown_keys()

    def get(self, line: JsonObject, name: str, required: bool = True) -> tuple[Block, ...]:
        """The blocks that field `name` of `line` numbers; one that no earlier line defines is an error."""
        numbers = line.wholes(name, required)
        for number in numbers:
            if number not in self.blocks:
                line.fault(name, f"no line{' before this one' if required else ''} defines block {number}")
        return tuple(self.blocks[number] for number in numbers if number in self.blocks)


def _block(line: JsonObject) -> Block:
    role = line.one_of("role", (*ROLES, ""))
    content = line.mapping("content", required=False) if line.has("content") else None
    base = plain_block(role, content) if content is not None else None
    if isinstance(base, PackedBlock) and PLAIN_FIELDS.issuperset(line.data):
        return base  # as most are; it keeps its content packed
    return Block(
        line.text("kind", base.kind if base else None),
        role,
        _digest(line, base),
        line.whole("size", base.size if base else None, required=base is None) or 0,
        base.content if base else None,
        line.whole("tokens"),
        _counts(line),
        line.text("prose", DEFAULT_PROSE),
        line.flag("image", bool(base and base.has_image)),
        line.flag("citations", bool(base and base.has_citations)),
        line.flag("empty", bool(base and base.is_empty_text)),
        tuple(line.get("brought", "an array of tools", _are_tools, [], required=False)),
    )


def _are_tools(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _digest(line: JsonObject, base: Block | None) -> bytes:
    if base and not line.has("digest"):
        return base.digest
    text = line.get("digest", f"{2 * DIGEST_BYTES} hex digits", _is_digest, "00" * DIGEST_BYTES)
    return bytes.fromhex(text)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == 2 * DIGEST_BYTES and set(value) <= set("0123456789abcdef")


def _counts(line: JsonObject) -> Mapping[str, int]:
    if not line.has("counts"):
        return NO_COUNTS
    counts = JsonObject(line.mapping("counts"), line.faults, line.file, line.line, f"{line.place}counts.")
    return {name: counts.whole(name) or 0 for name in counts.data}
