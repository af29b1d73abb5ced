"""Calls to be simulated, on their ground: what an analysis replays, as often as it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cachecost.base.errors import CannotEvaluate
from cachecost.caches.breakpoints import PrefixCache
from cachecost.conversations.calls import Call, RecordedCall, date_call
from cachecost.conversations.input_files import Warn, quiet
from cachecost.conversations.model import Conversation
from cachecost.conversations.readers.detect import read_calls
from cachecost.prompts.counting import TokenCounter
from cachecost.providers.assumptions import switches_from
from cachecost.providers.own_rules import NO_OWN_RULES, OwnRules
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook, data_date
from cachecost.replay.setup import Terms, in_time, own_readings
from cachecost.replay.simulation import AS_RECORDED, Simulation
from cachecost.scenario import Scenario, talks_of
from cachecost.strategies.build import build
from cachecost.strategies.spec import StrategySpec
from cachecost.tokens.factory import ANCHORED, FILLER, counter_name, make_counter

NOTHING_OVER: Mapping[str, object] = {}


@dataclass(frozen=True, slots=True)
class Traffic:
    """Calls in the order they start, the bills that size them (rule 17), and rules, prices, host, token counter.

    `starts_warm`: what a bill read that no recorded call wrote was cached before the first call. Not so for a scenario,
    unless its rules say `warm_start`: its strategies all start cold.
    """

    name: str
    calls: Sequence[Call]
    rules: RuleBook
    prices: PriceBook
    host: str = "anthropic"
    tokens: str = FILLER
    bills: Sequence[RecordedCall] = ()
    strategy: str = AS_RECORDED
    counters: dict[str, TokenCounter] = field(default_factory=dict)
    starts_warm: bool = False

    def simulation(self, cache: PrefixCache | None = None, may_lack_prices: bool = False) -> Simulation:
        """A fresh simulation that knows the bills. Raises CannotEvaluate for a counter that is not known."""
        terms = self.rules, self.prices, self.counter, self.host, self.strategy
        simulation = Simulation(*terms, cache, may_lack_prices)
        simulation.learn_all(self.bills, self.starts_warm or "warm_start" in self.rules.switches.given)
        return simulation

    def counter(self, generation: str) -> TokenCounter:
        """The counter of a tokenizer generation; made once."""
        if generation not in self.counters:
            self.counters[generation] = make_counter(self.tokens, generation)
        return self.counters[generation]

    @property
    def token_source(self) -> str:
        """Where the lengths come from, once a simulation has run."""
        counted = "; ".join(dict.fromkeys(counter.source for counter in self.counters.values()))
        return f"the recording's bills, then {counted}" if self.bills else counted

    @property
    def band(self) -> float:
        """Relative error of the token counts; that of the tokenizer, also where bills tell the most."""
        return max((counter.band for counter in self.counters.values()), default=0.0)

    def must_speak_marks(self, what: str) -> None:
        """For `what`, which knows caches with marks alone.

        Raises CannotEvaluate naming the first other, or why nothing is known of any call.
        """
        why: dict[str, None] = {}
        some = False
        for host, model, day in dict.fromkeys((call.host, call.request.model, call.day) for call in self.calls):
            try:
                rules = self.rules.rules(host or self.host, model, day)
            except CannotEvaluate as error:
                why[str(error)] = None
                continue
            rules.must_speak_marks(what)
            some = True
        if why and not some:
            raise CannotEvaluate(f"{what} has nothing to go by: {'; '.join(why)}")

    def read_as(self, rules: Mapping[str, object]) -> Traffic:
        """The same calls with these readings over those that were asked for. Raises InputError."""
        switches = self.rules.switches
        given = {name: getattr(switches, name) for name in switches.given}
        return replace(self, rules=RuleBook(switches_from({**given, **rules}), self.rules.as_of, self.rules.own))


def recorded(
    log: Path,
    rules: RuleBook,
    prices: PriceBook,
    host: str = "anthropic",
    tokens: str | None = None,
    format_: str = "auto",
    warn: Warn = quiet,
) -> Traffic:
    """The calls of a log as they were sent. `tokens` None or "anchored": by the bills, then as `counter_name` says.

    Raises InputError; CannotEvaluate where the file holds no call.
    """
    found = list(read_calls(log, format_, warn))
    if not found:
        raise CannotEvaluate(f"{log} holds no call: nothing was sent that could be looked at")
    may_anchor = tokens in (None, ANCHORED)
    bills = found if may_anchor and any(call.billed for call in found) else []
    counter = counter_name(tokens, bool(bills))
    return Traffic(str(log), found, rules, prices, host, counter, bills, starts_warm=True)


def terms_of(
    scenario: Scenario,
    folder: Path,
    bills: Sequence[RecordedCall],
    over: Mapping[str, object] = NOTHING_OVER,
    own: OwnRules = NO_OWN_RULES,
    prices: PriceBook | None = None,
) -> Terms:
    """What all strategies of a scenario are compared under; `bills` are those of its recording.

    `over` are readings over the scenario's, `own` a user's rules under both; `prices` are those of the scenario, where
    they are read already.
    """
    day = scenario.as_of or data_date(scenario.host)
    book = prices or PriceBook.load(folder / scenario.prices if scenario.prices else None, day)
    may_anchor = scenario.tokens in (None, ANCHORED)
    counter = FILLER if may_anchor else str(scenario.tokens)
    rules = {**scenario.rules, **over}
    kept = bills if may_anchor else []
    return Terms(scenario.model, day, book, scenario.host, counter, rules, bills=kept, own=own)


def of_scenario(
    scenario: Scenario, folder: Path, over: Mapping[str, object] = NOTHING_OVER, own: OwnRules = NO_OWN_RULES
) -> Iterator[Traffic]:
    """What each strategy of a scenario sends, under the scenario as written (not its other readings)."""
    talks, bills = talks_of(scenario, folder)
    terms = terms_of(scenario, folder, bills, over, own)
    for spec in scenario.strategies:
        yield of_strategy(spec, talks, terms)


def of_strategy(spec: StrategySpec | str, talks: Sequence[Conversation], terms: Terms) -> Traffic:
    """What a strategy sends of the conversations. Raises CannotEvaluate."""
    book = terms.book()
    strategy = build(spec, model=terms.model, facts=lambda model: book.rules(terms.host, model))
    return Traffic(
        strategy.name,
        [date_call(call) for call in in_time(strategy, talks)],
        terms.book(own_readings(strategy)),
        terms.prices,
        terms.host,
        terms.tokens,
        terms.bills,
        strategy.name,
        terms.counters,
    )
