"""The prefix cache: look up, write, age (rules 7-15). No clock, no randomness: time is an argument."""

from __future__ import annotations

from typing import Literal

import msgspec

from cachecost.base.seeded_draws import seeded_share
from cachecost.base.structs import value
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.lookback import lookback_steps
from cachecost.prompts.render import MarkedPrefix, Prompt
from cachecost.prompts.sizes import AS_COUNTED, Sizes
from cachecost.providers.rules import ModelRules, Switches, VisibilityLag
from cachecost.providers.usage import Usage

Key = tuple[Prefix, str]
SMALLEST_SHARE = 2**-64
LIVES = ("5m", "1h")
"""The short and the long lifetime."""
State = Literal["absent", "live", "expired", "unreadable"]
BEFORE_TIME = float("-inf")


class Entry(msgspec.Struct, eq=False):
    """A cached prefix. Times are seconds; `touched` is the start of the call that wrote or read it last.

    `minimum` is the length in tokens that it must have, or it was never written (rule 8): asked when it
    is looked up, since what is known of its length may depend on who asks.
    """

    minimum: int
    ttl: str
    ttl_s: float
    started: float
    touched: float
    readable_at: float

    def state(self, now: float) -> State:
        """Readable from its writer's first token, never at the writer's own start; dead at its TTL (rules 11, 12)."""
        if now < self.readable_at or now <= self.started:
            return "unreadable"
        return "live" if now - self.touched < self.ttl_s else "expired"


@value
class Outcome:
    """What the cache did with a prompt. `read` + `write_1h` + `write_5m` + `uncached` is the whole prompt.

    `marks` are those that reached the minimum; `hit` is the prefix that was read, None for a miss.
    """

    read: int
    write_1h: int
    write_5m: int
    uncached: int
    hit: Prefix | None
    marks: tuple[MarkedPrefix, ...]

    @property
    def usage(self) -> Usage:
        return self.usage_with(0)

    @property
    def total(self) -> int:
        """Tokens of the whole prompt."""
        return self.read + self.write_1h + self.write_5m + self.uncached

    def usage_with(self, output_tokens: int) -> Usage:
        """The usage of a call whose answer has `output_tokens`."""
        return Usage(self.uncached, self.read, self.write_5m, self.write_1h, output_tokens)


