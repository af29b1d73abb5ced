"""What a call paid for again although an earlier call had sent it, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cachecost.analysis.explain.alignment import common, goes_on, path
from cachecost.analysis.explain.lineage import EarlierCall
from cachecost.caches.breakpoints import PrefixCache, State
from cachecost.caches.causes import (
    Cause,
    UnreadPrefix,
    ancestor,
    cause_of_unread,
    find_change_or_compaction,
    is_fork,
)
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.lookback import lookback_steps
from cachecost.prompts.render import Prompt
from cachecost.prompts.request import Request
from cachecost.prompts.sizes import PrefixSizes
from cachecost.providers.rules import ModelRules


@dataclass(frozen=True, slots=True)
class Loss:
    """Unread blocks of a prompt, up to `depth`, that would have been read without `cause`.

    `first` is the block that differs, else the first one that was not read. `was` was in its place in the call `since`.
    `passed` numbers the pass of the replay, `gap_s` is the time since that call, `ttl` the TTL of an expired entry,
    `positions` the distance of an entry from the last breakpoint, `tokens` the length of what was not read.
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

    @property
    def since_passed(self) -> int:
        """The pass of the earlier call; 0 without one."""
        return self.since.passed if self.since else 0


@dataclass(frozen=True, slots=True)
class CallInspection:
    """One call before it is made: the prompt, the cache, and the earlier call to compare with."""

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
    before: EarlierCall | None

    def losses(self) -> Iterator[Loss]:
        """At most two: what was sent before unchanged, and what comes after a change."""
        changed = self._find_changed()
        if self.shared.depth > self.read and (unread := self._find_unread(changed)):
            yield unread
        if changed:
            yield changed

    # ------------------------------------------------------------------------------- sent before, and not read

    def _find_unread(self, changed: Loss | None) -> Loss | None:
        """The prefix that was sent before, byte for byte, and was not read this time."""
        entry, state, ttl, touched = self._deepest_entry()
        cause = self._cause(entry, state, changed)
        end = entry or self._sent_by_the_call_before()
        first = next(iter(path(end, self.read)), None)
        if first is None:
            return None
        return Loss(
            self.call,
            self.passed,
            cause,
            first,
            end.depth,
            since=self.before,
            gap_s=self.start - touched if touched is not None else 0.0,
            ttl=ttl,
            positions=self._behind(end),
            window=self.rules.lookback_positions,
            minimum=self.rules.minimum_tokens,
            tokens=self._tokens(end),
        )

    def _sent_by_the_call_before(self) -> Prefix:
        """What a breakpoint in the previous call could have cached."""
        return (common(self.before.prompt.end, self.shared) if self.before else None) or self.shared

    def _tokens(self, end: Prefix) -> int:
        """Tokens from what was read up to `end`."""
        return self.sizes.of(end) - (self.sizes.of(ancestor(self.prompt.end, self.read)) if self.read else 0)

    def _behind(self, entry: Prefix) -> int:
        """Positions from an entry to the last breakpoint, both counted; below 0 if the breakpoint is before it."""
        if not self.prompt.breakpoints:
            return 0
        steps = lookback_steps(self.prompt.breakpoints[-1].prefix, entry, self.rules)
        return steps + 1 if steps >= 0 else steps

    def _deepest_entry(self) -> tuple[Prefix | None, State, str, float | None]:
        """(prefix, state, TTL, time of last use) of the deepest entry that was not read."""
        for node in reversed(path(self.shared, self.read)):
            for ttl in ("5m", "1h"):
                state = self.cache.state(node, ttl, self.rules, self.start)
                entry = self.cache.entry(node, ttl, self.rules) if state != "absent" else None
                if entry and self.sizes.of(node) >= entry.minimum:
                    return node, state, entry.ttl, entry.touched
        return None, "absent", "", None

    def _cause(self, entry: Prefix | None, state: State, changed: Loss | None) -> Cause:
        before = self.before
        unread = UnreadPrefix(
            tokens=self.sizes.of(self.shared),
            entry=entry,
            state=state,
            is_fork=changed is None and is_fork(self.request, self.prompt, self.rules, self.shared, before),
            is_off_path=bool(before and before.entry and not _is_on(before.entry, self.prompt.end)),
        )
        return cause_of_unread(unread, self.prompt, self.rules)

    # ------------------------------------------------------------------------------- behind a change

    def _has_expired(self, entry: Prefix) -> bool:
        """Whether nothing of a prefix is left, so that a change of it lost nothing."""
        states = {self.cache.state(entry, ttl, self.rules, self.start) for ttl in ("5m", "1h")}
        return "expired" in states and not states & {"live", "unreadable"}

    def _find_changed(self) -> Loss | None:
        """What comes after a block or a parameter that changed since the previous call."""
        before = self.before
        if before is None or before.entry is None or not self.prompt.breakpoints or self._has_expired(before.entry):
            return None
        last = self.prompt.breakpoints[-1].prefix
        parted = common(before.entry, last)
        if parted is before.entry or parted is last:
            return None
        depth = parted.depth if parted else 0
        was, now = path(before.entry, depth), path(last, depth)
        end = goes_on(was, now)
        if end is None or end.depth <= max(self.read, self.shared.depth):
            return None
        cause = find_change_or_compaction(self.request, self.prompt, before, self.rules)
        first, other = _first_pair(was, now)
        gap = self.start - before.start
        return Loss(self.call, self.passed, cause, first, end.depth, other, before, gap, tokens=self._tokens(end))


def _first_pair(was: list[Prefix], now: list[Prefix]) -> tuple[Prefix, Prefix | None]:
    """The first blocks that differ; if only a parameter changed, the first block after it."""
    for old, new in zip(was, now, strict=False):
        if old.block and new.block and old.block.digest != new.block.digest:
            return new, old
    return now[0], None


def _is_on(node: Prefix, end: Prefix) -> bool:
    return node.depth <= end.depth and ancestor(end, node.depth) is node
