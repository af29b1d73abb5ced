"""What the next message costs: its first call repeats the conversation, adds the message, and is answered.

What the cache still holds is read, the rest is written with the TTL that the session writes with. Behind the last
breakpoint stay as many tokens as in the last call.
"""

from __future__ import annotations

from decimal import Decimal

from cachecost.analysis.next_message.state import SessionState
from cachecost.base.structs import value
from cachecost.providers.quotes import Quote
from cachecost.providers.usage import Usage


@value
class Price:
    """The usage of a call, and its USD (None: no price is known)."""

    usage: Usage
    cost: Decimal | None


@value
class NextMessage:
    """The first call of the next message at a moment, and the same where nothing of its cache is left (`cold`)."""

    is_warm: bool
    usage: Usage
    cost: Decimal | None
    cold: Price

    @property
    def price(self) -> Price:
        return Price(self.usage, self.cost)


def next_message(
    state: SessionState,
    prices: Quote | None,
    now: float,
    new_tokens: int | None = None,
    output_tokens: int = 0,
) -> NextMessage:
    """The next message, sent at `now`; `new_tokens` None: as long as this session's messages typically are.

    `prices` are those of the session's model (None: unknown). The answer counts with `output_tokens`.
    """
    new = state.typical_new_tokens if new_tokens is None else new_tokens
    length = state.prompt_tokens + new
    warm = price_of(usage_of(state, state.live_tokens(now), length, output_tokens), prices)
    cold = price_of(usage_of(state, 0, length, output_tokens), prices)
    return NextMessage(state.is_warm(now), warm.usage, warm.cost, cold)


def usage_of(state: SessionState, read: int, length: int, output_tokens: int = 0, ttl: str = "") -> Usage:
    """The usage of a call with a prompt of `length` tokens, `read` of them from the cache; `ttl` of what it writes."""
    read = min(read, length)
    rest = length - read
    if state.is_automatic or length < state.minimum_tokens or not state.cached_tokens:
        return Usage(rest, read, 0, 0, output_tokens)
    uncached = min(rest, state.uncached_tokens)
    written = rest - uncached
    is_hour = (ttl or state.ttl) == "1h"
    return Usage(uncached, read, 0 if is_hour else written, written if is_hour else 0, output_tokens)


def price_of(usage: Usage, prices: Quote | None) -> Price:
    """A usage at the prices of its length."""
    found = prices.of(usage.total_input) if prices else None
    return Price(usage, found.total_cost(usage) if found and found.are_known else None)
