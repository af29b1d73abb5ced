"""The prefix cache: look up, write, age (rules 7-15). No clock, no randomness: time is an argument.

How much of a changed prompt matches the previous one after they diverge.

Why a call read and wrote what it did: one cause of a closed list (docs/reference/output-formats.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from json import dumps
from typing import Literal, Protocol

import msgspec

from cachecost.base.digests import seeded_share
from cachecost.base.structs import value
from cachecost.prompts.blocks import Block, Layer, Prefix, Thread
from cachecost.prompts.output_format import effort_asked, model_of, output_format, thinking_asked
from cachecost.prompts.render import AS_COUNTED, BreakpointPrefix, PrefixSizes, Prompt, lookback_window
from cachecost.prompts.request import Request
from cachecost.prompts.translated import EARLIER_ENDS
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.rules import ModelRules, VisibilityLag
from cachecost.providers.usage import Usage

ALIKE = 0.6
"""The share of two texts, from their ends inwards, that must match for one to be a new version of the other."""
ALIKE_IN_SIZE = 0.02
"""Without content, two blocks of tools or system are versions of one if their sizes differ by at most this share."""


def path(end: Prefix, after: int) -> list[Prefix]:
    """The prefixes of `end` that are more than `after` blocks long, in order."""
    nodes: list[Prefix] = []
    node: Prefix | None = end
    while node is not None and node.depth > after:
        if node.block is not None:
            nodes.append(node)
        node = node.parent
    return nodes[::-1]


def ancestor(node: Prefix, depth: int) -> Prefix:
    """The prefix of `node` that is `depth` blocks long. Takes time for the blocks in between."""
    while node.depth > depth or (node.block is None and node.parent is not None):
        assert node.parent is not None
        node = node.parent
    return node


def common(one: Prefix, other: Prefix) -> Prefix | None:
    """The longest common prefix; None for prompts of different tokenizers, which share no tree."""
    a: Prefix | None = one
    b: Prefix | None = other
    while a is not b and a is not None and b is not None:
        a_is_deeper = (a.depth, a.block is None) >= (b.depth, b.block is None)
        a, b = (a.parent, b) if a_is_deeper and a.parent else (a, b.parent)
    return a if a is b else None


def unchanged(before: Sequence[Prefix], now: Sequence[Prefix]) -> list[Prefix]:
    """The prefixes of `now` whose last block was sent before, in order: what would be read if nothing had changed.

    Both lists start where the prompts diverge; `before` ends with the last cached prefix. A block counts if it is
    equal, or in the place of another version of itself. In messages a version counts only if an equal block follows, or
    if it is the first difference and the conversation went on: the last message may be a new one that begins alike.
    """
    from difflib import SequenceMatcher  # most replays compare nothing

    kept: list[Prefix] = []
    versions: list[Prefix] = []
    blocks = [node.block.digest if node.block else b"" for node in before]
    others = [node.block.digest if node.block else b"" for node in now]
    for kind, i, j, k, m in SequenceMatcher(None, blocks, others, autojunk=False).get_opcodes():
        if kind == "equal":
            kept += [*versions, *now[k:m]]
            versions = []
        elif kind == "replace":
            for old, new in zip(before[i:j], now[k:m], strict=False):
                if old.layer is new.layer and old.block and new.block and are_versions(old.block, new.block, new.layer):
                    (versions if new.layer is Layer.MESSAGES else kept).append(new)
    went_on = any(node.block and node.block.role == "assistant" for node in now)
    if versions and versions[0] is now[0] and went_on:
        kept.append(versions[0])
    return kept


def are_versions(old: Block, new: Block, layer: Layer) -> bool:
    """Whether one block is another version of the other: most of its text, or without content about its size."""
    if (old.kind, old.role) != (new.kind, new.role):
        return False
    if old.digest == new.digest:
        return True
    if old.content is None or new.content is None:
        return layer is not Layer.MESSAGES and abs(old.size - new.size) <= ALIKE_IN_SIZE * max(old.size, new.size)
    return share_alike(old, new) >= ALIKE


def share_alike(old: Block, new: Block) -> float:
    """The share of the longer of two texts that both have at their beginning and at their end."""
    one, other = text_of(old), text_of(new)
    return alike(one, other) / max(1, len(one), len(other))


def text_of(block: Block) -> str:
    """The text of a text block, or the JSON of any other block as sent."""
    content = block.content or {}
    text = content.get("text")
    return text if block.kind == "text" and isinstance(text, str) else dumps(content, ensure_ascii=False)


def first_difference(one: str, other: str) -> int:
    """The index of the first character that differs."""
    length = min(len(one), len(other))
    if one[:length] == other[:length]:
        return length
    low, high = 0, length
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle)
    return low


def alike(one: str, other: str) -> int:
    """The number of characters that two texts share at their beginning and at their end."""
    begin = first_difference(one, other)
    rest = min(len(one), len(other)) - begin
    return begin + first_difference(one[::-1][:rest], other[::-1][:rest])


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
            is_early = _is_drawn(
                "evict", self._written, rules.assumptions.early_eviction_probability, rules.assumptions
            )
            ttl_s *= seeded_share(rules.assumptions.seed, "life", self._written) if is_early else 1.0
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
        is_late = _is_drawn("lag", number, assumptions.visibility_lag_probability, assumptions)
        return max(self.first_token + (assumptions.visibility_lag_s if is_late else 0.0), self.latest)


def lag_s(lag: VisibilityLag, share: float) -> float:
    """The quantile of the lag, in seconds, for a share in [0, 1)."""
    from math import exp, log
    from statistics import NormalDist

    return exp(NormalDist(log(lag.median_s), lag.sigma).inv_cdf(max(share, SMALLEST_SHARE)))


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


Cause = Literal[
    "hit",
    "new_content",
    "cold_start",
    "content_changed",
    "tools_changed",
    "system_changed",
    "tool_choice_changed",
    "thinking_changed",
    "effort_changed",
    "output_format_changed",
    "images_changed",
    "speed_changed",
    "model_changed",
    "thinking_stripped",
    "ttl_expired",
    "lookback_exceeded",
    "below_minimum",
    "no_breakpoint",
    "breakpoint_misplaced",
    "written_never_read",
    "hour_unused",
    "concurrent_write",
    "compaction",
    "fork",
    "warm_start",
    "visibility_lag",
    "billed_not_explained",
    "unknown",
]


ENTRY_STATES: dict[str, Cause] = {"expired": "ttl_expired", "unreadable": "concurrent_write"}
"""The cause where an entry was looked for and its state is why it was not read."""


UNWRITTEN: frozenset[Cause] = frozenset({"no_breakpoint", "breakpoint_misplaced", "below_minimum", "fork"})
"""Causes of what no entry ends at: with other breakpoints, a call before would have written more."""
SHORTER = 0.75
"""A compacted conversation has at most this share of the messages that it had."""


class CacheState(Protocol):
    """A cache that can say how an entry stands: absent, live, expired or unreadable."""

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State: ...


class ComparableCall(Protocol):
    """An earlier call to compare with: its request, the rendered prompt, and the rules of its host and model."""

    @property
    def request(self) -> Request: ...
    @property
    def prompt(self) -> Prompt: ...
    @property
    def rules(self) -> ModelRules: ...


class CachedCall(ComparableCall, Protocol):
    """An earlier call, and the deepest prefix that it had in the cache."""

    @property
    def entry(self) -> Prefix | None: ...
    @property
    def ttl(self) -> str: ...


@value
class EarlierEntry:
    """The deepest entry of the earlier call `seen`, and its state: absent, live, expired, unreadable or changed."""

    seen: ComparableCall
    entry: Prefix | None
    state: str


def find_earlier_entry(cache: CacheState, prompt: Prompt, seen: CachedCall | None, start: float) -> EarlierEntry | None:
    """What an earlier call of the same conversation left for this one, and its state at `start` (seconds)."""
    if seen is None or seen.entry is None:
        return EarlierEntry(seen, None, "absent") if seen else None
    reaches = ancestor(prompt.end, seen.entry.depth) is seen.entry
    state = cache.state(seen.entry, seen.ttl, seen.rules, start) if reaches else "changed"
    return EarlierEntry(seen, seen.entry, state)


def cause_of(request: Request, prompt: Prompt, outcome: Outcome, lost: EarlierEntry | None, rules: ModelRules) -> Cause:
    """The cause of how a call's prompt divided, on a host without a lookback from breakpoints."""
    if rules.is_automatic:
        return _unmarked_cause(request, prompt, outcome, lost, rules)
    if not outcome.breakpoints:
        return "below_minimum" if prompt.breakpoints else "no_breakpoint"
    read = outcome.hit.depth if outcome.hit else 0
    if read >= outcome.breakpoints[-1].prefix.depth:
        return "hit"
    if lost is None:
        return "hit" if outcome.hit else "cold_start"
    if lost.entry is None or (lost.state != "changed" and read >= lost.entry.depth):
        return "hit" if outcome.hit else "new_content"
    if lost.state in ENTRY_STATES:
        return ENTRY_STATES[lost.state]
    if lost.state == "live":
        return _cause_of_distance(lost.entry, prompt, outcome.breakpoints)
    return find_change(request, prompt, lost.seen, rules)


