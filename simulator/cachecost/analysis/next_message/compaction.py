"""What /compact now costs, what each message after it costs less, and after how many messages it has paid for itself.

Its call repeats the conversation with an instruction and answers with the summary; the next prompt is the static
prefix, the summary and what the client sends with it. The size is that of this session's compactions where it had one.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

from cachecost.analysis.next_message.billed_models import price_per_token
from cachecost.analysis.next_message.message import Price, next_message, price_of, usage_of
from cachecost.analysis.next_message.state import SUMMARY_TOKENS, SessionState
from cachecost.base.structs import replace, value
from cachecost.providers.quotes import Quote

INSTRUCTION_TOKENS = 500
SIDE_TTL = "5m"
"""What the call writes: everything but the main thread has the short TTL unless set otherwise."""


@value
class CompactionPrice:
    """/compact now: its own call, the next message after it, and what each later message costs less (`saved`, USD).

    `kept_tokens` is the length of the conversation afterwards. `breaks_even_after` is the number of messages after
    which everything together costs less than without it (None: never, or no price is known).
    """

    summary: Price
    message: Price
    kept_tokens: int
    saved: Decimal | None
    breaks_even_after: int | None


def price_compaction(
    state: SessionState, prices: Quote | None, now: float, new_tokens: int | None = None, output_tokens: int = 0
) -> CompactionPrice | None:
    """/compact at `now`, and a message right after it; None where nothing says what it would keep."""
    if not state.is_static_known:
        return None
    length = state.prompt_tokens + INSTRUCTION_TOKENS
    size = state.summary_tokens or SUMMARY_TOKENS
    ttl = SIDE_TTL if "5m" in state.ttl_s else state.ttl
    summary = price_of(usage_of(state, state.live_tokens(now), length, size, ttl), prices)
    after = _state_after(state, size, now)
    message = next_message(after, prices, now, new_tokens, output_tokens).price
    saved = _saved_per_message(state, after, prices)
    without = next_message(state, prices, now, new_tokens, output_tokens).cost
    enough = _break_even(summary.cost, message.cost, without, saved, state.calls_per_message)
    return CompactionPrice(summary, message, after.prompt_tokens, saved, enough)


def _state_after(state: SessionState, summary_tokens: int, now: float) -> SessionState:
    """The state after the summary: its call read, or wrote, the static prefix."""
    static = min(state.static_tokens, state.cached_tokens)
    return replace(
        state,
        prompt_tokens=static + summary_tokens,
        cached_tokens=static or int(bool(state.cached_tokens)),
        hour_tokens=min(static, state.hour_tokens),
        last_used=state.last_used if state.last_used is None else now,
    )


def _saved_per_message(before: SessionState, after: SessionState, prices: Quote | None) -> Decimal | None:
    """USD that a later message costs less: each of its calls reads the shorter conversation."""
    read = price_per_token(prices, before.prompt_tokens, "read")
    if read is None:
        return None
    return (before.prompt_tokens - after.prompt_tokens) * before.calls_per_message * read


def _break_even(
    summary: Decimal | None, message: Decimal | None, without: Decimal | None, saved: Decimal | None, calls: int
) -> int | None:
    if summary is None or message is None or without is None or saved is None or saved <= 0:
        return None
    first = saved * (calls - 1) / calls
    extra = summary + message - without - first
    return 1 if extra <= 0 else 1 + int((extra / saved).to_integral_value(ROUND_CEILING))
