"""The prefix cache: look up, write, age (rules 7-15). No clock, no randomness: time is an argument."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Literal

import msgspec

from cachecost.base.seeded_draws import seeded_share
from cachecost.base.structs import value
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.lookback import lookback_window
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.sizes import AS_COUNTED, PrefixSizes
from cachecost.providers.rules import Assumptions, ModelRules, VisibilityLag
from cachecost.providers.usage import Usage

Key = tuple[Prefix, str]
"""A prefix, and the TTL of the breakpoint if the assumption `ttl_in_key` holds, else ""."""
SMALLEST_SHARE = 2**-64
TTLS = ("5m", "1h")
"""The short TTL and the long one."""
State = Literal["absent", "live", "expired", "unreadable"]
BEFORE_TIME = float("-inf")


class CacheEntry(msgspec.Struct, eq=False):
    """A cached prefix. Times are seconds; `touched` is the start of the call that wrote or refreshed it last.

    `minimum` is the length in tokens that it must reach, or it was never written (rule 8). It is checked at each
    lookup, since the length of the same prefix may be known more exactly in a later call.
    """

    minimum: int
    ttl: str
    ttl_s: float
    started: float
    touched: float
    readable_at: float

    def read(self, start: float, rules: ModelRules) -> None:
        """The call that starts at `start` reads the entry, which refreshes it where the rules say so (rule 12)."""
        if rules.refreshes_on_read and start > self.touched:
            self.touched = start

    def state(self, now: float) -> State:
        """Readable from its writer's first token, never at that writer's start; expired at its TTL (rules 11, 12)."""
        if now < self.readable_at or now <= self.started:
            return "unreadable"
        return "live" if now - self.touched < self.ttl_s else "expired"


def new_entry(rules: ModelRules, ttl: str, ttl_s: float, start: float, readable_at: float) -> CacheEntry:
    """The entry that a call which starts at `start` writes. Times and `ttl_s` are seconds."""
    return CacheEntry(rules.minimum_tokens, ttl, ttl_s, start, start, readable_at)


def refresh_before_hit(entry: CacheEntry | None, ttl: str, hit_ttl: str, start: float, rules: ModelRules) -> str | None:
    """Rule 13, for a breakpoint with this TTL at or before the hit. `entry` is the cache's entry there.

    Refreshes an entry that can be read. Returns the TTL with which any other is written again at no charge; None: it
    is not written.
    """
    assumption = rules.assumptions.shallow_breakpoints
    if assumption == "ignore":
        return None
    if entry is not None and entry.state(start) == "live":
        entry.read(start, rules)  # the entry that was hit a second time, which changes nothing
        return None
    return shorter_ttl(ttl, hit_ttl, rules) if assumption == "rewrite" else None


def shorter_ttl(one: str, other: str, rules: ModelRules) -> str:
    """The TTL of the two that lasts shorter under these rules."""
    return min(one, other, key=rules.ttl_s.__getitem__)


@value
class Outcome:
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
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        """Look up `prompt`, write at its breakpoints, and return how its tokens divide.

        `start` and `first_token_s` are seconds. Calls come in the order they start.
        """
        places = prompt.boundaries
        found = (
            self.find(prompt.breakpoints, rules, start, sizes)
            if places is None
            else self._find_at(places, rules, start, sizes)
        )
        hit = found[0] if found else None
        writer = _WritingCall(rules, start, start + first_token_s)
        if found:
            self._read(found, prompt.breakpoints, writer)
        depth = hit.depth if hit else 0
        for breakpoint in prompt.breakpoints:
            if breakpoint.prefix.depth > depth:
                self._write(breakpoint, breakpoint.ttl, writer)
        minimum = rules.minimum_tokens
        breakpoints = tuple([breakpoint for breakpoint in prompt.breakpoints if sizes.of(breakpoint.prefix) >= minimum])
        return _bill(prompt, breakpoints, hit, sizes)

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
        node: Prefix | None = end
        while node is not None and node.depth > depth:
            for ttl in ttls:
                entry = self._entries.get((node, ttl))
                if entry is not None and node.block is not None:
                    yield node, entry
            node = node.parent

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
        entry = CacheEntry(rules.minimum_tokens, ttl, rules.ttl_s[ttl], BEFORE_TIME, start, BEFORE_TIME)
        return self.keep(prefix, ttl, rules, entry)

    def forget_longer(self, prompt: Prompt, most: int, rules: ModelRules, sizes: PrefixSizes) -> None:
        """Forget what is cached of a prompt beyond its first `most` tokens."""
        node: Prefix | None = prompt.end
        while node is not None and sizes.of(node) > most:
            for ttl in TTLS:
                self._entries.pop(_key(node, ttl, rules.assumptions), None)
            node = node.parent

    def find(
        self, breakpoints: tuple[BreakpointPrefix, ...], rules: ModelRules, now: float, sizes: PrefixSizes
    ) -> tuple[Prefix, CacheEntry] | None:
        """Rule 9: the entry that the breakpoints find at `now` (seconds), and its prefix; None: a miss."""
        for breakpoint in reversed(breakpoints):
            for node in lookback_window(breakpoint.prefix, rules):
                entry = self._entries.get(_key(node, breakpoint.ttl, rules.assumptions))
                if entry and entry.state(now) == "live" and sizes.of(node) >= entry.minimum:
                    return node, entry
        return None

    def _find_at(
        self, boundaries: tuple[Prefix, ...], rules: ModelRules, now: float, sizes: PrefixSizes
    ) -> tuple[Prefix, CacheEntry] | None:
        """The longest entry that ends at one of the places where the host looks for one."""
        ttls = TTLS if rules.assumptions.ttl_in_key else TTLS[:1]
        for node in sorted(boundaries, key=lambda one: one.depth, reverse=True):
            for ttl in ttls:
                entry = self._entries.get(_key(node, ttl, rules.assumptions))
                if entry and entry.state(now) == "live" and sizes.of(node) >= entry.minimum:
                    return node, entry
        return None

    def _read(
        self, found: tuple[Prefix, CacheEntry], breakpoints: tuple[BreakpointPrefix, ...], writer: _WritingCall
    ) -> None:
        hit, entry = found
        rules, start = writer.rules, writer.start
        entry.read(start, rules)
        for breakpoint in breakpoints:
            if breakpoint.prefix.depth <= hit.depth:
                before = self._entries.get(_key(breakpoint.prefix, breakpoint.ttl, rules.assumptions))
                ttl = refresh_before_hit(before, breakpoint.ttl, entry.ttl, start, rules)
                if ttl is not None:
                    self._write(breakpoint, ttl, writer)

    def _write(self, breakpoint: BreakpointPrefix, ttl: str, writer: _WritingCall) -> None:
        """Write the entry of a breakpoint, with a TTL that may be shorter than the breakpoint's own (rule 13)."""
        self._written += 1
        rules = writer.rules
        readable_at, ttl_s = writer.readable_at(self._written), rules.ttl_s[ttl]
        if rules.assumptions.is_drawn:
            ttl_s *= _share_lived(self._written, rules.assumptions)
        self.keep(breakpoint.prefix, breakpoint.ttl, rules, new_entry(rules, ttl, ttl_s, writer.start, readable_at))


