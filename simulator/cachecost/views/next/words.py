"""Sentences on the next message: those of `next`, the warning of the hook, and the status line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from cachecost.analysis.next_message.state import CompactionPrice, NextMessage, SessionState
from cachecost.base.formatting import count_text, dollar_column, dollars, duration, inert, percent, tokens

if TYPE_CHECKING:
    from cachecost.analysis.next_message.choices import KeepAliveAdvice


ClockText = Callable[[float], str]


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
    why = pauses if advice.pauses else unknown
    return f"Keep-alive: {each}; {what}{often}, {end}: it {why}. cachecost never sends anything itself."


def rewritten_tokens(state: SessionState, message: NextMessage) -> int:
    """Tokens of the conversation that a message writes although they had been cached."""
    return max(0, min(state.cached_tokens, message.usage.total_input) - message.usage.read)


def expired_words(state: SessionState, now: float) -> str:
    until = state.warm_until
    return f"cache expired {duration(now - until)} ago" if until is not None and until <= now else "cache is gone"


def message_warning(
    state: SessionState, message: NextMessage, compaction: CompactionPrice | None, now: float, which: str
) -> str:
    """ "cache expired 12 min ago: this message writes 127k tokens again, $0.79; /compact first: …"."""
    again = f"writes {tokens(rewritten_tokens(state, message))} tokens again, {dollars(message.cost)}"
    words = f"{expired_words(state, now)}: {which} {again}"
    if compaction is None:
        return words
    first, after, enough = compaction.summary.cost, compaction.message.cost, compaction.breaks_even_after
    if first is None or after is None or enough is None:
        return words
    later = f", cheaper after {count_text(enough, 'message')}" if enough > 1 else ""
    return f"{words}; /compact first: {dollars(first + after)}{later}"


def compaction_warning(state: SessionState, compaction: CompactionPrice, now: float) -> str:
    """Before a compaction: what it costs, and after how many messages it has paid for itself."""
    why = "" if state.is_warm(now) else f"{expired_words(state, now)}: "
    cost = f"compacting {tokens(state.prompt_tokens)} tokens costs {dollars(compaction.summary.cost)}"
    enough = compaction.breaks_even_after
    if enough is None:
        return f"{why}{cost} and would never pay for itself"
    saved = f"each later message costs {dollars(compaction.saved)} less"
    return f"{why}{cost}; {saved}: break-even after {count_text(enough, 'message')}"


def switch_warning(model: str, message: NextMessage, here: NextMessage) -> str:
    written = tokens(message.usage.write + message.usage.input_tokens)
    return (
        f"{model} reads nothing of this cache: the next message writes {written} tokens, {dollars(message.cost)} "
        f"(without the switch: {dollars(here.cost)})"
    )


def is_expensive(cost: Decimal | None, written: int, least_usd: Decimal, least_tokens: int) -> bool:
    """Whether to say anything: both thresholds are reached."""
    return cost is not None and cost >= least_usd and written >= least_tokens


DEFAULT_FORMAT = "cache {hit_rate} · {cache} · next message {price} · session {cost}"
NEUTRAL = "cache –"
FIELD = re.compile(r"\{([^{}]*)\}")
FIELDS = {
    "hit_rate": "share of the input tokens of this session that were read from the cache",
    "cache": "what is cached and until when: 127k warm until 14:32, or 127k expired 12 min ago",
    "price": "the next message, with its price if the cache were cold: $0.07 (cold: $0.79)",
    "next": "the price of the next message now",
    "cold": "its price with a cold cache",
    "cached": "cached tokens",
    "warm_until": "when the cache expires, in local time",
    "left": "how long it stays warm",
    "cost": "dollars of this session so far: as Claude Code counts them, else at list prices",
    "client_cost": "dollars of this session as Claude Code counts them",
    "calls": "API calls of the main thread",
    "model": "the model of the next message",
    "ttl": "the TTL of the cache",
    "last_miss": "why the cache was missed last, where Claude Code says so (2.1.260 and later)",
}
"""What may stand in a format, and what it shows."""


class UnknownField(ValueError):
    """A format names a field that there is not."""


def check_format(form: str) -> None:
    for name in FIELD.findall(form):
        if name not in FIELDS:
            raise UnknownField(f"no field {{{name}}}; fields are {', '.join(FIELDS)}")


def fill_format(form: str, fields: Mapping[str, str]) -> str:
    """The line; fields without a value are "–"."""
    return inert(FIELD.sub(lambda found: fields.get(found[1]) or "–", form)).replace("\n", " ")


def line_fields(
    state: SessionState, message: NextMessage, now: float, clock: ClockText, others: Mapping[str, str]
) -> dict[str, str]:
    """The values of the fields; `others` are those that the client states."""
    until, cached = state.warm_until, tokens(state.cached_tokens)
    cache = "nothing cached"
    if state.cached_tokens and until is not None:
        is_warm = now < until
        cache = f"{cached} warm until {clock(until)}" if is_warm else f"{cached} expired {duration(now - until)} ago"
    return {
        "hit_rate": percent(state.hit_rate),
        "cache": cache,
        "price": price_words(message),
        "next": dollars(message.cost),
        "cold": dollars(message.cold.cost),
        "cached": cached,
        "warm_until": clock(until) if until is not None else "",
        "left": duration(max(0.0, until - now)) if until is not None else "",
        "cost": dollars(state.cost),
        "calls": f"{state.calls:,}",
        "model": state.model,
        "ttl": state.ttl,
        **others,
    }
