"""A change of a prompt since an earlier call: what is unchanged behind it, and what of that was paid for again."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache

from cachecost.base.structs import value
from cachecost.caches.alignment import ALIKE, ancestor, are_versions, common, path, share_alike, unchanged
from cachecost.caches.lineage import EarlierCall
from cachecost.prompts.blocks import Block, Layer, Part, Prefix
from cachecost.prompts.plain_blocks import has_content
from cachecost.prompts.request import Request
from cachecost.prompts.sizes import PrefixSizes

SHARED = 0.25
"""The share of what follows a change that must be unchanged, where all of it is text of people."""
ALIKE_STATIC = 0.9
"""The share of a block of the static prefix that must match for two conversations to have one static prefix."""
LONG_TEXT = 1000
"""Bytes of a text of which two conversations may share a part that is worth caching."""
ALIKE_BYTES = 2
"""Without content, by so many bytes at most its size may differ."""


@value
class ContentChange:
    """A change since an earlier call. `was` and `now` are what follows the common prefix, `kept` is unchanged of it."""

    before: EarlierCall
    was: list[Prefix]
    now: list[Prefix]
    kept: list[Prefix]

    @property
    def end(self) -> Prefix:
        """The last prefix that would have been read."""
        return self.kept[-1]

    def tokens(self, read: Prefix | None, sizes: PrefixSizes) -> int:
        """Tokens that were sent before: all after `read` up to the change, and what is unchanged behind it."""
        depth, parted = read.depth if read else 0, self.now[0].parent
        before = tokens_between(read, parted, sizes) if parted and parted.depth > depth else 0
        return before + _tokens_of([node for node in self.kept if node.depth > depth], sizes)

    def is_loss(self, depth: int, read: Prefix | None, sizes: PrefixSizes) -> bool:
        """Whether what is unchanged beyond `depth` is more than texts of people that happen to be alike."""
        kept = [node for node in self.kept if node.depth > depth]
        if not kept or any(_is_distinct(node) for node in kept):
            return bool(kept)
        return _tokens_of(kept, sizes) >= SHARED * tokens_between(read, self.end, sizes)

    def first_pair(self, depth: int) -> tuple[Prefix, Prefix | None]:
        """The first blocks that differ; if only a parameter changed, the first one beyond `depth`."""
        for old, new in zip(self.was, self.now, strict=False):
            if old.block and new.block and old.block.digest != new.block.digest:
                return new, old
        return next((node for node in self.now if node.depth > depth), self.now[0]), None


def find_change_since(before: EarlierCall, last: Prefix) -> ContentChange | None:
    """What changed on the way to `last` since an earlier call cached its prompt; None: nothing, or nothing is left."""
    if before.entry is None:
        return None
    parted = common(before.entry, last)
    if parted is before.entry or parted is last:
        return None
    depth = parted.depth if parted else 0
    was, now = path(before.entry, depth), path(last, depth)
    kept = unchanged(was, now)
    return ContentChange(before, was, now, kept) if kept else None


@value
class SharedContent:
    """What two conversations send behind the first block in which they differ. `was` and `now` follow what they begin
    with, up to the end of the first message, `kept` are those of `now` that both send; `tokens` of these are the same.
    """

    was: list[Prefix]
    now: list[Prefix]
    kept: list[Prefix]
    tokens: int


def find_shared_content(
    before: Request, end: Prefix, request: Request, last: Prefix, sizes: PrefixSizes, after: int = 0
) -> SharedContent | None:
    """What a request of another conversation sends up to `end`, and this one up to `last`, after what differs in the
    system prompt or in the first message: a client puts these together. A text counts for the share that is the same.
    The first `after` blocks of this one were sent before as they are.
    """
    parted = common(end, last)
    if parted is None or before.tools.digest != request.tools.digest:
        return None
    was = path(first_message_end(end, before), parted.depth)
    now = path(first_message_end(last, request), parted.depth)
    sent = {(node.layer, node.block.digest) for node in was if node.block}
    shares = [_share_of(node, was, sent) if node.depth > after else 0.0 for node in now]
    kept = [node for node, share in zip(now, shares, strict=True) if share]
    tokens = sum(int(_tokens_of([node], sizes) * share) for node, share in zip(now, shares, strict=True))
    return SharedContent(was, now, kept, tokens) if kept else None


def may_share(before: EarlierCall, own: Sequence[Block]) -> bool:
    """Whether a call of another conversation has one of these blocks in its system prompt or first message, or a long
    text where one of them is one."""
    first = before.thread.beginning.message
    sent = (*before.shape.request.system.blocks, *(first.blocks if first else ()))
    digests = {block.digest for block in own}
    return any(block.digest in digests for block in sent) or (
        any(map(_is_long_text, own)) and any(map(_is_long_text, sent))
    )


def _is_long_text(block: Block) -> bool:
    return block.kind == "text" and block.size >= LONG_TEXT and has_content(block)


def first_message_end(end: Prefix, request: Request) -> Prefix:
    """The prefix of `end` up to the end of the first message."""
    first = request.thread.beginning.message
    blocks = len(request.tools.blocks) + len(request.system.blocks) + (len(first.blocks) if first else 0)
    return ancestor(end, min(end.depth, blocks))


def _share_of(node: Prefix, was: Sequence[Prefix], sent: Container[tuple[Layer, bytes]]) -> float:
    """The share of a block that was `sent` before, or that is in a long text of the same layer."""
    new = node.block
    if new is None or (node.layer, new.digest) in sent:
        return float(new is not None)
    texts = (old.block for old in was if old.layer is node.layer and old.block)
    return max((share_of_long_text(old, new) for old in texts), default=0.0)


def share_of_long_text(old: Block, new: Block) -> float:
    """The share of a long text that stands at the beginning and the end of another one, if that is most of it."""
    if old.role != new.role or not (_is_long_text(old) and _is_long_text(new)):
        return 0.0
    share = share_alike(old, new)
    return share if share >= ALIKE else 0.0


def have_one_static(one: Request, other: Request) -> bool:
    """Whether two static prefixes are one, but for the order of the tools or a few characters of a block."""
    if not _are_versions_of(one.system, other.system):
        return False
    if one.tools is other.tools or _sorted_digests(one.tools) == _sorted_digests(other.tools):
        return bool(one.system.blocks)
    return _are_versions_of(one.tools, other.tools)


def _are_versions_of(one: Part, other: Part) -> bool:
    if len(one.blocks) != len(other.blocks):
        return False
    return all(_are_nearly_equal(old, new) for old, new in zip(one.blocks, other.blocks, strict=True))


@lru_cache(maxsize=64)
def _sorted_digests(part: Part) -> list[bytes]:
    return sorted(block.digest for block in part.blocks)


def _are_nearly_equal(old: Block, new: Block) -> bool:
    if old.digest == new.digest:
        return True
    if old.content is None or new.content is None:
        return (old.kind, old.role) == (new.kind, new.role) and abs(old.size - new.size) <= ALIKE_BYTES
    return are_versions(old, new, Layer.SYSTEM) and share_alike(old, new) >= ALIKE_STATIC


def _is_distinct(node: Prefix) -> bool:
    """Whether a block is hardly ever sent twice by chance."""
    return node.layer is not Layer.MESSAGES or bool(
        node.block and (node.block.role == "assistant" or node.block.kind != "text")
    )


def _tokens_of(nodes: Sequence[Prefix], sizes: PrefixSizes) -> int:
    """Tokens of the last blocks of these prefixes, and of what is hidden where their layers begin."""
    return sum(tokens_between(_block_before(node), node, sizes) for node in nodes)


def _block_before(node: Prefix) -> Prefix | None:
    before = node.parent
    while before is not None and before.block is None:
        before = before.parent
    return before


def tokens_between(read: Prefix | None, end: Prefix, sizes: PrefixSizes) -> int:
    """Tokens after `read` (None: from the start) up to `end`."""
    return sizes.of(end) - (sizes.of(read) if read else 0)