def _cause_of_distance(entry: Prefix, prompt: Prompt, breakpoints: Sequence[BreakpointPrefix]) -> Cause:
    """Why breakpoints miss an entry that could be read: they look back, but not so far, or none stands behind it."""
    if prompt.boundaries is None:
        is_too_far_back = bool(breakpoints) and breakpoints[-1].prefix.depth >= entry.depth
    else:
        ends = [place.depth for place in prompt.boundaries if place.layer is Layer.MESSAGES]
        is_too_far_back = len(ends) > EARLIER_ENDS and entry.depth < min(ends)
    if is_too_far_back:
        return "lookback_exceeded"
    has_one_there = any(breakpoint.prefix.layer is entry.layer for breakpoint in breakpoints)
    return "breakpoint_misplaced" if has_one_there else "no_breakpoint"


def _unmarked_cause(
    request: Request, prompt: Prompt, outcome: Outcome, lost: EarlierEntry | None, rules: ModelRules
) -> Cause:
    """As `cause_of`, on a host that caches by itself: later calls may find the end of each prompt."""
    if lost is None:
        return "hit" if outcome.hit else "cold_start"
    if lost.entry is None:  # the earlier call had no breakpoint, on a model that needs one
        return "hit" if outcome.hit else find_change(request, prompt, lost.seen, rules)
    if outcome.hit and outcome.hit.depth >= lost.entry.depth:
        return "hit"
    if lost.state in ENTRY_STATES:
        return ENTRY_STATES[lost.state]
    if lost.state == "live":
        return "hit" if outcome.hit else "below_minimum"
    return find_change(request, prompt, lost.seen, rules) if lost.state == "changed" else "unknown"


