"""What the next message of a session costs, from its bills: sent now, once the cache has expired, or after /compact.

`SessionState` is what is known between two messages, `BilledModel` what its price needs of a model: both are small
enough to be remembered. What a client itself says of a session (Claude Code's status line and hooks) comes over them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from cachecost.base.structs import replace
from cachecost.caches.expiry import has_expired, live_tokens
from cachecost.conversations.input_files import BilledCall
from cachecost.prompts.output_format import effort_layer
from cachecost.providers.hosts import host_of
from cachecost.providers.usage import PER_TOKEN, USUAL_TTL_S, ZERO, Quote, Usage, call_amounts, ttl_seconds

if TYPE_CHECKING:
    from cachecost.analysis.bill.call_prices import CallPrices


SUMMARY_TOKENS = 2_000
"""Of a compaction where the session had none: as `whatif` assumes."""


class SessionState(msgspec.Struct, frozen=True):
    """A session after its last call, from the bills of its main thread; times are in seconds since the epoch.

    `prompt_tokens` is what the next prompt repeats: input and output of the last call. `cached_tokens` of them were
    cached by it, the first `hour_tokens` for an hour; `ttl` is that of their end, and `last_used` when the call began
    (None: unknown). `static_tokens` is the length of tools and system prompt, an estimate (0: unknown), which other
    sessions keep warm until `static_warm_until`. `uncached_tokens` came behind the last breakpoint of the last call.

    `typical_new_tokens` is the median that a person's message added, `typical_output_tokens` that of an answer,
    `calls_per_message` that of the calls until the next one. `pauses` are the seconds before each message of a person.
    `summary_tokens` is what a compaction of this session left behind the static prefix (0: there was none).
    """

    model: str
    host: str = "anthropic"
    session: str = ""
    project: str = ""
    version: str = ""
    modes: tuple[str, ...] = ()
    calls: int = 0
    cost: Decimal | None = ZERO
    """USD of all calls of the session, sub-agents included; None where a price is not known."""
    hit_rate: Decimal | None = None
    """Tokens read ÷ input tokens of the main thread."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    hour_tokens: int = 0
    uncached_tokens: int = 0
    ttl: str = "5m"
    ttl_s: Mapping[str, float] = msgspec.field(default_factory=lambda: USUAL_TTL_S)
    last_used: float | None = None
    static_tokens: int = 0
    static_warm_until: float | None = None
    typical_new_tokens: int = 0
    typical_output_tokens: int = 0
    calls_per_message: int = 1
    pauses: tuple[float, ...] = ()
    summary_tokens: int = 0
    is_automatic: bool = False
    """Whether the host caches without breakpoints, so that nothing is charged for a write."""
    minimum_tokens: int = 0
    """A shorter prompt is not cached."""
    effort_layer: str = "messages"
    """The layer that another effort rewrites, with those after it; "": none."""
    accepts_message_effort: bool = False
    """Whether a message may change the effort, which keeps what is cached."""
    is_static_known: bool = True
    """Whether the beginning of the session shows where tools and system prompt end; else nothing says what /compact
    keeps."""
    is_cost_low: bool = False
    """Whether answers were recorded before they were complete, so that the session cost at least `cost`."""
    can_keep_alive: bool = True
    """Whether the client can send a keep-alive."""

    @property
    def ttl_seconds(self) -> float:
        """The TTL of the end of the cached prefix; a host with one TTL has only the short one."""
        return ttl_seconds(self.ttl, self.ttl_s)

    @property
    def warm_until(self) -> float | None:
        """When the end of the cached prefix expires; None: nothing is cached, or it is not known since when."""
        return None if self.last_used is None or not self.cached_tokens else self.last_used + self.ttl_seconds

    def is_warm(self, now: float) -> bool:
        """Whether all that was cached can be read; a session without times is taken to be."""
        return bool(self.cached_tokens) and (
            self.last_used is None or not has_expired(now, self.last_used, self.ttl_seconds)
        )

    def live_tokens(self, now: float) -> int:
        """How much of the cached prefix can be read at this time."""
        age = None if self.last_used is None else now - self.last_used
        live = live_tokens(self.cached_tokens, self.hour_tokens, self.ttl, age, self.ttl_s)
        shared = self.static_tokens if self.static_warm_until is not None and now < self.static_warm_until else 0
        return max(live, min(shared, self.cached_tokens))


