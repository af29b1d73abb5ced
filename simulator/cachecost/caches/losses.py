"""What a call paid for again although an earlier call had sent it, and why: the one classification of all commands.

`CallInspection.losses` compares a call, before it is made, with the earlier calls of its conversation and with what was
sent before under the same static prefix. The call loses what stands unchanged behind a change, and all before it that
was not read; or, where nothing changed, a prefix that was sent before, byte for byte, and was not read. What another
cause would cost besides is found when the calls are corrected and compared again. Replays name the loss with the most
tokens (`cause_of_losses`), explain prices all. Only where something was lost are prompts compared block by block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cachecost.base.structs import value
from cachecost.caches.alignment import are_versions, common, path, share_alike, unchanged
from cachecost.caches.breakpoints import Outcome, PrefixCache, State
from cachecost.caches.causes import (
    UNWRITTEN,
    Cause,
    UnreadPrefix,
    ancestor,
    cause_of_unread,
    find_change_or_compaction,
    is_fork,
)
from cachecost.caches.lineage import EarlierCall, Relatives
from cachecost.prompts.blocks import Block, Layer, Prefix
from cachecost.prompts.lookback import is_within_lookback, lookback_steps
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Request
from cachecost.prompts.sizes import PrefixSizes
from cachecost.providers.rules import ModelRules

MATERIAL = 0.01
"""The share of a prompt that must be unread before other breakpoints would be worth a change."""
SHARED = 0.25
"""The share of what follows a change that must be unchanged, where all of it is text of people."""
ALIKE_STATIC = 0.9
"""The share of a block of the static prefix that must match for two conversations to have one static prefix."""
ALIKE_BYTES = 2
"""Without content, by so many bytes at most its size may differ."""
SMALLEST = 100
"""Tokens; fewer are not worth a change either, as a question that no breakpoint follows."""
EXCHANGE = 2
"""Messages by which a conversation grows from call to call."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Unread blocks of a prompt, up to `depth`, that would have been read without `cause`.

    `first` is the block that differs, else the first one that was not read. `was` was in its place in the call `since`.
    `passed` numbers the pass of the replay, `gap_s` is the time since that call, `ttl` the TTL of an expired entry,
    `positions` the distance of an entry from the last breakpoint. `tokens` is the length of what was sent before and
    is lost by this cause; `added` that of new blocks among it, which no fix avoids. `place` and `place_before` are the
    pools of this call and of `since`, where they differ.
    """

    call: int
    passed: int
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
    place: str = ""
    place_before: str = ""

    @property
    def since_passed(self) -> int:
        """The pass of the earlier call; 0 without one."""
        return self.since.passed if self.since else 0


def cause_of_losses(losses: Sequence[Loss], outcome: Outcome, has_relatives: bool) -> Cause:
    """The cause of a call: that of its largest loss, the first of equal ones; without a loss, how it began."""
    if losses:
        return max(losses, key=lambda loss: loss.tokens).cause
    if outcome.hit:
        return "hit"
    return "new_content" if has_relatives else "cold_start"


@value
class CallInspection:
    """One call before it is made: the prompt, the cache, and the earlier calls to compare with."""

    call: int
    passed: int
    request: Request
    prompt: Prompt
    rules: ModelRules
    start: float
    sizes: PrefixSizes
    cache: PrefixCache
    read: int
    shared: Prefix
    relatives: Relatives

    def is_healthy(self) -> bool:
        """Whether the call reads all that was sent before, as most do: then nothing need be compared."""
        nearest, breakpoints = self.relatives.nearest, self.prompt.breakpoints
        entry = nearest.entry if nearest else None
        if nearest is None or entry is not self.shared or not breakpoints:
            return False
        last, grown = breakpoints[-1], self.request.thread.length - nearest.thread.length
        return (
            grown <= EXCHANGE
            and is_within_lookback(last.prefix, entry, self.rules)
            and self.cache.state(entry, last.ttl, self.rules, self.start) == "live"
            and self._reaches_minimum(entry)
        )

    def losses(self) -> Iterator[Loss]:
        """What comes after a change, else what was sent before unchanged: at most one."""
        changed = self._find_changed()
        if changed:
            yield changed.loss()
        elif self.shared.depth > self.read and (unread := self._find_unread(self._sent_again())):
            yield unread

    # ------------------------------------------------------------------------------- sent before, and not read

    def _sent_again(self) -> Prefix:
        """What was sent before, without the beginning of an answer that is another one: both begin alike by chance."""
        node = self.shared
        after = path(self.prompt.end, node.depth)[:1]
        while after and all(_is_answer(one) for one in (node, *after)) and node.parent is not None:
            node = node.parent
        return node

    def _find_unread(self, shared: Prefix) -> Loss | None:
        """The prefix that was sent before, byte for byte, and was not read this time."""
        entry, state, ttl, touched = self._deepest_entry(shared)
        if entry is None and not self._is_one_prefix():
            return None
        end = entry or shared
        since = self._sender(end)
        cause = self._cause(end, state if entry else "absent", since)
        tokens, first = self.tokens_to(end), next(iter(path(end, self.read)), None)
        if first is None or (cause in UNWRITTEN and not self._is_material(tokens)):
            return None
        return Loss(
            self.call,
            self.passed,
            cause,
            first,
            end.depth,
            since=since,
            gap_s=self.start - touched if touched is not None else 0.0,
            ttl=ttl,
            positions=self._behind(end),
            window=self.rules.lookback_positions,
            minimum=self.rules.minimum_tokens,
            tokens=tokens,
        )

    def _is_one_prefix(self) -> bool:
        """Whether what was sent before is of this conversation, or a static prefix that conversations share.

        Some equal tools at the beginning of another list are none: no breakpoint between them helps both lists.
        """
        if self.relatives.line is not None:
            return True
        shared = self.shared
        if shared.layer is Layer.TOOLS:
            return shared.depth == len(self.request.tools.blocks) and self._reaches_minimum(shared)
        return shared.depth >= self.prompt.head.depth or self._reaches_minimum(shared)

    def _is_material(self, tokens: int) -> bool:
        return tokens >= max(SMALLEST, MATERIAL * self.sizes.total(self.prompt))

    def _reaches_minimum(self, prefix: Prefix) -> bool:
        return self.sizes.of(prefix) >= self.rules.minimum_tokens

    def _sender(self, prefix: Prefix) -> EarlierCall | None:
        """The call that sent a prefix: the nearest one, the latest of the conversation, else the first of all."""
        for call in (self.relatives.nearest, self.relatives.latest):
            if call and call.pool == self.relatives.pool and _is_on(prefix, call.end):
                return call
        return self.relatives.lineage.sender(prefix)

    def tokens_to(self, end: Prefix) -> int:
        """Tokens from what was read up to `end`."""
        return self.sizes.of(end) - (self.sizes.of(ancestor(self.prompt.end, self.read)) if self.read else 0)

    def _behind(self, entry: Prefix) -> int:
        """Positions from an entry to the last breakpoint, both counted; below 0 if the breakpoint is before it."""
        if not self.prompt.breakpoints:
            return 0
        steps = lookback_steps(self.prompt.breakpoints[-1].prefix, entry, self.rules)
        return steps + 1 if steps >= 0 else steps

    def _deepest_entry(self, shared: Prefix) -> tuple[Prefix | None, State, str, float | None]:
        """(prefix, state, TTL, time of last use) of the deepest entry that was not read."""
        for node in reversed(path(shared, self.read)):
            for ttl in ("5m", "1h"):
                state = self.cache.state(node, ttl, self.rules, self.start)
                entry = self.cache.entry(node, ttl, self.rules) if state != "absent" else None
                if entry and self.sizes.of(node) >= entry.minimum:
                    return node, state, entry.ttl, entry.touched
        return None, "absent", "", None

    def _cause(self, end: Prefix, state: State, since: EarlierCall | None) -> Cause:
        unread = UnreadPrefix(
            tokens=self.sizes.of(end),
            entry=None if state == "absent" else end,
            state=state,
            is_fork=self._is_fork(),
            is_off_path=bool(since and since.entry and not _is_on(since.entry, self.prompt.end)),
        )
        return cause_of_unread(unread, self.prompt, self.rules)

    def _is_fork(self) -> bool:
        """Whether the call goes on from a place in another call than the one whose messages it repeats.

        A conversation that expired as a whole lost to time, wherever it goes on.
        """
        nearest, latest = self.relatives.nearest, self.relatives.latest
        if nearest and nearest.pool == self.relatives.pool and _is_on(self.shared, nearest.end):
            return False
        if latest is None or (latest.entry and self._is_out_of_reach(latest)):
            return False
        return is_fork(self.request, self.prompt, self.rules, self.shared, latest)

    # ------------------------------------------------------------------------------- behind a change

    def _find_changed(self) -> _Change | None:
        """What comes after a block or a parameter that changed since an earlier call."""
        if not self.prompt.breakpoints:
            return None
        found = [change for before in self._compared() if (change := self._change_since(before))]
        return max(found, key=lambda change: change.kept[-1].depth, default=None)

    def _compared(self) -> Iterator[EarlierCall]:
        """The calls that a change is looked for in: those of the conversation, else one with this static prefix.

        The latest call of the conversation counts besides the one that this call goes on from where calls must have
        been made in between: it sent their messages in another shape.
        """
        nearest, latest = self.relatives.nearest, self.relatives.latest
        length = self.request.thread.length
        if nearest:
            yield nearest
        if latest and latest is not nearest and length - (nearest.thread.length if nearest else 0) > EXCHANGE:
            if self._is_here(latest) or latest.thread.length < length:
                yield latest
        elif latest and nearest is None and self._is_here(latest):
            yield latest
        if latest is None and self.shared.depth < self.prompt.head.depth:
            yield from self._same_static_prefix()

    def _is_here(self, call: EarlierCall) -> bool:
        return call.pool == self.relatives.pool and call.rules.model == self.rules.model

    def _same_static_prefix(self) -> Iterator[EarlierCall]:
        """The latest call of another conversation with this static prefix but for an order or a few characters."""
        for call in self.relatives.others():
            has_keys = call.shape.prompt.cache_keys[:2] == self.prompt.cache_keys[:2]
            if has_keys and _have_one_static(call.shape.request, self.request):
                yield call
                return

    def _is_out_of_reach(self, before: EarlierCall) -> bool:
        """Whether nothing that a call cached can be read at this time, so that a change of it lost nothing."""
        states = {self.cache.state(before.entry, ttl, before.rules, self.start) for ttl in ("5m", "1h") if before.entry}
        return bool(states & {"expired", "unreadable"}) and "live" not in states

    def _change_since(self, before: EarlierCall) -> _Change | None:
        if before.entry is None or self._is_out_of_reach(before):
            return None
        last = self.prompt.breakpoints[-1].prefix
        parted = common(before.entry, last)
        if parted is before.entry or parted is last:
            return None
        depth = parted.depth if parted else 0
        was, now = path(before.entry, depth), path(last, depth)
        kept = unchanged(was, now)
        if not kept or not self._is_lost([node for node in kept if node.depth > max(self.read, self.shared.depth)]):
            return None
        return _Change(self, before, was, now, kept)

    def _is_lost(self, kept: Sequence[Prefix]) -> bool:
        """Whether what was sent before behind a change is more than texts of people that happen to be alike."""
        if not kept or any(_is_distinct(node) for node in kept):
            return bool(kept)
        whole = self.tokens_to(kept[-1])
        return _tokens_of(kept, self.sizes) >= SHARED * whole


@value
class _Change:
    """A change since an earlier call. `was` and `now` are what follows the common prefix, `kept` is unchanged of it."""

    inspected: CallInspection
    before: EarlierCall
    was: list[Prefix]
    now: list[Prefix]
    kept: list[Prefix]

    def loss(self) -> Loss:
        """What is lost by the change, and what of it is new."""
        call, before, end = self.inspected, self.before, self.kept[-1]
        whole, tokens = call.tokens_to(end), self._tokens()
        first, other = self._first_pair()
        is_moved = call.relatives.pool != before.pool
        return Loss(
            call.call,
            call.passed,
            "unknown" if is_moved else find_change_or_compaction(call.request, call.prompt, before, call.rules),
            first,
            end.depth,
            None if is_moved else other,
            before,
            call.start - before.start,
            tokens=tokens,
            added=whole - tokens,
            place=call.relatives.pool if is_moved else "",
            place_before=before.pool if is_moved else "",
        )

    def _tokens(self) -> int:
        """Tokens that were sent before: all that were not read before the change, and what is unchanged behind it."""
        call, parted = self.inspected, self.now[0].parent
        before = call.tokens_to(parted) if parted and parted.depth > call.read else 0
        return before + _tokens_of([node for node in self.kept if node.depth > call.read], call.sizes)

    def _first_pair(self) -> tuple[Prefix, Prefix | None]:
        """The first blocks that differ; if only a parameter changed, the first block that was not read."""
        for old, new in zip(self.was, self.now, strict=False):
            if old.block and new.block and old.block.digest != new.block.digest:
                return new, old
        return next((node for node in self.now if node.depth > self.inspected.read), self.now[0]), None


def _have_one_static(one: Request, other: Request) -> bool:
    """Whether two static prefixes are one, but for the order of the tools or a few characters of a block."""
    tools = sorted(block.digest for block in one.tools.blocks) == sorted(block.digest for block in other.tools.blocks)
    pairs = [*zip(one.system.blocks, other.system.blocks, strict=False)]
    if not tools:
        pairs += zip(one.tools.blocks, other.tools.blocks, strict=False)
    lengths = [(len(part.tools.blocks), len(part.system.blocks)) for part in (one, other)]
    return lengths[0] == lengths[1] and all(map(_are_nearly_equal, *zip(*pairs, strict=True))) if pairs else False


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
    """Tokens of the last blocks of these prefixes."""
    return sum(sizes.of(node) - (sizes.of(node.parent) if node.parent else 0) for node in nodes)


def _is_answer(node: Prefix) -> bool:
    return node.layer is Layer.MESSAGES and node.block is not None and node.block.role == "assistant"


def _is_on(node: Prefix, end: Prefix) -> bool:
    return node.depth <= end.depth and ancestor(end, node.depth) is node
