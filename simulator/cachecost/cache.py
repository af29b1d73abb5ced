"""The prefix cache: look up, write, age (rules 7-15). No clock, no randomness: time is an argument."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import MarkedPrefix, Prompt
from cachecost.providers.rules import ModelRules, Switches

Key = tuple[Prefix, str]
State = Literal["absent", "live", "expired", "unreadable"]


@dataclass(slots=True)
class Entry:
    """A cached prefix. Times are seconds; `touched` is the start of the call that wrote or read it last."""

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


@dataclass(frozen=True, slots=True)
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


class PrefixCache:
    """Entries of all workspaces (a prefix belongs to one: its root differs)."""

    def __init__(self) -> None:
        self._entries: dict[Key, Entry] = {}
        self._written = 0

    def call(self, prompt: Prompt, rules: ModelRules, start: float, first_token_s: float = 0.0) -> Outcome:
        """Look up `prompt`, write what its marks ask for, and say how its tokens divide.

        `start` and `first_token_s` are seconds. Calls come in the order they start.
        """
        marks = tuple(mark for mark in prompt.marks if mark.prefix.tokens >= rules.minimum_tokens)
        found = self._find(marks, rules, start)
        hit = found[0] if found else None
        if found:
            self._read(found, marks, rules, start, first_token_s)
        depth = hit.depth if hit else 0
        for mark in marks:
            if mark.prefix.depth > depth:
                self._write(mark.prefix, mark.ttl, mark.ttl, rules, start, first_token_s)
        return _bill(prompt, marks, hit)

    def state(self, prefix: Prefix, ttl: str, rules: ModelRules, now: float) -> State:
        """How the entry at `prefix` stands at `now`."""
        entry = self._entries.get(_key(prefix, ttl, rules.switches))
        return entry.state(now) if entry else "absent"

    def _find(self, marks: tuple[MarkedPrefix, ...], rules: ModelRules, now: float) -> tuple[Prefix, Entry] | None:
        for mark in reversed(marks):
            node: Prefix | None = mark.prefix
            while node is not None and _steps(mark.prefix, node, rules) < rules.lookback_positions:
                entry = self._entries.get(_key(node, mark.ttl, rules.switches)) if node.block else None
                if entry and entry.state(now) == "live":
                    return node, entry
                node = node.parent
        return None

    def _read(
        self,
        found: tuple[Prefix, Entry],
        marks: tuple[MarkedPrefix, ...],
        rules: ModelRules,
        start: float,
        first_token_s: float,
    ) -> None:
        hit, entry = found
        entry.touched = max(entry.touched, start)
        if rules.switches.shallow_marks == "ignore":
            return
        for mark in marks:
            if mark.prefix.depth <= hit.depth:
                self._shallow(mark, entry, rules, start, first_token_s)

    def _shallow(self, mark: MarkedPrefix, hit: Entry, rules: ModelRules, start: float, first_token_s: float) -> None:
        """Rule 13: before the hit, a live entry is refreshed and a dead one written again at no charge."""
        entry = self._entries.get(_key(mark.prefix, mark.ttl, rules.switches))
        if entry and entry.state(start) == "live":
            entry.touched = max(entry.touched, start)  # the entry that was hit, too: no harm done twice
        elif rules.switches.shallow_marks == "rewrite":
            shorter = min(mark.ttl, hit.ttl, key=lambda ttl: rules.ttl_s[ttl])
            self._write(mark.prefix, mark.ttl, shorter, rules, start, first_token_s)

    def _write(
        self, prefix: Prefix, key_ttl: str, ttl: str, rules: ModelRules, start: float, first_token_s: float
    ) -> None:
        self._written += 1
        switches = rules.switches
        lag = (
            switches.visibility_lag_s
            if _drawn("lag", self._written, switches.visibility_lag_probability, switches)
            else 0
        )
        early = _drawn("evict", self._written, switches.early_eviction_probability, switches)
        life = rules.ttl_s[ttl] * (_share("life", self._written, switches) if early else 1.0)
        self._entries[_key(prefix, key_ttl, switches)] = Entry(ttl, life, start, start, start + first_token_s + lag)


def _key(prefix: Prefix, ttl: str, switches: Switches) -> Key:
    return (prefix, ttl if switches.ttl_in_key else "")


def _steps(mark: Prefix, node: Prefix, rules: ModelRules) -> int:
    """Lookback steps from `mark` back to `node`; the mark's own position is 0 steps away."""
    return mark.position - node.position if rules.collapses_runs else mark.depth - node.depth


def _bill(prompt: Prompt, marks: tuple[MarkedPrefix, ...], hit: Prefix | None) -> Outcome:
    """Rule 15: A is the hit, B the last 1h mark after it, C the last mark."""
    a = hit.tokens if hit else 0
    depth = hit.depth if hit else 0
    after = [mark for mark in marks if mark.prefix.depth > depth]
    b = max((mark.prefix.tokens for mark in after if mark.ttl == "1h"), default=a)
    c = max((mark.prefix.tokens for mark in after), default=a)
    return Outcome(a, b - a, c - b, prompt.total_tokens - c, hit, marks)


def _drawn(what: str, number: int, probability: float, switches: Switches) -> bool:
    return probability > 0 and _share(what, number, switches) < probability


def _share(what: str, number: int, switches: Switches) -> float:
    """A reproducible share in [0, 1) for the `number`-th write: the seed decides, no generator's state does."""
    digest = blake2b(f"{switches.seed}:{what}:{number}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