@value
class UnreadPrefix:
    """A prefix that an earlier call sent and this one did not read.

    `tokens` is its length. `entry` is the deepest entry on the way to it, in this `state` (None, "absent": there is
    none). `is_fork`: see `is_fork`. `is_off_path`: the call before cached a prefix that this prompt does not have.
    """

    tokens: int
    entry: Prefix | None
    state: State
    is_fork: bool
    is_off_path: bool


def cause_of_unread(unread: UnreadPrefix, prompt: Prompt, rules: ModelRules) -> Cause:
    """Why a host that looks back from breakpoints did not read the prefix: the first row that applies."""
    distance: Cause = _cause_of_distance(unread.entry, prompt, prompt.breakpoints) if unread.entry else "unknown"
    causes: list[tuple[bool, Cause]] = [
        (not prompt.breakpoints, "no_breakpoint"),
        (unread.state == "unreadable", ENTRY_STATES["unreadable"]),
        (unread.is_fork, "fork"),
        (unread.state == "expired", ENTRY_STATES["expired"]),
        (unread.entry is not None, distance),
        (unread.tokens < rules.minimum_tokens, "below_minimum"),
        (unread.is_off_path, "breakpoint_misplaced"),
    ]
    return next((cause for applies, cause in causes if applies), "no_breakpoint")


