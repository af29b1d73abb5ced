"""What is known of a session between two messages: its bill so far, its cache, and the size of its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from decimal import Decimal

from cachecost.base.structs import value
from cachecost.providers.usage import ZERO

DEFAULT_TTLS: Mapping[str, float] = {"5m": 300.0, "1h": 3600.0}
SUMMARY_TOKENS = 2_000
"""Of a compaction where the session had none: as `whatif` assumes."""


@value
class SessionState:
    """A session after its last call, from the bills of its main thread; times are in seconds since the epoch.

    `prompt_tokens` is what the next prompt repeats: input and output of the last call. `cached_tokens` of them were
    cached by it, the first `hour_tokens` for an hour; `ttl` is that of their end, and `last_used` when the call began
    (None: unknown). `static_tokens` is the length of tools and system prompt, an estimate (0: unknown), which other
    sessions keep warm until `static_warm_until`. `uncached_tokens` came behind the last breakpoint of the last call.

    `typical_new_tokens` is the median that a person's message added, `typical_output_tokens` that of an answer,
    `calls_per_message` that of the calls until the next one. `pauses` are the seconds before each message of a person.
    `summary_tokens` is what a compaction of this session left behind the static prefix (0: there was none).
    """

    model: str
    host: str = "anthropic"
    session: str = ""
    project: str = ""
    version: str = ""
    modes: tuple[str, ...] = ()
    calls: int = 0
    cost: Decimal | None = ZERO
    """USD of all calls of the session, sub-agents included; None where a price is not known."""
    hit_rate: Decimal | None = None
    """Tokens read ÷ input tokens of the main thread."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    hour_tokens: int = 0
    uncached_tokens: int = 0
    ttl: str = "5m"
    ttl_s: Mapping[str, float] = field(default_factory=lambda: DEFAULT_TTLS)
    last_used: float | None = None
    static_tokens: int = 0
    static_warm_until: float | None = None
    typical_new_tokens: int = 0
    typical_output_tokens: int = 0
    calls_per_message: int = 1
    pauses: tuple[float, ...] = ()
    summary_tokens: int = 0
    is_automatic: bool = False
    """Whether the host caches without breakpoints, so that nothing is charged for a write."""
    minimum_tokens: int = 0
    """A shorter prompt is not cached."""
    effort_layer: str = "messages"
    """The layer that another effort rewrites, with those after it; "": none."""
    accepts_message_effort: bool = False
    """Whether a message may change the effort, which keeps what is cached."""
    is_static_known: bool = True
    """Whether the beginning of the session shows where tools and system prompt end; else nothing says what /compact
    keeps."""
    is_cost_low: bool = False
    """Whether answers were recorded before they were complete, so that the session cost at least `cost`."""
    can_keep_alive: bool = True
    """Whether the client can send a keep-alive."""

    @property
    def ttl_seconds(self) -> float:
        """The TTL of the end of the cached prefix; a host with one TTL has only the short one."""
        return self.seconds_of(self.ttl)

    @property
    def warm_until(self) -> float | None:
        """When the end of the cached prefix expires; None: nothing is cached, or it is not known since when."""
        return None if self.last_used is None or not self.cached_tokens else self.last_used + self.ttl_seconds

    def seconds_of(self, ttl: str) -> float:
        return self.ttl_s.get(ttl) or self.ttl_s.get("5m") or DEFAULT_TTLS[ttl]

    def is_warm(self, now: float) -> bool:
        """Whether all that was cached can be read; a session without times is taken to be."""
        return bool(self.cached_tokens) and (self.last_used is None or now - self.last_used < self.ttl_seconds)

    def live_tokens(self, now: float) -> int:
        """How much of the cached prefix can be read at this time."""
        if self.is_warm(now):
            return self.cached_tokens
        age = now - self.last_used if self.last_used is not None else 0.0
        live = self.hour_tokens if age < self.seconds_of("1h") else 0
        shared = self.static_tokens if self.static_warm_until is not None and now < self.static_warm_until else 0
        return max(live, min(shared, self.cached_tokens))