class _WritingCall(msgspec.Struct):
    """A call that writes: its rules, its start and its first token (seconds). It writes shorter prefixes first."""

    rules: ModelRules
    start: float
    first_token: float
    latest: float = 0.0
    """When the deepest entry so far becomes readable, of those that the dated rows delay."""

    def readable_at(self, number: int) -> float:
        """When the `number`-th entry of all becomes readable: at the first token, or later (rule 14)."""
        assumptions, dated = self.rules.assumptions, self.rules.visibility_lag
        if not assumptions.is_drawn:
            return self.first_token
        if dated and _is_drawn("dated", number, assumptions.visibility_lag_by_date, assumptions):
            self.latest = max(self.latest, self.start + lag_s(dated, seeded_share(assumptions.seed, "delay", number)))
        return max(self.first_token + _lag(number, assumptions), self.latest)


def lag_s(lag: VisibilityLag, share: float) -> float:
    """The quantile of the lag, in seconds, for a share in [0, 1)."""
    from math import exp, log
    from statistics import NormalDist

    return exp(NormalDist(log(lag.median_s), lag.sigma).inv_cdf(max(share, SMALLEST_SHARE)))


def _lag(number: int, assumptions: Assumptions) -> float:
    """Seconds by which the `number`-th entry becomes readable late; 0 without that assumption (rule 14)."""
    is_late = _is_drawn("lag", number, assumptions.visibility_lag_probability, assumptions)
    return assumptions.visibility_lag_s if is_late else 0.0


def _share_lived(number: int, assumptions: Assumptions) -> float:
    """The share of its TTL after which the `number`-th entry is evicted; 1 without that assumption (rule 14)."""
    is_early = _is_drawn("evict", number, assumptions.early_eviction_probability, assumptions)
    return seeded_share(assumptions.seed, "life", number) if is_early else 1.0


def _key(prefix: Prefix, ttl: str, assumptions: Assumptions) -> Key:
    return (prefix, ttl if assumptions.ttl_in_key else "")


def _bill(prompt: Prompt, breakpoints: tuple[BreakpointPrefix, ...], hit: Prefix | None, sizes: PrefixSizes) -> Outcome:
    """Rule 15: A is the hit, B the last 1h breakpoint after it, C the last breakpoint."""
    a = b = c = sizes.of(hit) if hit else 0
    depth = hit.depth if hit else 0
    after = [
        (sizes.of(breakpoint.prefix), breakpoint.ttl) for breakpoint in breakpoints if breakpoint.prefix.depth > depth
    ]
    if after:
        b = max((size for size, ttl in after if ttl == "1h"), default=a)
        c = max(after)[0]
    return Outcome(a, b - a, c - b, sizes.total(prompt) - c, hit, breakpoints)


def _is_drawn(what: str, number: int, probability: float, assumptions: Assumptions) -> bool:
    return probability > 0 and seeded_share(assumptions.seed, what, number) < probability
