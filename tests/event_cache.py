"""A small model of the server's prompt cache, written apart from cachecost: it bills the calls of a generated project.

A prompt is a path of `Prefix` nodes: the static prefix (tools and system prompt), then messages. Every request has two
breakpoints, at the end of the static prefix and of the last message. It reads the longest prefix that is cached, still
alive and already readable, and writes the rest; a few tokens after the last breakpoint are uncached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import blake2b

MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0
TTL_SECONDS = {"5m": 5 * MINUTE, "1h": HOUR}
READABLE_AFTER = 2.0
"""Seconds from the start of a request until others can read what it writes: its first token."""


@dataclass(frozen=True)
class Price:
    """USD per 10**6 tokens."""

    input: Decimal
    read: Decimal
    write_5m: Decimal
    write_1h: Decimal
    output: Decimal

    def write(self, ttl: str) -> Decimal:
        return self.write_1h if ttl == "1h" else self.write_5m


def price(*dollars: str) -> Price:
    return Price(*map(Decimal, dollars))


PRICES = {
    "claude-opus-5-5": price("4", "0.20", "5", "8", "20"),
    "claude-sonnet-5-5": price("2", "0.10", "2.50", "4", "10"),
    "claude-haiku-4-5-20251001": price("1", "0.10", "1.25", "2", "5"),
}
"""List prices of the Claude API in October 2026. Source: Claude docs, Pricing, read on 2026-10-10."""


@dataclass(frozen=True)
class Prefix:
    """A prompt up to the end of one part; `size` are its tokens from the beginning. Equal keys are equal prompts."""

    key: str
    size: int
    before: Prefix | None = None

    def then(self, name: str, tokens: int) -> Prefix:
        return Prefix(
            blake2b(f"{self.key}/{name}/{tokens}".encode(), digest_size=12).hexdigest(), self.size + tokens, self
        )

    def back(self) -> Iterator[Prefix]:
        """This prefix and those before it, the longest first."""
        node: Prefix | None = self
        while node is not None:
            yield node
            node = node.before


EMPTY = Prefix("", 0)


@dataclass
class Bill:
    """What a call was billed. `pending` is a static prefix that another call was just writing: not yet readable."""

    read: int = 0
    written: int = 0
    uncached: int = 0
    pending: int = 0


@dataclass
class EventCall:
    """A planned call; `bill` is filled in by `bill_calls`.

    `start` is in seconds since the epoch, `number` the call's number in its own file, `event` the cause that was put
    between it and the call `before` ("" for none). `base` is the call before in the same process whose `messages` this
    one repeats.
    """

    session: str
    agent: str
    number: int
    start: float
    model: str
    ttl: str
    static: Prefix
    prompt: Prefix
    uncached: int
    output: int
    before: EventCall | None = None
    messages: int = 1
    base: EventCall | None = None
    event: str = ""
    is_lost: bool = False
    """Whether the server has lost all but the static prefix."""
    id: str = ""
    file: str = ""
    line: int = 0
    bill: Bill = field(default_factory=Bill)

    @property
    def cached(self) -> int:
        """Tokens cached after this call."""
        return self.bill.read + self.bill.written

    @property
    def rewritten(self) -> int:
        """Tokens paid again that were cached before."""
        if self.before is None:
            return self.bill.pending
        return max(0, min(self.bill.written + self.bill.uncached, self.before.cached - self.bill.read))

    @property
    def rewritten_usd(self) -> Decimal:
        """Dollars above reads. Written tokens come first: what was rewritten is the beginning of what was not read."""
        rates = PRICES[self.model]
        written = min(self.rewritten, self.bill.written)
        above = written * (rates.write(self.ttl) - rates.read) + (self.rewritten - written) * (rates.input - rates.read)
        return above / 10**6

    @property
    def cost_usd(self) -> Decimal:
        rates = PRICES[self.model]
        tokens = (self.bill.uncached, self.bill.read, self.bill.written, self.output)
        each = (rates.input, rates.read, rates.write(self.ttl), rates.output)
        return sum((n * usd for n, usd in zip(tokens, each, strict=True)), Decimal()) / 10**6


@dataclass
class _Entry:
    readable: float
    expires: float
    ttl: str

    def refresh(self, now: float) -> None:
        self.expires = max(self.expires, now + TTL_SECONDS[self.ttl])


def bill_calls(calls: Iterable[EventCall]) -> None:
    """Bill every call, in the order of their starts."""
    entries: dict[tuple[str, str], _Entry] = {}
    for call in sorted(calls, key=lambda one: one.start):
        call.bill = _bill(call, entries)


def _bill(call: EventCall, entries: dict[tuple[str, str], _Entry]) -> Bill:
    now, read = call.start, 0
    for node in (call.static if call.is_lost else call.prompt).back():
        entry = entries.get((call.model, node.key))
        if entry is not None and entry.readable <= now < entry.expires:
            entry.refresh(now)
            read = max(read, node.size)
    static = entries.get((call.model, call.static.key))
    is_pending = static is not None and static.readable > now and call.before is None
    for node in (call.static, call.prompt):
        known = entries.get((call.model, node.key))
        if known is None or known.expires <= now:
            ttl = TTL_SECONDS[call.ttl]
            entries[call.model, node.key] = _Entry(now + READABLE_AFTER, now + ttl, call.ttl)
    pending = call.static.size - read if is_pending else 0
    return Bill(read, call.prompt.size - read, call.uncached, pending)