DAY_S, QUARTER_S = 86400, 900
NO_TTLS: Mapping[str, float] = {}


class BilledModel(msgspec.Struct, frozen=True):
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
        return price_of(usage, self.quote).cost


FindModel = Callable[[BilledCall, str], BilledModel]
"""The model of a call on its day, or another model ("": its own) on the same host and day."""


def models_in(prices: CallPrices) -> FindModel:
    """Finds models in these rules and prices."""

    def find(call: BilledCall, model: str = "") -> BilledModel:
        asked = call
        if model:  # in the same way and on the same day
            asked = BilledCall(call.number, call.line, model, call.tokens, call.start, modes=call.modes, host=call.host)
        rules, quote = prices.rules_of(asked), prices.quote(asked)
        host = host_of(call.host, prices.host, asked.model)
        if rules is None:
            return BilledModel(asked.model, host, quote)
        limits = rules.ttl_s, rules.is_automatic, rules.minimum_tokens
        return BilledModel(asked.model, host, quote, *limits, effort_layer(rules), rules.accepts_message_effort)

    return find


def price_period(call: BilledCall) -> int | None:
    """Calls of one model with the same number have the same prices: a day, on other hosts than Anthropic's a quarter of
    an hour, as some have peak hours."""
    length = DAY_S if call.host in ("", "anthropic") else QUARTER_S
    return None if call.start is None else int(call.start // length)


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


class Price(msgspec.Struct, frozen=True):
    """The usage of a call, and its USD (None: no price is known)."""

    usage: Usage
    cost: Decimal | None


class NextMessage(msgspec.Struct, frozen=True):
    """The first call of the next message at a moment, and the same where nothing of its cache is left (`cold`)."""

    is_warm: bool
    usage: Usage
    cost: Decimal | None
    cold: Price

    @property
    def price(self) -> Price:
        return Price(self.usage, self.cost)


def next_message(
    state: SessionState, prices: Quote | None, now: float, new_tokens: int | None = None, output_tokens: int = 0
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
    amounts = call_amounts(usage, found if found and found.are_known else None)
    return Price(usage, sum(amounts, ZERO) if amounts else None)


INSTRUCTION_TOKENS = 500
SIDE_TTL = "5m"
"""What the call writes: everything but the main thread has the short TTL unless set otherwise."""


class CompactionPrice(msgspec.Struct, frozen=True):
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
    static = min(state.static_tokens, state.cached_tokens)
    after = replace(
        state,
        prompt_tokens=static + size,
        cached_tokens=static or int(bool(state.cached_tokens)),
        hour_tokens=min(static, state.hour_tokens),
        last_used=state.last_used if state.last_used is None else now,
    )
    message = next_message(after, prices, now, new_tokens, output_tokens).price
    read = price_per_token(prices, state.prompt_tokens, "read")
    shorter = state.prompt_tokens - after.prompt_tokens  # which each call of a later message reads less
    saved = None if read is None else shorter * state.calls_per_message * read
    without = next_message(state, prices, now, new_tokens, output_tokens).cost
    enough: int | None = None
    if summary.cost is not None and message.cost is not None and without is not None and saved and saved > 0:
        first = saved * (state.calls_per_message - 1) / state.calls_per_message
        extra = summary.cost + message.cost - without - first
        enough = 1 if extra <= 0 else 1 + int((extra / saved).to_integral_value(ROUND_CEILING))
    return CompactionPrice(summary, message, after.prompt_tokens, saved, enough)


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
