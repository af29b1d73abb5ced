"""What differs between two recordings, as lines for a terminal and as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cachecost.caches.alignment import first_difference
from cachecost.conversations.editing.diffing import Diff, ItemChange
from cachecost.prompts.blocks import Block, compact

BEFORE, AFTER = 24, 48
"""Characters of an excerpt before and after the first difference."""


def diff_lines(diff: Diff) -> Iterator[str]:
    """The changes, then one line that counts them."""
    for change in diff.changes:
        yield from _change_lines(diff.kind, change)
    yield _summary(diff)


def diff_object(diff: Diff) -> dict[str, Any]:
    """The object of `recording diff --json`."""
    return {
        "format": 1,
        "kind": diff.kind,
        "is_equal": diff.is_equal,
        "calls": {"a": diff.calls[0], "b": diff.calls[1], "equal": diff.equal},
        "notes": diff.notes,
        "changes": list(map(_change_object, diff.changes)),
    }


def _change_lines(kind: str, change: ItemChange) -> Iterator[str]:
    if change.a is None or change.b is None:
        yield f"{kind} {change.b if change.a is None else change.a} is only in {'B' if change.a is None else 'A'}: " + (
            change.description
        )
        return
    where = f"{kind} {change.a}" if change.a == change.b else f"{kind} {change.a} (in B {change.b})"
    yield f"{where}: {_what(change)}"
    excerpts = _excerpts(change.was, change.now)
    for name, block, excerpt in zip("AB", (change.was, change.now), excerpts, strict=True):
        if block is not None:
            yield f"    {name}  {_block_words(block)}{'  ' + excerpt if excerpt else ''}"
    for name, (was, now) in change.fields.items():
        yield f"    {name}: {_value_words(was)} → {_value_words(now)}"


def _what(change: ItemChange) -> str:
    if change.place is None:
        return "the same blocks" if change.fields else "differs in messages without blocks"
    if change.was is not None and change.now is not None:
        return f"{change.place} is the first block that differs"
    return f"{change.place} is the first block that only {'A' if change.now is None else 'B'} has"


def _block_words(block: Block) -> str:
    return f"{block.kind}{', ' + block.role if block.role else ''}, {block.size:,} bytes"


def _value_words(value: Any) -> str:
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else text[:79] + "…"


def _excerpts(was: Block | None, now: Block | None) -> tuple[str, str]:
    """What stands where two blocks begin to differ, as far as there is content."""
    texts = [_text(block) for block in (was, now)]
    first = first_difference(*texts) if all(texts) else 0
    one, other = (_excerpt(text, first) for text in texts)
    return one, other


def _text(block: Block | None) -> str:
    content = block.content if block is not None else None
    return "" if content is None else compact(content).decode("utf-8", "replace")


def _excerpt(text: str, first: int) -> str:
    start, end = max(0, first - BEFORE), first + AFTER
    if not text:
        return ""
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _summary(diff: Diff) -> str:
    only_a = sum(change.b is None for change in diff.changes)
    only_b = sum(change.a is None for change in diff.changes)
    differ = len(diff.changes) - only_a - only_b
    a, b = diff.calls
    return (
        f"{a} {diff.kind}s in A, {b} in B: {diff.equal} equal, {differ} differ, {only_a} only in A, {only_b} only in B"
    )


def _change_object(change: ItemChange) -> dict[str, Any]:
    one, other = _excerpts(change.was, change.now)
    block = {"place": change.place, "a": _block_object(change.was, one), "b": _block_object(change.now, other)}
    return {
        "a": change.a,
        "b": change.b,
        "block": None if change.place is None else block,
        "fields": {name: {"a": was, "b": now} for name, (was, now) in change.fields.items()},
    }


def _block_object(block: Block | None, excerpt: str) -> dict[str, Any] | None:
    if block is None:
        return None
    fields = {"kind": block.kind, "role": block.role, "size": block.size, "counts": dict(block.counts)}
    return {**fields, "excerpt": excerpt or None}
