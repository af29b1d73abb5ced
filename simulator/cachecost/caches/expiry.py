"""When what is cached can be read, and when it expires: rules 11 to 13 of docs/rulebook.md, for all that ask.

The matching models keep a `CacheEntry` for each cached prefix. What knows ages alone (bills, status lines, seeds as
arrays, the optimum's blocks) asks `is_readable` and `has_expired`. Times are seconds. The TTLs in seconds are those of
the rules, else `USUAL_TTL_S` (`providers/usage.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Literal, overload

import msgspec

from cachecost.providers.usage import ttl_seconds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachecost.providers.rules import ModelRules

State = Literal["absent", "live", "expired", "unreadable"]
BEFORE_TIME = -inf
"""When something was cached that was there before everything else."""


@overload
def is_readable(now: float, started: float, readable_at: float) -> bool: ...
@overload
def is_readable(
    now: NDArray[np.float64], started: NDArray[np.float64], readable_at: NDArray[np.float64]
) -> NDArray[np.bool_]: ...
def is_readable(
    now: float | NDArray[np.float64], started: float | NDArray[np.float64], readable_at: float | NDArray[np.float64]
) -> bool | NDArray[np.bool_]:
    """Whether what a call wrote that began at `started` can be read: from its first token on, `readable_at`, and never
    by a call that starts with it (rule 11). Of arrays, an array."""
    return (now >= readable_at) & (now > started)


@overload
def has_expired(now: float, touched: float, ttl_s: float) -> bool: ...
@overload
def has_expired(
    now: NDArray[np.float64], touched: NDArray[np.float64], ttl_s: NDArray[np.float64]
) -> NDArray[np.bool_]: ...
def has_expired(
    now: float | NDArray[np.float64], touched: float | NDArray[np.float64], ttl_s: float | NDArray[np.float64]
) -> bool | NDArray[np.bool_]:
    """Whether the TTL has passed since the start of the call that last wrote or read it, `touched`: at exactly its TTL
    it has (rule 12). Of arrays, an array."""
    return now - touched >= ttl_s


def live_tokens(tokens: int, hour_tokens: int, ttl: str, age_s: float | None, ttl_s: Mapping[str, float]) -> int:
    """How much of a cached prefix has not expired, `age_s` after it was last written or read; all of it where that is
    unknown. Its end has this TTL, its first `hour_tokens` have 1h."""
    if age_s is None or age_s < ttl_seconds(ttl, ttl_s):
        return tokens
    return hour_tokens if age_s < ttl_seconds("1h", ttl_s) else 0


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
        """As `is_readable` and `has_expired` say, written out: every lookup asks it."""
        if now < self.readable_at or now <= self.started:
            return "unreadable"
        return "live" if now - self.touched < self.ttl_s else "expired"

    def expired_s(self, now: float) -> float | None:
        """Seconds since it expired; None: it has not, or cannot be read yet."""
        return now - self.touched - self.ttl_s if self.state(now) == "expired" else None

    def is_hit(self, now: float, tokens: int) -> bool:
        """Whether a call at `now` reads the entry, which is so many tokens long."""
        return tokens >= self.minimum and self.state(now) == "live"


def ttl_s_of(rules: ModelRules, ttl: str = "5m") -> float:
    """A host's TTL in seconds, by default its only or short one; infinite where the rules state none."""
    return rules.ttl_s.get(ttl, inf)


def new_entry(rules: ModelRules, ttl: str, start: float, readable_at: float, share: float = 1.0) -> CacheEntry:
    """The entry that a call which starts at `start` writes; it expires after a `share` of its TTL (rule 14)."""
    return CacheEntry(rules.minimum_tokens, ttl, rules.ttl_s.get(ttl, inf) * share, start, start, readable_at)


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
    return min(one, other, key=lambda ttl: ttl_s_of(rules, ttl))
