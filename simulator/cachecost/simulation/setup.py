"""The setup of a replay: rules with their assumptions, prices, host, day, token counters and bills."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.prompts.render import TokenCounter
from cachecost.providers.assumptions import assumptions_from
from cachecost.providers.hosts import AUTO_HOST, host_of
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.tokens.factory import CALIBRATED, FILLER, counter_name, make_counter

if TYPE_CHECKING:
    from cachecost.conversations.calls import Call
    from cachecost.conversations.model import Conversation
    from cachecost.simulation.engine import CallPreparer
    from cachecost.strategies.registry import Strategy
    from cachecost.strategies.spec import StrategySpec

Progress = Callable[[str, int], None]
"""Called with the name of a strategy and the number of its calls that are done."""


def no_progress(strategy: str, calls: int) -> None:
    """Show no progress."""


class PreparedOnce:
    """Holds the preparer of a setup. Copies and other processes make their own."""

    __slots__ = ("preparer",)

    def __init__(self) -> None:
        self.preparer: CallPreparer | None = None

    def __reduce__(self) -> tuple[type[PreparedOnce], tuple[()]]:
        return PreparedOnce, ()


@dataclass(frozen=True, slots=True)
class ReplaySetup:
    """Everything that a replay depends on besides its calls; all strategies of a comparison share one.

    `rules` hold the assumptions, a user's own rules and the day (None: the day of each call). `host` is the host of
    calls that name none, `model` the model of all conversations (None: each has its own), `tokens` the name of the
    token counter.

    `bills` are the calls of the recording: their billed usage sets the lengths of the prefixes that are sent again
    (rule 17). With `starts_warm` or an explicit assumption `warm_start`, what they read and no recorded call wrote was
    cached before the first call. With `may_lack_prices`, a self-hosted model without a price is counted in tokens
    alone. Without `counts_answers`, a call whose output was not recorded has 0 output tokens.
    """

    rules: RuleBook
    prices: PriceBook
    host: str = AUTO_HOST
    tokens: str = FILLER
    model: str | None = None
    bills: Sequence[Call] = ()
    starts_warm: bool = False
    may_lack_prices: bool = False
    counts_answers: bool = True
    counters: dict[str, TokenCounter] = field(default_factory=dict)
    _prepared: PreparedOnce = field(default_factory=PreparedOnce, init=False, repr=False, compare=False)

    @property
    def day(self) -> date | None:
        """The day that picks rules and prices; None: the day of each call."""
        return self.rules.as_of

    @property
    def may_start_warm(self) -> bool:
        """Whether bills may show what was cached before the first call."""
        return self.starts_warm or "warm_start" in self.rules.assumptions.given

    @property
    def is_warm_as_billed(self) -> bool:
        """Whether what a bill read and no recorded call sent was cached before the first call."""
        return self.may_start_warm and self.rules.assumptions.warm_start == "as_billed"

    def with_assumptions(self, assumptions: Mapping[str, object]) -> ReplaySetup:
        """The same setup with these assumptions over its own. Raises InputError."""
        if not assumptions:
            return self
        own = self.rules.assumptions
        merged = assumptions_from({**{name: getattr(own, name) for name in own.given}, **assumptions})
        return replace(self, rules=RuleBook(merged, self.rules.as_of, self.rules.own))

    def each_on_its_day(self) -> ReplaySetup:
        """The same setup with the rules of the day of each call."""
        return replace(self, rules=RuleBook(self.rules.assumptions, None, self.rules.own))

    def with_recorded(self, calls: Sequence[Call], tokens: str | None) -> ReplaySetup:
        """The same setup for recorded calls. `tokens` is what --tokens says: None or "calibrated" uses their bills."""
        may_anchor = tokens in (None, CALIBRATED)
        bills = calls if may_anchor and any(call.billed or call.has_known_length for call in calls) else ()
        return replace(self, tokens=counter_name(tokens, bool(bills)), bills=bills, counters={})

    def rules_for(self, call: Call) -> ModelRules:
        """The rules of a call's model on its host and day. Raises CannotEvaluate."""
        return self.rules.rules(host_of(call.host, self.host, call.request.model), call.request.model, call.day)

    def build_strategy(self, spec: StrategySpec | str) -> Strategy:
        """The strategy, for the model and host of this setup. Raises CannotEvaluate."""
        from cachecost.strategies.registry import build

        return build(spec, model=self.model, facts=lambda model: self.rules.rules(self.host, model))

    def for_strategy(self, strategy: Strategy) -> ReplaySetup:
        """The same setup with the assumptions that a strategy states. Raises InputError."""
        return self.with_assumptions(getattr(strategy, "rules", None) or {})

    @property
    def uses_breakpoints(self) -> bool:
        """Whether `model` is cached by breakpoints that look back; True where it is None. Raises CannotEvaluate."""
        return self.model is None or self.rules.rules(self.host, self.model).uses_breakpoints

    def counter(self, generation: str) -> TokenCounter:
        """The counter of a tokenizer generation, made once. Raises CannotEvaluate."""
        if generation not in self.counters:
            self.counters[generation] = make_counter(self.tokens, generation)
        return self.counters[generation]

    def preparer(self) -> CallPreparer:
        """What prepares the calls of all replays under this setup. It has learned from the bills, once.

        Raises CannotEvaluate for an unknown counter.
        """
        if self._prepared.preparer is None:
            from cachecost.simulation.engine import CallPreparer

            made = CallPreparer.of(replace(self))  # a copy: what holds itself is not freed at once
            made.learn_all(self.bills, self.may_start_warm)
            self._prepared.preparer = made
        return self._prepared.preparer

    @property
    def token_source(self) -> str:
        """The source of the token counts so far."""
        counted = "; ".join(dict.fromkeys(counter.source for counter in self.counters.values()))
        return f"the recording's bills, then {counted}" if self.bills else counted

    @property
    def error_margin(self) -> float:
        """The relative error of the token counters so far, also where most lengths come from bills."""
        return max((counter.error_margin for counter in self.counters.values()), default=0.0)

    def models(self, conversations: Sequence[Conversation]) -> list[ModelRules]:
        """The rules of the models in use, each once. Raises CannotEvaluate where `model` is unknown."""
        if self.model is not None:
            return [self.rules.rules(self.host, self.model)]
        found = []
        for name in dict.fromkeys(conversation.model for conversation in conversations if conversation.model):
            with suppress(CannotEvaluate):
                found.append(self.rules.rules(self.host, name))
        return found


def ttl_names(models: Sequence[ModelRules]) -> tuple[str, str]:
    """The short and the long TTL of the first model in words, like ("5m", "1h")."""
    seconds = models[0].ttl_s if models else {}
    return _ttl_name(seconds.get("5m"), "5m"), _ttl_name(seconds.get("1h"), "1h")


def _ttl_name(seconds: float | None, otherwise: str) -> str:
    if not seconds:
        return otherwise
    return f"{seconds / 3600:g}h" if seconds >= 3600 else f"{seconds / 60:g}m"
