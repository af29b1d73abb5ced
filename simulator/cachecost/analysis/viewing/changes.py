"""The blocks of a call beside those of the call before: which are the same, which changed, where they first differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from cachecost.analysis.viewing.block_texts import compared_texts
from cachecost.analysis.viewing.blocks import SentBlock, opcodes
from cachecost.caches.alignment import alike, are_versions, first_difference
from cachecost.prompts.blocks import Block, Layer

Change = Literal["same", "changed", "new"]
AROUND = 80
"""Characters shown before the first one that differs, of what differs, and after it."""
MORE = "…"


@dataclass(frozen=True, slots=True)
class BlockChange:
    """What became of a block; `before` is the index of its counterpart in the call before (None: it has none)."""

    change: Change
    before: int | None = None


@dataclass(frozen=True, slots=True)
class CallChanges:
    """A change for each block of a call, and the indices of blocks of the call before that are no longer there."""

    blocks: Sequence[BlockChange]
    gone: Sequence[int]

    @property
    def first_changed(self) -> int | None:
        """The index of the first block that changed."""
        return next((at for at, one in enumerate(self.blocks) if one.change == "changed"), None)


@dataclass(frozen=True, slots=True)
class TextDifference:
    """Where two texts first differ: at character `at`, what was there and what is; `before` and `after` are in both."""

    at: int
    before: str
    was: str
    now: str
    after: str


def compare_blocks(before: Sequence[SentBlock], now: Sequence[SentBlock]) -> CallChanges:
    """The changes from one call to the next. What the provider adds takes no part: it is the same."""
    old = [at for at, one in enumerate(before) if one.block]
    new = [at for at, one in enumerate(now) if one.block]
    found = {at: BlockChange("same") for at, one in enumerate(now) if not one.block}
    kept: set[int] = set()
    for kind, i, j, k, m in opcodes([before[at].digest for at in old], [now[at].digest for at in new]):
        if kind not in ("equal", "replace"):
            continue
        for one, other in zip(old[i:j], new[k:m], strict=False):
            if kind == "equal" or _is_counterpart(before[one], now[other]):
                found[other] = BlockChange("same" if kind == "equal" else "changed", one)
                kept.add(one)
    blocks = [found.get(at, BlockChange("new")) for at in range(len(now))]
    return CallChanges(blocks, [at for at in old if at not in kept])


def _is_counterpart(old: SentBlock, new: SentBlock) -> bool:
    """Whether a block stands for another: a version of it, or what is in its place in tools and system."""
    if old.block is None or new.block is None or old.layer is not new.layer:
        return False
    is_head = new.layer is not Layer.MESSAGES and (old.block.kind, old.block.role) == (new.block.kind, new.block.role)
    return is_head or are_versions(old.block, new.block, new.layer)


def first_text_difference(old: Block, new: Block, layer: Layer) -> TextDifference | None:
    """Where the texts of two blocks first differ; None without content."""
    texts = compared_texts(old, new, layer)
    if texts is None:
        return None
    was, now = texts
    at = first_difference(was, now)
    shared = alike(was, now) - at
    lost, added = was[at : len(was) - shared], now[at : len(now) - shared]
    after = now[len(now) - shared :][:AROUND] if max(len(lost), len(added)) <= AROUND else ""
    return TextDifference(at, now[max(0, at - AROUND) : at], _cut(lost), _cut(added), after)


def _cut(text: str) -> str:
    return text if len(text) <= AROUND else text[:AROUND] + MORE
