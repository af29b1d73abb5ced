"""The prefix cache with breakpoints: look up, write, age (rules 7-15). No clock, no randomness: time is an argument.

`write_at_breakpoints` and `divide` are the rules once an entry was found. Sweeps ask them too, of entries that are
numbers instead of prefixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from copy import copy
from itertools import takewhile
from typing import TypeVar

import msgspec

from cachecost.base.digests import seeded_share
from cachecost.caches.expiry import BEFORE_TIME, CacheEntry, State, new_entry, refresh_before_hit, ttl_s_of
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.compare import prefixes_back
from cachecost.prompts.render import AS_COUNTED, BreakpointPrefix, PrefixSizes, Prompt, lookback_window
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.rules import ModelRules, VisibilityLag
from cachecost.providers.usage import TTLS, Usage

Key = tuple[Prefix, str]
"""A prefix, and the TTL of the breakpoint if the assumption `ttl_in_key` holds, else ""."""
AnyKey = TypeVar("AnyKey")
SMALLEST_SHARE = 2**-64


class Outcome(msgspec.Struct, frozen=True):
    """What the cache did with a prompt. `read` + `write_1h` + `write_5m` + `uncached` is the whole prompt.

    `breakpoints` are the breakpoints that reached the minimum; `hit` is the prefix that was read, None for a miss.
    """

    read: int
    write_1h: int
    write_5m: int
    uncached: int
    hit: Prefix | None
    breakpoints: tuple[BreakpointPrefix, ...]

    @property
    def usage(self) -> Usage:
        return self.usage_with(0)

    @property
    def total(self) -> int:
        """Tokens of the whole prompt."""
        return self.read + self.write_1h + self.write_5m + self.uncached

    def with_read(self, tokens: int) -> Outcome:
        """The same with so many tokens read, as was billed; without a breakpoint nothing can be read.

        What is charged differently is the beginning of what was not read: a 1h write comes before a 5m write.
        """
        if not self.breakpoints or tokens == self.read:
            return self
        end = self.read + self.write_1h + self.write_5m
        read = min(tokens, end)
        hour_end = end if self.breakpoints[-1].ttl == "1h" else self.read + self.write_1h if self.write_1h else 0
        hour = max(0, hour_end - read)
        return Outcome(read, hour, end - read - hour, self.uncached, self.hit, self.breakpoints)

    def usage_with(self, output_tokens: int) -> Usage:
        """The usage of a call whose answer has `output_tokens`."""
        return Usage(self.uncached, self.read, self.write_5m, self.write_1h, output_tokens)


class PrefixCache:
    """Entries of all workspaces; a prefix belongs to one, since its root differs."""

    def __init__(self) -> None:
        self._entries: dict[Key, CacheEntry] = {}
        self._written = 0

    def call(
        self, prompt: Prompt, rules: ModelRules, start: float, ttft_s: float = 0.0, sizes: PrefixSizes = AS_COUNTED
    ) -> Outcome:
        """Look up `prompt`, write at its breakpoints, and return how its tokens divide.

        `start` and `ttft_s` are seconds. Calls come in the order they start.
        """
        found = self.find(prompt, rules, start, sizes)
        hit, entry = found or (None, None)
        depth, read = (hit.depth, sizes.of(hit)) if hit else (0, 0)
        in_key = rules.assumptions.ttl_in_key
        kind = _DrawingWriter if rules.assumptions.is_drawn else Writer
        writer = kind(rules, start, start + ttft_s, self._written)
        writes = [((one.prefix, one.ttl if in_key else ""), one.prefix.depth, one.ttl) for one in prompt.breakpoints]
        write_at_breakpoints(self._entries, entry, depth, writes, writer)
        self._written = writer.written
        minimum = rules.minimum_tokens
        breakpoints = tuple([one for one in prompt.breakpoints if sizes.of(one.prefix) >= minimum])
        after = [(sizes.of(one.prefix), one.ttl) for one in breakpoints if one.prefix.depth > depth]
        hour_end, end = divide(read, after)
        return Outcome(read, hour_end - read, end - hour_end, sizes.total(prompt) - end, hit, breakpoints)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """The state of the entry at `prefix` at `now`."""
        entry = self._entries.get(_key(prefix, ttl, rules.assumptions))
        return entry.state(now) if entry else "absent"

    def entry(self, prefix: Prefix, ttl: str, rules: ModelRules) -> CacheEntry:
        """The entry at `prefix`, expired or not. Raises KeyError if there is none."""
        return self._entries[_key(prefix, ttl, rules.assumptions)]

    def entries_back(self, end: Prefix, depth: int, rules: ModelRules) -> Iterator[tuple[Prefix, CacheEntry]]:
        """The entries at `end` and before it, deepest first, of prefixes of more than `depth` blocks.

        Expired ones are among them; of one prefix that of the short TTL comes first.
        """
        ttls = TTLS if rules.assumptions.ttl_in_key else ("",)
        for node in takewhile(lambda one: one.depth > depth, prefixes_back(end)):
            for ttl in ttls:
                entry = self._entries.get((node, ttl))
                if entry is not None and node.block is not None:
                    yield node, entry

    def entries(self) -> Iterator[tuple[Key, CacheEntry]]:
        """All entries by their keys, expired ones included."""
        return iter(self._entries.items())

    def copy(self) -> PrefixCache:
        """A cache with the same entries, which goes on by itself from here."""
        other = PrefixCache()
        other._entries = {key: copy(entry) for key, entry in self._entries.items()}
        other._written = self._written
        return other

    def keep(self, prefix: Prefix, ttl: str, rules: ModelRules, entry: CacheEntry) -> CacheEntry:
        """Store an entry as if a call had written it."""
        self._entries[_key(prefix, ttl, rules.assumptions)] = entry
        return entry

    def warm(self, prefix: Prefix, ttl: str, rules: ModelRules, start: float) -> CacheEntry:
        """Store an entry that can be read at `start`, as if it had been written long ago and used just now."""
        entry = CacheEntry(rules.minimum_tokens, ttl, ttl_s_of(rules, ttl), BEFORE_TIME, start, BEFORE_TIME)
        return self.keep(prefix, ttl, rules, entry)

    def warm_prefix(self, prompt: Prompt, prefix: Prefix, ttl: str, rules: ModelRules, start: float) -> None:
        """As `warm` for a prefix of a prompt, with the entries that its breakpoints before it would have written."""
        for breakpoint in prompt.breakpoints:
            if breakpoint.prefix.depth < prefix.depth:
                self.warm(breakpoint.prefix, breakpoint.ttl, rules, start)
        self.warm(prefix, ttl, rules, start)

    def forget_longer(self, prompt: Prompt, most: int, rules: ModelRules, sizes: PrefixSizes) -> None:
        """Forget what is cached of a prompt beyond its first `most` tokens."""
        for node in takewhile(lambda one: sizes.of(one) > most, prefixes_back(prompt.end)):
            for ttl in TTLS:
                self._entries.pop(_key(node, ttl, rules.assumptions), None)

    def find(
        self, prompt: Prompt, rules: ModelRules, now: float, sizes: PrefixSizes
    ) -> tuple[Prefix, CacheEntry] | None:
        """Rule 9: the entry that a call finds at `now` (seconds), and its prefix; None: a miss.

        It looks back from each breakpoint, the last one first, or at the longest first of the places where the host
        looks (`finds` of the rules).
        """
        in_key, entries = rules.assumptions.ttl_in_key, self._entries
        if prompt.boundaries is None:
            marked = reversed(prompt.breakpoints)
            places = ((node, one.ttl) for one in marked for node in lookback_window(one.prefix, rules))
        else:
            ends = sorted(prompt.boundaries, key=lambda one: one.depth, reverse=True)
            places = ((node, ttl) for node in ends for ttl in TTLS)
        for node, ttl in places:
            entry = entries.get((node, ttl if in_key else ""))
            if entry and entry.is_hit(now, sizes.of(node)):
                return node, entry
        return None


def write_at_breakpoints(
    entries: MutableMapping[AnyKey, CacheEntry],
    hit: CacheEntry | None,
    depth: int,
    writes: Iterable[tuple[AnyKey, int, str]],
    writer: Writer,
) -> None:
    """What a call refreshes and writes, once it found `hit` at this depth in blocks; None: a miss (rules 10, 12, 13).

    `writes` are the key, depth and TTL of each of its breakpoints in prompt order.
    """
    if hit is not None:
        hit.read(writer.start, writer.rules)
    for key, at, ttl in writes:
        if at > depth:
            entries[key] = writer.entry(ttl)
        elif hit is not None:
            again = refresh_before_hit(entries.get(key), ttl, hit.ttl, writer.start, writer.rules)
            if again is not None:
                entries[key] = writer.entry(again)


def divide(read: int, after: Sequence[tuple[int, str]]) -> tuple[int, int]:
    """Rule 15: where what a call writes for an hour ends, and where what it writes at all ends, in tokens (B and C).

    `after` are length and TTL at its breakpoints after the first `read` tokens, those that reach the minimum.
    """
    hour_end = end = 0
    for size, ttl in after:
        end = max(end, size)
        if ttl == "1h":
            hour_end = max(hour_end, size)
    return hour_end or read, end or read


class Writer(msgspec.Struct):
    """A call that writes: its rules, its start and its first token (seconds). It writes shorter prefixes first.

    `written` counts the entries of the cache.
    """

    rules: ModelRules
    start: float
    first_token: float
    written: int = 0

    def entry(self, ttl: str) -> CacheEntry:
        """The entry of a breakpoint, with a TTL that may be shorter than its own (rule 13)."""
        self.written += 1
        return new_entry(self.rules, ttl, self.start, self.first_token)


class _DrawingWriter(Writer):
    """A call whose entries may become readable late or expire early (rule 14)."""

    latest: float = 0.0
    """When the deepest entry so far becomes readable, of those that the dated rows delay."""

    def entry(self, ttl: str) -> CacheEntry:
        self.written += 1
        number, assumptions, dated = self.written, self.rules.assumptions, self.rules.visibility_lag

        def share(what: str) -> float:
            return seeded_share(assumptions.seed, what, number)

        def is_drawn(what: str, probability: float) -> bool:
            return probability > 0 and share(what) < probability

        ttl_share = share("life") if is_drawn("evict", assumptions.early_eviction_probability) else 1.0
        if dated and is_drawn("dated", assumptions.visibility_lag_by_date):
            self.latest = max(self.latest, self.start + lag_s(dated, share("delay")))
        lag = assumptions.visibility_lag_s if is_drawn("lag", assumptions.visibility_lag_probability) else 0.0
        return new_entry(self.rules, ttl, self.start, max(self.first_token + lag, self.latest), ttl_share)


def lag_s(lag: VisibilityLag, share: float) -> float:
    """The quantile of the lag, in seconds, for a share in [0, 1)."""
    from math import exp, log
    from statistics import NormalDist

    return exp(NormalDist(log(lag.median_s), lag.sigma).inv_cdf(max(share, SMALLEST_SHARE)))


def _key(prefix: Prefix, ttl: str, assumptions: Assumptions) -> Key:
    return (prefix, ttl if assumptions.ttl_in_key else "")
