"""The cache that the bills of a file imply: after each call, how long the cached prefix is, its TTL and its age.

No simulation: a call caches what it read and what it wrote. A prefix written with 1h ends where that part of the write
ended; what follows it has 5m (rule 15).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from cachecost.conversations.billed_calls import BilledCall

if TYPE_CHECKING:
    from cachecost.providers.rules import ModelRules

UNKNOWN_TTLS: Mapping[str, float] = {"5m": 300.0, "1h": 3600.0}
"""Of a model that no rules are known for."""


class CachedPrefix(msgspec.Struct, gc=False):
    """What is cached after a call.

    `tokens` is the length of the cached prefix, `ttl` that of its end, `hour_tokens` the length of the part with 1h.
    `touched` is the start of the last call that read or wrote all of it, in seconds (None: unknown). `ttl_s` are the
    host's TTLs.
    """

    tokens: int
    ttl: str
    hour_tokens: int
    touched: float | None
    ttl_s: Mapping[str, float]
    has_thinking: bool = False

    def live_tokens(self, at: float | None) -> int:
        """How much of the prefix has not expired at this time; all of it where a time is unknown."""
        age = self.age(at)
        if age is None or age < self.seconds(self.ttl):
            return self.tokens
        return self.hour_tokens if age < self.seconds("1h") else 0

    def touch(self, at: float | None) -> None:
        """Note that all of the prefix was read at this time."""
        if at is not None and (self.touched is None or at > self.touched):
            self.touched = at

    def age(self, at: float | None) -> float | None:
        """Seconds since the prefix was last read or written."""
        return None if at is None or self.touched is None else at - self.touched

    def seconds(self, ttl: str) -> float:
        """A TTL in seconds; a host with one TTL has only the short one."""
        return self.ttl_s.get(ttl) or self.ttl_s.get("5m") or UNKNOWN_TTLS[ttl]


def state_after(call: BilledCall, before: CachedPrefix | None, rules: ModelRules | None) -> CachedPrefix:
    """The state that the bill of `call` implies; `before` is that after the call that it continues."""
    read, five, hour = call.tokens[1:4]
    tokens = read + five + hour
    ttl = "5m" if five else "1h" if hour else before.ttl if before else "5m"
    hour_tokens = read + hour if hour else min(before.hour_tokens, read) if before else 0
    if rules is not None and rules.is_automatic:
        tokens = call.total_input
    thought = call.has_thinking or bool(before and before.has_thinking and "human" not in call.events)
    ttl_s = rules.ttl_s if rules is not None else UNKNOWN_TTLS
    keeps_age = read and before is not None and rules is not None and not rules.refreshes_on_read
    touched = before.touched if keeps_age and before else call.start  # what was read expires first, and all after it
    return CachedPrefix(tokens, ttl, hour_tokens, touched, ttl_s, thought)
