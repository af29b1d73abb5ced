"""The status line: one line whose fields a person chooses."""

from __future__ import annotations

import re
from collections.abc import Mapping

from cachecost.analysis.next_message.message import NextMessage
from cachecost.analysis.next_message.state import SessionState
from cachecost.base.formatting import dollars, duration, percent, tokens
from cachecost.base.inert import inert
from cachecost.views.next.words import ClockText, price_words

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
    """Raises UnknownField."""
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
    until = state.warm_until
    return {
        "hit_rate": percent(state.hit_rate),
        "cache": _cache(state, until, now, clock),
        "price": price_words(message),
        "next": dollars(message.cost),
        "cold": dollars(message.cold.cost),
        "cached": tokens(state.cached_tokens),
        "warm_until": clock(until) if until is not None else "",
        "left": duration(max(0.0, until - now)) if until is not None else "",
        "cost": dollars(state.cost),
        "calls": f"{state.calls:,}",
        "model": state.model,
        "ttl": state.ttl,
        **others,
    }


def _cache(state: SessionState, until: float | None, now: float, clock: ClockText) -> str:
    if not state.cached_tokens or until is None:
        return "nothing cached"
    cached = tokens(state.cached_tokens)
    return f"{cached} warm until {clock(until)}" if now < until else f"{cached} expired {duration(now - until)} ago"
