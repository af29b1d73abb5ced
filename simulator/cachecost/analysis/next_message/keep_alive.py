"""Whether a keep-alive is worth it now: it reads the cached prefix before it expires, for less than writing it again.

Keep-alives stop at break-even: after that many, they have cost what writing the prefix again costs. Where the session
shows how long its person pauses, the number is the one that would have saved most in the pauses that were at least as
long as this one is by now. Nothing is ever sent: the advice says what to send.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from cachecost.analysis.next_message.billed_models import price_per_token
from cachecost.analysis.next_message.state import SessionState
from cachecost.base.structs import value
from cachecost.providers.quotes import Quote
from cachecost.providers.usage import ZERO

LEAD_S = 60.0
"""A keep-alive is sent this long before the prefix expires."""
MOST_PINGS = 24
"""More are never advised, whatever the prices say."""
FEWEST_PAUSES = 3
"""Fewer say nothing about a person's habits."""


@value
class KeepAliveAdvice:
    """Keep-alives for one pause, each `cost` USD: `max_tokens: 0`, the first at `send_at`, then every `interval_s`.

    `worth_up_to` is the break-even: one more costs more than writing the prefix again. `advised` of them save most on
    average, `saved` USD, in `pauses` of this session that were as long as this one. Where too few are known (`pauses`
    is 0), one is advised, and `saved` is what it saves if the person is back before that has expired. `stop_at` is
    when the last advised one has expired, too.
    """

    cost: Decimal
    worth_up_to: int
    advised: int
    saved: Decimal
    pauses: int
    send_at: float
    interval_s: float
    stop_at: float

    @property
    def is_worth_it(self) -> bool:
        return self.advised > 0


def advise_keep_alive(state: SessionState, prices: Quote | None, now: float) -> KeepAliveAdvice | None:
    """The advice at `now`; None where the cache is cold, the client or host has none, or a price or time is unknown."""
    warm_until, ttl = state.warm_until, state.ttl_seconds
    read = price_per_token(prices, state.cached_tokens, "read")
    write = price_per_token(prices, state.cached_tokens, "write_1h" if state.ttl == "1h" else "write_5m")
    if state.is_automatic or not state.can_keep_alive or not state.is_warm(now) or ttl <= LEAD_S:
        return None
    if warm_until is None or read is None or write is None:
        return None
    cost, saved = state.cached_tokens * read, state.cached_tokens * (write - read)
    interval = ttl - LEAD_S
    most = min(MOST_PINGS, int(saved // cost) if cost else 0)
    idle = now - (warm_until - ttl)
    pauses = [pause for pause in state.pauses if pause > idle]
    if len(pauses) < FEWEST_PAUSES:
        advised, gain, seen = min(1, most), saved - cost if most else ZERO, 0
    else:
        advised, gain = _best_number(pauses, most, ttl, interval, cost, saved)
        seen = len(pauses)
    first = warm_until - LEAD_S
    stop = warm_until + advised * interval
    return KeepAliveAdvice(cost, most, advised, gain, seen, first, interval, stop)


def _best_number(
    pauses: Sequence[float], most: int, ttl: float, interval: float, cost: Decimal, saved: Decimal
) -> tuple[int, Decimal]:
    """How many keep-alives save most on average in these pauses, and the USD; 0 where none saves anything."""
    averages = [
        (sum((_saved_in(pause, pings, ttl, interval, cost, saved) for pause in pauses), ZERO) / len(pauses), -pings)
        for pings in range(most + 1)
    ]
    best, pings = max(averages)
    return -pings, best


def _saved_in(pause: float, pings: int, ttl: float, interval: float, cost: Decimal, saved: Decimal) -> Decimal:
    """USD that so many keep-alives save in a pause: those sent, and the prefix written again unless they outlast it."""
    sent = min(pings, int(pause // interval))
    would_expire = pause >= ttl
    outlasts = would_expire and pause < ttl + pings * interval
    return (saved if outlasts else ZERO) - sent * cost
