"""The `usage` object of the Messages API -> our `Usage`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cachecost.base.limits import MOST_TOKENS, is_number, is_tokens
from cachecost.prompts.wire import NotAMessage
from cachecost.providers.usage import ToolUses, Usage

if TYPE_CHECKING:
    from cachecost.conversations.calls import Iteration

NOTHING: dict[str, Any] = {}
TICKS_A_DOLLAR = 10**10
"""Of xAI's `cost_in_usd_ticks`."""


def parse_usage(value: Any, path: str) -> Usage:
    """A wire `usage` object. Creation that its 5m/1h split leaves out is 5m. Raises NotAMessage."""
    if not isinstance(value, dict):
        raise NotAMessage(path, "a usage object", value)
    split = value.get("cache_creation") or NOTHING
    written = _tokens(value, "cache_creation_input_tokens", path)
    hour = _tokens(split, "ephemeral_1h_input_tokens", f"{path}.cache_creation")
    five = _tokens(split, "ephemeral_5m_input_tokens", f"{path}.cache_creation")
    return Usage(
        _tokens(value, "input_tokens", path),
        _tokens(value, "cache_read_input_tokens", path),
        max(five, written - hour),
        hour,
        _tokens(value, "output_tokens", path),
        reported_uses(value),
        reported_charge(value),
    )


def reported_uses(value: Mapping[str, Any]) -> ToolUses:
    """The uses of server tools that a usage counts."""
    counts = value.get("server_tool_use")
    if not isinstance(counts, Mapping):
        return ()
    found = ((str(name).removesuffix("_requests"), number) for name, number in counts.items())
    return tuple(sorted((name, number) for name, number in found if is_tokens(number) and number))


def reported_charge(value: Mapping[str, Any]) -> Decimal | None:
    """USD that a usage says were charged; None: it does not say so. All of these are bills, not estimates.

    OpenRouter (docs, Usage accounting): `cost`; with a key of one's own, that is its fee, and the upstream's charge
    comes on top. Perplexity (docs, Pricing): `cost.total_cost`. xAI (docs, Cost tracking): `cost_in_usd_ticks`.
    """
    cost, ticks = value.get("cost"), value.get("cost_in_usd_ticks")
    if isinstance(cost, Mapping):
        cost = cost.get("total_cost")
    if cost is None and ticks is not None and is_tokens(ticks):
        return Decimal(ticks) / TICKS_A_DOLLAR
    if isinstance(cost, bool) or not isinstance(cost, (int, float, Decimal)) or not is_number(cost):
        return None
    charged, details = Decimal(str(cost)), value.get("cost_details")
    upstream = details.get("upstream_inference_cost") if isinstance(details, Mapping) else None
    if value.get("is_byok") and isinstance(upstream, (int, float)) and is_number(upstream):
        charged += Decimal(str(upstream))
    return charged


def _tokens(value: Any, name: str, path: str) -> int:
    found = value.get(name) if type(value) is dict else value
    if type(found) is int and 0 <= found <= MOST_TOKENS:
        return found
    if found is None:
        return 0
    if not is_tokens(found):
        raise NotAMessage(f"{path}.{name}", "a whole number of tokens", found)
    return found


def parse_iterations(usage: Any, path: str) -> tuple[Iteration, ...]:
    from cachecost.conversations.calls import Iteration

    passes = usage.get("iterations") if isinstance(usage, dict) else None
    if not isinstance(passes, list) or not all(isinstance(one, dict) for one in passes):
        return ()
    return tuple(
        Iteration(
            str(one.get("type") or "message"), parse_usage(one, f"{path}.iterations.{n}"), str(one.get("model") or "")
        )
        for n, one in enumerate(passes)
    )