class PrefixCache:
    """Entries of all workspaces (a prefix belongs to one: its root differs)."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._written = 0

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: Sizes = AS_COUNTED,
    ) -> Outcome:
        """Look up `prompt`, write what its marks ask for, and say how its tokens divide.

        `start` and `first_token_s` are seconds. Calls come in the order they start.
        """
        places = prompt.boundaries
        found = (
            self._find(prompt.marks, rules, start, sizes) if places is None else self._at(places, rules, start, sizes)
        )
        hit = found[0] if found else None
        writer = _Writer(rules, start, start + first_token_s)
        if found:
            self._read(found, prompt.marks, writer)
        depth = hit.depth if hit else 0
        for mark in prompt.marks:
            if mark.prefix.depth > depth:
                self._write(mark.prefix, mark.ttl, mark.ttl, writer)
        minimum = rules.minimum_tokens
        marks = tuple([mark for mark in prompt.marks if sizes.of(mark.prefix) >= minimum])
        return _bill(prompt, marks, hit, sizes)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """How the entry at `prefix` stands at `now`."""
        entry = self._entries.get(_key(prefix, ttl, rules.switches))
        return entry.state(now) if entry else "absent"

    def entry(self, prefix: Prefix, ttl: str, rules: ModelRules) -> Entry:
        """The entry at `prefix`, alive or not. Raises KeyError where there is none."""
        return self._entries[_key(prefix, ttl, rules.switches)]

    def keep(self, prefix: Prefix, ttl: str, rules: ModelRules, entry: Entry) -> Entry:
        """Put an entry there, as if a call had written it."""
        self._entries[_key(prefix, ttl, rules.switches)] = entry
        return entry

    def warm(self, prefix: Prefix, ttl: str, rules: ModelRules, start: float) -> Entry:
        """Put an entry there that can be read at `start`, as if it had been written long ago and used just now."""
        life = rules.ttl_s[ttl]
        return self.keep(prefix, ttl, rules, Entry(rules.minimum_tokens, ttl, life, BEFORE_TIME, start, BEFORE_TIME))

    def _find(
        self, marks: tuple[MarkedPrefix, ...], rules: ModelRules, now: float, sizes: Sizes
    ) -> tuple[Prefix, Entry] | None:
        for mark in reversed(marks):
            node: Prefix | None = mark.prefix
            while node is not None and lookback_steps(mark.prefix, node, rules) < rules.lookback_positions:
                entry = self._entries.get(_key(node, mark.ttl, rules.switches)) if node.block else None
                if entry and entry.state(now) == "live" and sizes.of(node) >= entry.minimum:
                    return node, entry
                node = node.parent
        return None

    def _at(
        self, boundaries: tuple[Prefix, ...], rules: ModelRules, now: float, sizes: Sizes
    ) -> tuple[Prefix, Entry] | None:
        """The longest entry that ends at one of the places where the host looks."""
        lives = LIVES if rules.switches.ttl_in_key else LIVES[:1]
        for node in sorted(boundaries, key=lambda one: one.depth, reverse=True):
            for ttl in lives:
                entry = self._entries.get(_key(node, ttl, rules.switches))
                if entry and entry.state(now) == "live" and sizes.of(node) >= entry.minimum:
                    return node, entry
        return None

    def _read(self, found: tuple[Prefix, Entry], marks: tuple[MarkedPrefix, ...], writer: _Writer) -> None:
        hit, entry = found
        entry.touched = max(entry.touched, writer.start)
        if writer.rules.switches.shallow_marks == "ignore":
            return
        for mark in marks:
            if mark.prefix.depth <= hit.depth:
                self._shallow(mark, entry, writer)

    def _shallow(self, mark: MarkedPrefix, hit: Entry, writer: _Writer) -> None:
        """Rule 13: before the hit, a live entry is refreshed and a dead one written again at no charge."""
        rules, start = writer.rules, writer.start
        entry = self._entries.get(_key(mark.prefix, mark.ttl, rules.switches))
        if entry and entry.state(start) == "live":
            entry.touched = max(entry.touched, start)  # the entry that was hit, too: no harm done twice
        elif rules.switches.shallow_marks == "rewrite":
            shorter = min(mark.ttl, hit.ttl, key=lambda ttl: rules.ttl_s[ttl])
            self._write(mark.prefix, mark.ttl, shorter, writer)

    def _write(self, prefix: Prefix, key_ttl: str, ttl: str, writer: _Writer) -> None:
        self._written += 1
        rules, start = writer.rules, writer.start
        readable_at, life = writer.readable_at(self._written), rules.ttl_s[ttl]
        if rules.switches.is_drawn:
            life *= _share_lived(self._written, rules.switches)
        self.keep(prefix, key_ttl, rules, Entry(rules.minimum_tokens, ttl, life, start, start, readable_at))


class _Writer(msgspec.Struct):
    """A call that writes: its rules, its start and its first token (seconds). It writes what is shallower first."""

    rules: ModelRules
    start: float
    first_token: float
    latest: float = 0.0
    """When the deepest entry so far can be read, of those that the dated rows delay."""

    def readable_at(self, number: int) -> float:
        """From when the entry can be read that is the `number`-th of all: from the first token, or later (rule 14)."""
        switches, dated = self.rules.switches, self.rules.visibility_lag
        if not switches.is_drawn:
            return self.first_token
        if dated and _drawn("dated", number, switches.visibility_lag_by_date, switches):
            self.latest = max(self.latest, self.start + lag_s(dated, _share("delay", number, switches)))
        return max(self.first_token + _lag(number, switches), self.latest)


def lag_s(lag: VisibilityLag, share: float) -> float:
    """The lag, in seconds, that this share (in [0, 1)) of all entries falls short of."""
    from math import exp, log
    from statistics import NormalDist

    return exp(NormalDist(log(lag.median_s), lag.sigma).inv_cdf(max(share, SMALLEST_SHARE)))


def _lag(number: int, switches: Switches) -> float:
    """Seconds that the `number`-th entry is readable late; 0 unless switched on (rule 14)."""
    is_late = _drawn("lag", number, switches.visibility_lag_probability, switches)
    return switches.visibility_lag_s if is_late else 0.0


def _share_lived(number: int, switches: Switches) -> float:
    """The share of its lifetime that the `number`-th entry lives; 1 unless switched on (rule 14)."""
    is_early = _drawn("evict", number, switches.early_eviction_probability, switches)
    return _share("life", number, switches) if is_early else 1.0


def _key(prefix: Prefix, ttl: str, switches: Switches) -> Key:
    return (prefix, ttl if switches.ttl_in_key else "")


def _bill(prompt: Prompt, marks: tuple[MarkedPrefix, ...], hit: Prefix | None, sizes: Sizes) -> Outcome:
    """Rule 15: A is the hit, B the last 1h mark after it, C the last mark."""
    a = b = c = sizes.of(hit) if hit else 0
    depth = hit.depth if hit else 0
    after = [(sizes.of(mark.prefix), mark.ttl) for mark in marks if mark.prefix.depth > depth]
    if after:
        b = max((size for size, ttl in after if ttl == "1h"), default=a)
        c = max(after)[0]
    return Outcome(a, b - a, c - b, sizes.total(prompt) - c, hit, marks)


def _drawn(what: str, number: int, probability: float, switches: Switches) -> bool:
    return probability > 0 and _share(what, number, switches) < probability


def _share(what: str, number: int, switches: Switches) -> float:
    """A share in [0, 1) for the `number`-th write."""
    return seeded_share(switches.seed, what, number)
