"""What of a model's rules and prices the price of a message needs: small enough to be remembered with a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from cachecost.analysis.next_message.state import SessionState
from cachecost.base.structs import value
from cachecost.conversations.billed_calls import BilledCall
from cachecost.prompts.host_cache_keys import effort_layer
from cachecost.providers.hosts import host_of
from cachecost.providers.quotes import PER_TOKEN, Quote, call_amounts
from cachecost.providers.usage import ZERO, Usage

if TYPE_CHECKING:
    from cachecost.analysis.bill.call_prices import CallPrices

DAY_S, QUARTER_S = 86400, 900
NO_TTLS: Mapping[str, float] = {}


@value
class BilledModel:
    """A model on a host and day: its prices (None: unknown), TTLs in seconds, and shortest prompt that is cached."""

    model: str
    host: str = "anthropic"
    quote: Quote | None = None
    ttl_s: Mapping[str, float] = NO_TTLS
    is_automatic: bool = False
    minimum_tokens: int = 0
    effort_layer: str = "messages"
    """The layer that another effort rewrites, with those after it; "": none."""
    accepts_message_effort: bool = False
    """Whether a message may change the effort, which keeps what is cached."""

    def cost(self, usage: Usage) -> Decimal | None:
        """USD of a call; None where no price is known."""
        found = self.quote.of(usage.total_input) if self.quote else None
        amounts = call_amounts(usage, found if found and found.are_known else None)
        return sum(amounts, ZERO) if amounts else None


FindModel = Callable[[BilledCall, str], BilledModel]
"""The model of a call on its day, or another model ("": its own) on the same host and day."""


def models_in(prices: CallPrices) -> FindModel:
    """Finds models in these rules and prices."""

    def find(call: BilledCall, model: str = "") -> BilledModel:
        asked = replace_model(call, model) if model else call
        rules, quote = prices.rules_of(asked), prices.quote(asked)
        host = host_of(call.host, prices.host, asked.model)
        if rules is None:
            return BilledModel(asked.model, host, quote)
        return BilledModel(
            asked.model,
            host,
            quote,
            rules.ttl_s,
            rules.is_automatic,
            rules.minimum_tokens,
            effort_layer(rules),
            rules.accepts_message_effort,
        )

    return find


def price_period(call: BilledCall) -> int | None:
    """Calls of one model with the same number have the same prices: a day, on other hosts than Anthropic's a quarter of
    an hour, as some have peak hours."""
    length = DAY_S if call.host in ("", "anthropic") else QUARTER_S
    return None if call.start is None else int(call.start // length)


def replace_model(call: BilledCall, model: str) -> BilledCall:
    """The call as one of another model, in the same way and on the same day."""
    return BilledCall(call.number, call.line, model, call.tokens, call.start, modes=call.modes, host=call.host)


def cost_of_call(call: BilledCall, find: FindModel) -> Decimal | None:
    """USD of a call and of the passes that its usage leaves out; None where no price is known."""
    total = find(call, "").cost(call.usage)
    if total is None:
        return None
    passes = call.extra if call.charged_usd is None else ()
    extra = (find(call, model).cost(Usage(*tokens)) for model, tokens in passes)
    return total + sum((cost or ZERO for cost in extra), ZERO)


def price_per_token(quote: Quote | None, length: int, name: str) -> Decimal | None:
    """USD of one token of a class ("read") in a prompt of this length; None: unknown."""
    found = quote.of(length) if quote else None
    if found is None or not found.are_known:
        return None
    price: Decimal = getattr(found, name)
    return price.scaleb(PER_TOKEN)


def model_of_state(state: SessionState, find: FindModel, model: str = "", at: float | None = None) -> BilledModel:
    """The session's model, or another one, on the day of `at`."""
    call = BilledCall(0, 0, state.model, (0, 0, 0, 0, 0), at, modes=state.modes, host=state.host)
    return find(call, model)
