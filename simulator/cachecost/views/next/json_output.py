"""`next --json`: one object; dollars are decimal strings of all digits, times ISO 8601 in UTC."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from cachecost.analysis.next_message.alternatives import NextAlternative, NextChoice
from cachecost.analysis.next_message.compaction import CompactionPrice
from cachecost.analysis.next_message.keep_alive import KeepAliveAdvice
from cachecost.analysis.next_message.message import Price
from cachecost.analysis.next_message.state import SessionState
from cachecost.base.formatting import exact
from cachecost.base.times import iso

FORMAT = 1


def next_object(
    choice: NextChoice, state: SessionState, at: float, new_tokens: int, is_simulated: bool
) -> dict[str, Any]:
    """The next message, what could be done instead, and the session that it continues."""
    return {
        "format": FORMAT,
        "at": iso(at),
        "is_warm": choice.message.is_warm,
        "is_simulated": is_simulated,
        "new_tokens": new_tokens,
        **price_object(choice.message.price),
        "cold": price_object(choice.message.cold),
        "alternatives": [alternative_object(one) for one in choice.alternatives],
        "compaction": _compaction(choice.compaction),
        "keep_alive": _keep_alive(choice.keep_alive),
        "session": state_object(state),
    }


def price_object(price: Price) -> dict[str, Any]:
    return {"cost_usd": _usd(price.cost), "usage": price.usage.wire()}


def alternative_object(one: NextAlternative) -> dict[str, Any]:
    """One row; `cost_usd` includes what has to be paid `first`."""
    return {
        "kind": one.kind,
        "name": one.name,
        "cost_usd": _usd(one.cost),
        "usage": one.usage.usage.wire(),
        "first": price_object(one.first) if one.first else None,
        "breaks_even_after": one.breaks_even_after,
        "note": one.note,
    }


def state_object(state: SessionState) -> dict[str, Any]:
    """What is known of the session."""
    return {
        "session": state.session,
        "project": state.project,
        "model": state.model,
        "host": state.host,
        "calls": state.calls,
        "cost_usd": _usd(state.cost),
        "hit_rate": None if state.hit_rate is None else float(state.hit_rate),
        "prompt_tokens": state.prompt_tokens,
        "cached_tokens": state.cached_tokens,
        "static_tokens": state.static_tokens,
        "ttl": state.ttl,
        "last_used": _time(state.last_used),
        "warm_until": _time(state.warm_until),
        "typical_new_tokens": state.typical_new_tokens,
        "typical_output_tokens": state.typical_output_tokens,
        "calls_per_message": state.calls_per_message,
    }


def _compaction(found: CompactionPrice | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "summary": price_object(found.summary),
        "message": price_object(found.message),
        "kept_tokens": found.kept_tokens,
        "saved_per_message_usd": _usd(found.saved),
        "breaks_even_after": found.breaks_even_after,
    }


def _keep_alive(advice: KeepAliveAdvice | None) -> dict[str, Any] | None:
    if advice is None:
        return None
    return {
        "cost_usd": exact(advice.cost),
        "worth_up_to": advice.worth_up_to,
        "advised": advice.advised,
        "saved_usd": exact(advice.saved),
        "pauses": advice.pauses,
        "send_at": _time(advice.send_at),
        "interval_s": advice.interval_s,
        "stop_at": _time(advice.stop_at),
    }


def _usd(amount: Decimal | None) -> str | None:
    return None if amount is None else exact(amount)


def _time(at: float | None) -> str | None:
    return None if at is None else iso(at)
