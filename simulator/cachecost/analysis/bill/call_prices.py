"""The list prices of billed calls, at each call's day, model, prompt length and mode.

The cache that the bills of a file imply: after each call, how long the cached prefix is, its TTL and its age.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.base.times import day_of
from cachecost.caches.expiry import live_tokens
from cachecost.conversations.calls import NO_INPUT
from cachecost.conversations.input_files import BilledCall
from cachecost.providers.clients.settings import client_settings
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.prices import CallTerms, PriceBook, moment_of
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import PER_TOKEN, USUAL_TTL_S, ZERO, Prices, Quote, Usage, call_amounts


class CachedPrefix(msgspec.Struct, gc=False):
    """What is cached after a call.

    `tokens` is the length of the cached prefix, `ttl` that of its end, `hour_tokens` the length of the part with 1h.
    `touched` is the start of the last call that read or wrote all of it, in seconds (None: unknown). `ttl_s` are the
    host's TTLs.
    """

    tokens: int
    ttl: str
    hour_tokens: int
    touched: float | None
    ttl_s: Mapping[str, float]
    has_thinking: bool = False

    def live_tokens(self, at: float | None) -> int:
        """How much of the prefix has not expired at this time; all of it where a time is unknown."""
        return live_tokens(self.tokens, self.hour_tokens, self.ttl, self.age(at), self.ttl_s)

    def touch(self, at: float | None) -> None:
        """Note that all of the prefix was read at this time."""
        if at is not None and (self.touched is None or at > self.touched):
            self.touched = at

    def age(self, at: float | None) -> float | None:
        """Seconds since the prefix was last read or written."""
        return None if at is None or self.touched is None else at - self.touched


def state_after(call: BilledCall, before: CachedPrefix | None, rules: ModelRules | None) -> CachedPrefix:
    """The state that the bill of `call` implies; `before` is that after the call that it continues."""
    read, five, hour = call.tokens[1:4]
    tokens = read + five + hour
    ttl = "5m" if five else "1h" if hour else before.ttl if before else "5m"
    hour_tokens = read + hour if hour else min(before.hour_tokens, read) if before else 0
    if rules is not None and rules.is_automatic:
        tokens = call.total_input
    thought = call.has_thinking or bool(before and before.has_thinking and "human" not in call.events)
    ttl_s = rules.ttl_s if rules is not None else USUAL_TTL_S
    keeps_age = read and before is not None and rules is not None and not rules.refreshes_on_read
    touched = before.touched if keeps_age and before else call.start  # what was read expires first, and all after it
    return CachedPrefix(tokens, ttl, hour_tokens, touched, ttl_s, thought)


def seconds_between(before: BilledCall | None, call: BilledCall) -> float | None:
    """From the start of the call before to that of a call; None where there is none, or a time is unknown."""
    return None if before is None or before.start is None or call.start is None else call.start - before.start


SECONDS_A_DAY, QUARTER_S = 86400, 900
"""How long prices hold: peak hours begin and end at quarters of an hour."""
Mode = tuple[str, ...]


@dataclass(slots=True)
class CallPrices:
    """Prices and rules of calls, looked up once for each model, day and mode.

    `host` is that of calls that name none.
    """

    book: PriceBook
    rules: RuleBook
    host: str = AUTO_HOST
    _quotes: dict[tuple[str, str, int | None, Mode], Quote | str] = field(default_factory=dict)
    _rules: dict[tuple[str, str, int | None], ModelRules | None] = field(default_factory=dict)

    def prices(self, call: BilledCall) -> Prices | None:
        """The prices of a call, in proportion to what its answer says that it was charged; None where none is known, or
        nothing of its input."""
        found = self.prices_of(call, call.model, call.total_input) if call.total_input or call.extra else None
        return found if found is None or call.charged_usd is None else found.as_charged(call.usage)

    def prices_of(self, call: BilledCall, model: str, total_input: int) -> Prices | None:
        """As `prices`, of a pass of another model ("": the call's) and length."""
        quote = self._quote(call, model or call.model)
        if isinstance(quote, str):
            return None
        found = quote.tiers[0] if len(quote.tiers) == 1 else quote.of(total_input)
        return found if found.are_known else None

    def passes(self, call: BilledCall) -> Iterator[tuple[str, Sequence[Decimal]]]:
        """The model and the USD by class of each pass that the usage of a call leaves out, where its price is known.

        What an answer says that it was charged is for all of them.
        """
        for model, tokens in call.extra if call.charged_usd is None else ():
            found = self.prices_of(call, model, sum(tokens[:4]))
            if found:
                yield model or call.model, found.amounts(Usage(*tokens))

    def passes_cost(self, call: BilledCall) -> Decimal:
        return sum((sum(amounts, ZERO) for _, amounts in self.passes(call)), ZERO)

    def cost(self, call: BilledCall) -> Decimal:
        """USD of a call with the passes that its usage leaves out; 0 without a price."""
        return sum(call_amounts(call.usage, self.prices(call)) or (), self.passes_cost(call))

    def quote(self, call: BilledCall) -> Quote | None:
        """The prices of a call's model for every length of its prompt; None where none is known."""
        quote = self._quote(call, call.model)
        return None if isinstance(quote, str) else quote

    def why_unpriced(self, call: BilledCall) -> Sequence[str]:
        """Why a call, or a pass of it of another model, has no price; empty if all has one."""
        if not call.total_input and not call.extra:
            return (NO_INPUT,)
        found: list[str] = []
        for model in dict.fromkeys([call.model, *(model or call.model for model, _ in call.extra)]):
            if self.prices_of(call, model, 0) is None:
                quote, host = self._quote(call, model), host_of(call.host, self.host, model)
                found.append(quote if isinstance(quote, str) else f"no price known for {model} on host {host}")
        return found

    def _quote(self, call: BilledCall, model: str) -> Quote | str:
        long = QUARTER_S if self.book.has_hours(host_of(call.host, self.host, model)) else SECONDS_A_DAY
        key = (call.host, model, None if call.start is None else int(call.start // long), call.modes)
        found = self._quotes.get(key)
        if found is None:
            moment, terms = moment_of(call.start, None), CallTerms.of_modes(call.modes)
            try:
                found = self.book.quote(host_of(call.host, self.host, model), model, moment, terms)
            except CannotEvaluate as error:
                found = str(error)
            self._quotes[key] = found
        return found

    def rules_of(self, call: BilledCall) -> ModelRules | None:
        """The cache rules of a call; None for an unknown model."""
        key = (call.host, call.model, None if call.start is None else int(call.start // SECONDS_A_DAY))
        if key not in self._rules:
            try:
                day = None if call.start is None else day_of(call.start)
                self._rules[key] = self.rules.rules(host_of(call.host, self.host, call.model), call.model, day)
            except CannotEvaluate:
                self._rules[key] = None
        return self._rules[key]

    def rewrite_cost(self, call: BilledCall, tokens: int) -> Decimal | None:
        """Dollars that `tokens` of the prompt cost beyond reading them: they come first in what was not read.

        They are charged in the order of the prompt: 1h writes, 5m writes, uncached input (rule 15).
        """
        prices = self.prices(call)
        if prices is None:
            return None
        total, rest = ZERO, tokens
        uncached, _, five, hour, _ = call.tokens
        for count, price in ((hour, prices.write_1h), (five, prices.write_5m), (uncached, prices.input)):
            part = min(rest, count)
            total += part * (price - prices.read)
            rest -= part
        return total.scaleb(PER_TOKEN)


def missing_output(call: BilledCall) -> int:
    """Output tokens of a partial answer beyond the recorded ones, estimated from what was recorded of it."""
    return max(0, int(call.answer_bytes / client_settings().partial_output.bytes_per_token) - call.tokens[4])
