"""What a client itself says of a session (Claude Code's status line and hooks), over what its bills imply."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from cachecost.analysis.next_message.message import NextMessage, next_message, price_of, usage_of
from cachecost.analysis.next_message.state import SessionState
from cachecost.base.structs import replace
from cachecost.providers.quotes import Quote

Facts = Mapping[str, Any]
NO_FACTS: Facts = {}
VARIANT = re.compile(r"\[[^\]]*\]$|-20\d{6}(?=$|\[)|^.*anthropic[./]|@.*$|:\d+$|-v\d+$")
"""What ids of one model differ in: window, day, host, revision."""


def object_at(facts: object, name: str) -> Facts:
    """An object in a client's JSON; empty where there is none."""
    found = facts.get(name) if isinstance(facts, Mapping) else None
    return found if isinstance(found, Mapping) else NO_FACTS


def text_at(facts: Facts, name: str) -> str:
    found = facts.get(name)
    return found if isinstance(found, str) else ""


def number_at(facts: Facts, name: str) -> float | None:
    found = facts.get(name)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return float(found) if is_number and abs(float(found)) < 1e15 else None  # type: ignore[arg-type]


def is_same_model(one: str, other: str) -> bool:
    """Whether two ids mean one model, so that they share a cache."""
    return _family(one) == _family(other)


def _family(model: str) -> str:
    before, found = "", model
    while before != found:
        before, found = found, VARIANT.sub("", found)
    return found


def with_prompt_cache(state: SessionState, cache: Facts, now: float) -> SessionState:
    """The state as Claude Code's `prompt_cache` has it (2.1.251 and later): hit rate, TTL, when it expires.

    Its hit rate is that of the running client: of a session that was resumed, it is left aside.
    """
    ratio, expires = number_at(cache, "hit_ratio"), number_at(cache, "expires_at")
    requests = number_at(cache, "requests")
    ttl = text_at(cache, "ttl")
    state = replace(state, ttl=ttl) if ttl in state.ttl_s else state
    counts_all = requests is None or requests >= state.calls
    if ratio is not None and 0 <= ratio <= 1 and counts_all:
        state = replace(state, hit_rate=Decimal(str(ratio)))
    if expires is not None:
        state = replace(state, last_used=expires - state.ttl_seconds)
    if cache.get("warm") is False and state.is_warm(now):
        state = replace(state, last_used=now - state.ttl_seconds, hour_tokens=0)
    return state


def last_miss(cache: Facts) -> str:
    """The causes of the last miss, as Claude Code names them (2.1.260 and later); empty where it does not."""
    causes = object_at(cache, "last_miss_cause").get("causes")
    return ", ".join(map(str, causes)) if isinstance(causes, list) else ""


def message_on(
    state: SessionState, model: str, prices: Quote | None, now: float, new_tokens: int | None = None
) -> NextMessage:
    """The next message on `model` ("": the session's), whose `prices` these are: another one reads nothing."""
    message = next_message(state, prices, now, new_tokens)
    if not model or is_same_model(model, state.model):
        return message
    cold = price_of(usage_of(state, 0, message.usage.total_input), prices)
    return NextMessage(False, cold.usage, cold.cost, cold)