def is_fork(
    request: Request, prompt: Prompt, rules: ModelRules, shared: Prefix, earlier: ComparableCall | None
) -> bool:
    """Whether the conversation restarts from an earlier place and continues differently; `shared` was sent before.

    Replacing the last message while the conversation goes on is no fork, nor is a change before messages that stay.
    """
    if earlier is None or earlier.rules.model != rules.model:
        return False
    thread, other = request.thread, earlier.request.thread
    length = thread.common(other).length
    is_parted = 0 < length < min(other.length, thread.length) and shared.layer == prompt.end.layer
    is_left = length < other.length - 1 or thread.length <= other.length
    return is_parted and is_left and not _goes_on_alike(thread, other, length)


def _goes_on_alike(one: Thread, other: Thread, length: int) -> bool:
    """Whether two threads have a message in common after the first `length`, where they part."""
    known = {node.message.digest for node in one.back() if node.length > length and node.message}
    return any(node.message.digest in known for node in other.back() if node.length > length and node.message)


def find_change_or_compaction(request: Request, prompt: Prompt, seen: ComparableCall, rules: ModelRules) -> Cause:
    """As `find_change`; changed content is a compaction where the conversation became much shorter."""
    cause = find_change(request, prompt, seen, rules)
    is_shorter = request.thread.length <= SHORTER * seen.request.thread.length
    return "compaction" if cause == "content_changed" and is_shorter else cause


def find_change(request: Request, prompt: Prompt, seen: ComparableCall, rules: ModelRules) -> Cause:
    """The first difference in prompt order: model, speed, tools, cache key and text of system, key of messages."""
    before = seen.request
    has_cache_key = rules.keyed_by is None or prompt.cache_keys != seen.prompt.cache_keys
    differs: list[tuple[bool, Cause]] = [
        (model_of(rules) != model_of(seen.rules), "model_changed"),
        (_is_fast(request) != _is_fast(before), "speed_changed"),
        (request.tools.digest != before.tools.digest, "tools_changed"),
        (has_cache_key and output_format(request.params) != output_format(before.params), "output_format_changed"),
        (request.system.digest != before.system.digest, "system_changed"),
        (prompt.cache_keys[1] != seen.prompt.cache_keys[1], "system_changed"),
        (
            _choice(request) != _choice(before) and prompt.cache_keys[2] != seen.prompt.cache_keys[2],
            "tool_choice_changed",
        ),
        (has_cache_key and thinking_asked(request, rules) != thinking_asked(before, seen.rules), "thinking_changed"),
        (has_cache_key and effort_asked(request, rules) != effort_asked(before, seen.rules), "effort_changed"),
        (request.thread.has_image != before.thread.has_image, "images_changed"),
        (before.thread.has_thinking and _is_thinking_stripped(request, prompt, seen), "thinking_stripped"),
        (rules.keyed_by is not None and has_cache_key, "unknown"),  # a parameter that no cause is named after
    ]
    return next((cause for differed, cause in differs if differed), "content_changed")


def _is_thinking_stripped(request: Request, prompt: Prompt, seen: ComparableCall) -> bool:
    """Whether the prompts diverge at a thinking block that is sent again, but not rendered any more."""
    parted = common(seen.prompt.end, prompt.end)
    if parted is None or parted is seen.prompt.end:
        return False
    block = path(seen.prompt.end, parted.depth)[0].block
    if block is None or not block.is_thinking:
        return False
    again = request.thread.common(seen.request.thread).back()
    return any(block is other or block.digest == other.digest for node in again for other in node.message_blocks)


def _is_fast(request: Request) -> bool:
    return request.params.get("speed") == "fast"


def _choice(request: Request) -> object:
    return request.params.get("tool_choice")


def changed_parameter(cause: str, request: Request) -> object:
    """What a call states for the parameter that a cause is named after; "" for other causes."""
    params, config = request.params, request.params.get("output_config") or {}
    stated: dict[str, object] = {
        "model_changed": request.model,
        "speed_changed": params.get("speed") or "standard",
        "tool_choice_changed": params.get("tool_choice") or "auto",
        "thinking_changed": params.get("thinking") or "its default",
        "effort_changed": config.get("effort") or "its default",
    }
    return stated.get(cause, "")
