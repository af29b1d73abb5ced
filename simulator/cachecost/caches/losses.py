"""What a call lost: blocks that were sent before and that it paid for again, and why. `inspection.py` finds it.

Which earlier calls a call is compared with, how much of its prompt was sent before, and what changed since.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from itertools import islice

import msgspec

from cachecost.account.causes import Cause
from cachecost.base.structs import replace
from cachecost.prompts.blocks import Block, Layer, Part, Prefix, Thread
from cachecost.prompts.compare import (
    ALIKE,
    ancestor,
    are_versions,
    common,
    new_prefixes,
    path,
    prefixes_back,
    share_alike,
    unchanged,
)
from cachecost.prompts.exact_json import has_content
from cachecost.prompts.render import BreakpointPrefix, PrefixSizes, Prompt
from cachecost.prompts.request import Request
from cachecost.providers.rules import ModelRules

MOST_RECENT = 16
"""Conversations that a new one is compared with."""
OVERLAP = 0.5
"""The share of the messages after the first one that two threads must have in common to be one conversation."""


class ConversationLine(msgspec.Struct, eq=False):
    """A conversation, whatever its models and workspaces. `latest` is its latest call."""

    latest: EarlierCall | None = None
    _digests: tuple[Thread, frozenset[bytes]] | None = None

    def digests_of(self, thread: Thread) -> frozenset[bytes]:
        """The messages of its latest thread but the first one, gathered once for all that are compared with it."""
        if self._digests is None or self._digests[0] is not thread:
            self._digests = thread, frozenset(_later_digests(thread))
        return self._digests[1]


class CallShape(msgspec.Struct, frozen=True):
    """What calls are compared by, besides their messages. Calls that are equal in this share one object."""

    request: Request
    prompt: Prompt
    rules: ModelRules


class EarlierCall(msgspec.Struct, frozen=True, eq=False):
    """An earlier call to compare with. `entry` is the deepest prefix that it had in the cache, for `ttl`.

    `number` is that of the call, `pool` where its entries are, `end` the end of its prompt.
    """

    number: int
    start: float
    shape: CallShape
    thread: Thread
    end: Prefix
    entry: Prefix | None
    ttl: str
    pool: str
    line: ConversationLine

    @property
    def rules(self) -> ModelRules:
        return self.shape.rules

    @property
    def request(self) -> Request:
        """The request as sent, without its breakpoints."""
        return replace(self.shape.request, thread=self.thread, breakpoints=())

    @property
    def prompt(self) -> Prompt:
        """The prompt, without its breakpoints."""
        return replace(self.shape.prompt, end=self.end, breakpoints=())


class Lineage:
    """All calls so far. A lookup takes time for what is new in a call, or since it diverged from its forerunner."""

    def __init__(self) -> None:
        self._sent: dict[Prefix, EarlierCall] = {}
        self._at_thread: dict[Thread, EarlierCall] = {}
        self._shapes: dict[tuple[object, ...], CallShape] = {}
        self._by_first: dict[Thread, ConversationLine] = {}
        self._begun: set[tuple[Thread, str]] = set()
        self._later: set[bytes] = set()
        self._lines: dict[ConversationLine, None] = {}

    def find_shared(self, prompt: Prompt) -> Prefix:
        """The longest prefix of the prompt that was sent before, whether or not it was cached."""
        return next(node for node in prefixes_back(prompt.end) if node in self._sent or node.parent is None)

    def forerunner(self, request: Request, model: str, pool: str) -> Relatives:
        """The earlier calls that a call may be compared with.

        The nearest is the latest call that the thread goes on from; the same messages count only in the same place on
        the same model.
        """
        thread = request.thread
        known = ((node, self._at_thread.get(node)) for node in thread.back())
        place = pool, model
        earlier = (
            seen for node, seen in known if seen and (node is not thread or (seen.pool, seen.rules.model) == place)
        )
        nearest = next(earlier, None)
        line = nearest.line if nearest else self._line_of(thread)
        return Relatives(self, nearest, line, pool, model)

    def sender(self, prefix: Prefix) -> EarlierCall | None:
        """The first call that sent a prefix."""
        return self._sent.get(prefix)

    def recent(self, apart_from: ConversationLine | None = None) -> Iterator[EarlierCall]:
        """The latest calls of the latest conversations, whatever their files, latest first."""
        lines = (line for line in reversed(self._lines) if line is not apart_from)
        for line in islice(lines, MOST_RECENT):
            if line.latest is not None:
                yield line.latest

    def has_begun(self, thread: Thread, pool: str) -> bool:
        """Whether the conversation had a call in this place before."""
        return (thread.beginning, pool) in self._begun

    def remember(
        self,
        number: int,
        start: float,
        request: Request,
        prompt: Prompt,
        rules: ModelRules,
        deepest: BreakpointPrefix | None,
        relatives: Relatives,
    ) -> None:
        """Keep a call for those that come after it, and so little of it: any later one may continue it.

        What `find_change` reads of an earlier call, but for its messages, is one `CallShape` for all calls with its
        key. It holds all whose id is in the key, so that no other object gets that id.
        """
        thread, pool, line = request.thread, relatives.pool, relatives.line or ConversationLine()
        same = request.params_id, id(request.tools), id(request.system), id(rules)
        key = (*same, prompt.cache_keys, prompt.head)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = CallShape(request, prompt, rules)
        entry, ttl = (deepest.prefix, deepest.ttl) if deepest else (None, "5m")
        call = EarlierCall(number, start, shape, thread, prompt.end, entry, ttl, pool, line)
        self._sent.update(dict.fromkeys(new_prefixes(prompt.end, self._sent)[0], call))
        self._later.update(_later_digests(thread, relatives.nearest.thread if relatives.nearest else None))
        self._at_thread[thread] = line.latest = call
        if relatives.nearest is None:
            self._by_first.setdefault(thread.beginning, line)
        if relatives.nearest is None or relatives.nearest.pool != pool:
            self._begun.add((thread.beginning, pool))
        self._lines.pop(line, None)
        self._lines[line] = None

    def _line_of(self, thread: Thread) -> ConversationLine | None:
        """The conversation of a thread that no earlier call leads to: one with the same first message, else the recent
        one with most messages in common, if those are enough, else one that begins with another version of it."""
        known = self._by_first.get(thread.beginning)
        if known is not None or thread.length < 2:
            return known
        digests, best, found = frozenset(_later_digests(thread)), 0.0, None
        if not self._later.isdisjoint(digests):
            for seen in self.recent():
                others = seen.line.digests_of(seen.thread)
                share = len(digests & others) / max(1, min(len(digests), len(others)))
                if share >= OVERLAP and share > best:
                    best, found = share, seen.line
        shorter = (seen for seen in self.recent() if seen.thread.length < thread.length)
        return found or next((seen.line for seen in shorter if _begins_alike(thread, seen)), None)


def _begins_alike(thread: Thread, seen: EarlierCall) -> bool:
    one, other = thread.beginning.message, seen.thread.beginning.message
    if one is None or other is None:
        return False
    pairs = zip(other.blocks, one.blocks, strict=False)
    return len(one.blocks) == len(other.blocks) and all(are_versions(*pair, Layer.MESSAGES) for pair in pairs)


def _later_digests(thread: Thread, since: Thread | None = None) -> list[bytes]:
    """All messages of a thread but the first one, or those after `since`, latest first."""
    digests, node = [], thread
    while node is not since and node.length > 1:
        assert node.message is not None
        assert node.parent is not None
        digests.append(node.message.digest)
        node = node.parent
    return digests


class Relatives(msgspec.Struct, frozen=True, eq=False):
    """The earlier calls to compare one call with.

    `nearest` is the latest call whose messages it sends again and goes on from, `line` its conversation.
    """

    lineage: Lineage
    nearest: EarlierCall | None
    line: ConversationLine | None
    pool: str
    model: str

    @property
    def latest(self) -> EarlierCall | None:
        """The latest call of the conversation, which need not have been sent to the same place or model."""
        return self.line.latest if self.line else None

    def others(self) -> Iterator[EarlierCall]:
        """The latest calls of other conversations of the same place and model, latest first."""
        for call in self.lineage.recent(self.line):
            if call.pool == self.pool and call.rules.model == self.model:
                yield call


SHARED = 0.25
"""The share of what follows a change that must be unchanged, where all of it is text of people."""
ALIKE_STATIC = 0.9
"""The share of a block of the static prefix that must match for two conversations to have one static prefix."""
LONG_TEXT = 1000
"""Bytes of a text of which two conversations may share a part that is worth caching."""
ALIKE_BYTES = 2
"""Without content, by so many bytes at most its size may differ."""


class ContentChange(msgspec.Struct, frozen=True):
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
        if all(
            node.layer is Layer.MESSAGES
            and not (node.block and (node.block.role == "assistant" or node.block.kind != "text"))
            for node in kept
        ):
            return bool(kept) and _tokens_of(kept, sizes) >= SHARED * tokens_between(read, self.end, sizes)
        return True

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
    if now[0].layer is Layer.TOOLS and kept:  # a tool that moved was sent before, too
        sent = {node.block.digest for node in was if node.block and node.layer is Layer.TOOLS}
        moved = {node for node in now if node.block and node.layer is Layer.TOOLS and node.block.digest in sent}
        both = moved.union(kept)
        kept = [node for node in now if node in both]
    return ContentChange(before, was, now, kept) if kept else None


class SharedContent(msgspec.Struct, frozen=True):
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


def _tokens_of(nodes: Sequence[Prefix], sizes: PrefixSizes) -> int:
    """Tokens of the last blocks of these prefixes, and of what is hidden where their layers begin."""
    tokens = 0
    for node in nodes:
        before = next((one for one in prefixes_back(node) if one is not node and one.block is not None), None)
        tokens += tokens_between(before, node, sizes)
    return tokens


def tokens_between(read: Prefix | None, end: Prefix, sizes: PrefixSizes) -> int:
    """Tokens after `read` (None: from the start) up to `end`."""
    return sizes.of(end) - (sizes.of(read) if read else 0)


class Loss(msgspec.Struct, frozen=True):
    """Unread blocks of a prompt, up to `depth`, that would have been read without `cause`.

    `first` is the block that differs, else the first one that was not read. `was` was in its place in the call
    `since`. `gap_s` is the time since that call, `ttl` the TTL of an expired entry, `positions` the distance of an
    entry from the last breakpoint. `tokens` is the length of what was sent before and is lost by this cause;
    `added` that of new blocks among it, which no fix avoids. `is_whole`: all that `since` cached is sent again, as
    it was or in another version. `place` and `place_before` are the pools of this call and of `since`, where they
    differ. `is_apart`: `since` is of another conversation;
    `is_out_of_order`: and what both send comes after content of their own.
    """

    call: int
    cause: Cause
    first: Prefix
    depth: int
    was: Prefix | None = None
    since: EarlierCall | None = None
    gap_s: float = 0.0
    ttl: str = ""
    positions: int = 0
    window: int = 0
    minimum: int = 0
    tokens: int = 0
    added: int = 0
    is_whole: bool = False
    place: str = ""
    place_before: str = ""
    is_apart: bool = False
    is_out_of_order: bool = False
