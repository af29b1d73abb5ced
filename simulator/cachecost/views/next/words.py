"""Sentences on the next message. `clock` makes a time of the day as the reader's machine shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cachecost.analysis.next_message.state import SessionState
from cachecost.base.formatting import count_text, dollar_column, dollars, duration, percent, tokens

if TYPE_CHECKING:
    from cachecost.analysis.next_message.keep_alive import KeepAliveAdvice
    from cachecost.analysis.next_message.message import NextMessage

ClockText = Callable[[float], str]
NOTHING_SENT = "cachecost never sends anything itself."


def cache_words(state: SessionState, now: float, clock: ClockText) -> str:
    """What is cached, and until when: "127k tokens are warm until 14:32 (23 min)"."""
    until = state.warm_until
    if not state.cached_tokens:
        return "nothing is cached"
    cached = f"{tokens(state.cached_tokens)} tokens"
    if until is None:
        return f"{cached} were cached, at an unknown time"
    if now < until:
        return f"{cached} are warm until {clock(until)} ({duration(until - now)})"
    return f"{cached} expired at {clock(until)} ({duration(now - until)} ago)"


def price_words(message: NextMessage) -> str:
    """The price now, and with a cold cache: "$0.07 (cold: $0.79)"; one precision for both."""
    now, cold = dollar_column([message.cost, message.cold.cost])
    return f"{now} (cold: {cold})" if message.is_warm else now


def session_words(state: SessionState) -> str:
    """Id, project, model, calls, dollars and hit rate of the session so far."""
    from cachecost.views.bill.words import project_names, session_names  # not loaded for a status line

    parts = [
        f"session {session_names([state.session])[state.session]}" if state.session else "",
        project_names([state.project])[state.project] if state.project else "",
        state.model,
        count_text(state.calls, "call"),
        cost_words(state),
        f"cache hit rate {percent(state.hit_rate)}",
    ]
    return " · ".join(filter(None, parts))


def cost_words(state: SessionState) -> str:
    """Dollars of the session; "at least" where the record of its output is not complete."""
    return f"at least {dollars(state.cost)}" if state.is_cost_low and state.cost else dollars(state.cost)


def keep_alive_words(advice: KeepAliveAdvice | None, clock: ClockText) -> str:
    """Whether a keep-alive is worth it, what to send, and when to stop."""
    if advice is None:
        return ""
    each = f"a keep-alive costs {dollars(advice.cost)} and breaks even at {advice.worth_up_to}"
    if not advice.is_worth_it:
        why = f"in {count_text(advice.pauses, 'pause')} like this one none would have saved anything"
        return f"Keep-alive: {each}; not worth it: {why if advice.pauses else 'it costs more than it saves'}."
    pauses = f"saves {dollars(advice.saved)} on average in {count_text(advice.pauses, 'pause')} like this one"
    unknown = f"saves {dollars(advice.saved)} if you are back by {clock(advice.stop_at)}"
    what = f"send the last request again with max_tokens: 0 at {clock(advice.send_at)}"
    often = f", {advice.advised} times, every {duration(advice.interval_s)}" if advice.advised > 1 else ""
    end = f"then let it expire at {clock(advice.stop_at)}"
    return f"Keep-alive: {each}; {what}{often}, {end}: it {pauses if advice.pauses else unknown}. {NOTHING_SENT}"
