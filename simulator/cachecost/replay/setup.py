"""The terms that strategies are compared under: host, model, day, readings, prices and token counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from heapq import heappop, heappush

from cachecost.base.errors import CannotEvaluate
from cachecost.conversations.calls import Call, PlannedCall, RecordedCall, date_call
from cachecost.conversations.model import Conversation
from cachecost.ledger.margin import margin
from cachecost.ledger.results import CallRow, Ledger
from cachecost.ledger.rows import warm_reads
from cachecost.ledger.timelines import CallTimeline
from cachecost.prompts.blocks import Thread
from cachecost.prompts.counting import TokenCounter
from cachecost.providers.assumptions import switches_from
from cachecost.providers.own_rules import NO_OWN_RULES, OwnRules
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.replay.simulation import Simulation
from cachecost.strategies.build import build
from cachecost.strategies.plan import Strategy
from cachecost.strategies.spec import StrategySpec
from cachecost.tokens.factory import make_counter

Progress = Callable[[str, int], None]
"""Called with the strategy's name and how many of its calls are done."""


def quiet(strategy: str, calls: int) -> None:
    """No progress is shown."""


Talks = Conversation | Sequence[Conversation]
FloorOf = Callable[[Sequence[Call], "Terms"], Decimal]
"""The dollars that no choice of marks and lifetimes could go below for these calls."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is equal for all strategies of a comparison. `rules` are switches by name.

    `model` is that of every conversation; None: of each its own. `day` picks rules and prices; None: that of each
    call. `bills` are the recorded calls that the conversations were found in: what was charged for them sizes
    whatever a strategy sends again (rule 17); with `starts_warm`, or the assumption `warm_start` in `rules`, what they
    read that no recorded call wrote was cached before. `own` are the rules of a user's file, under `rules`.
    `may_lack_prices` is for whoever can tell calls in tokens, where nobody gave a server of one's own a price. Without
    `counts_answers` a call whose output was not recorded has none; with it, its answer is counted.
    """

    model: str | None
    day: date | None
    prices: PriceBook
    host: str = "anthropic"
    tokens: str = "tiktoken"
    rules: Mapping[str, object] = field(default_factory=dict)
    counters: dict[str, TokenCounter] = field(default_factory=dict)
    bills: Sequence[RecordedCall] = ()
    own: OwnRules = NO_OWN_RULES
    may_lack_prices: bool = False
    counts_answers: bool = True
    starts_warm: bool = False

    def book(self, over: Mapping[str, object] | None = None) -> RuleBook:
        """The rules, with a strategy's own readings `over` them. Raises InputError."""
        readings = {**self.own.switches, **self.rules, **(over or {})}
        return RuleBook(switches_from(readings), self.day, self.own)

    def counter(self, generation: str) -> TokenCounter:
        """The counter of a tokenizer generation; its counts are shared by all strategies. Raises CannotEvaluate."""
        if generation not in self.counters:
            self.counters[generation] = make_counter(self.tokens, generation)
        return self.counters[generation]

    def ledger(
        self,
        spec: StrategySpec | str,
        conversations: Talks,
        progress: Progress = quiet,
        floor_of: FloorOf | None = None,
        pictured: bool = False,
    ) -> Ledger:
        """Every call that a strategy makes of the conversations, in the order they start. Raises CannotEvaluate.

        `pictured` keeps what a picture of the calls needs besides their rows.
        """
        talks = [conversations] if isinstance(conversations, Conversation) else list(conversations)
        book = self.book()
        strategy = build(spec, model=self.model, facts=lambda model: book.rules(self.host, model))
        calls: list[Call] = []
        strips: list[CallTimeline] = []
        simulation = Simulation(
            self.book(own_readings(strategy)),
            self.prices,
            self.counter,
            self.host,
            strategy.name,
            may_lack_prices=self.may_lack_prices,
        )
        rows = self._rows(simulation, strategy, talks, progress, calls, strips if pictured else None)
        models = self._models(talks, book)
        floor = None
        is_bounded = all(rules.speaks_marks for rules in models) and not warm_reads(rows).calls
        if floor_of and is_bounded and not any(row.error for row in rows):
            floor = floor_of(calls, replace(self, rules={**self.rules, **own_readings(strategy)}))
        counters = [self.counter(rules.generation) for rules in models]
        notes = list(dict.fromkeys([*(note for talk in talks for note in strategy.notes(talk)), *simulation.notes]))
        source = "; ".join(dict.fromkeys(counter.source for counter in counters))
        band = margin(rows, max((counter.band for counter in counters), default=0.0))
        return Ledger(strategy.name, rows, notes, source, band, floor, strips, lifetimes_of(models))

    @property
    def speaks_marks(self) -> bool:
        """Whether the model, as far as one is told, is cached by marks that look back. Raises CannotEvaluate."""
        return self.model is None or self.book().rules(self.host, self.model).speaks_marks

    def counters_of(self, talks: Sequence[Conversation], book: RuleBook) -> list[TokenCounter]:
        """The counters of all models that are known. Raises CannotEvaluate where `model` is not."""
        return [self.counter(rules.generation) for rules in self._models(talks, book)]

    def _models(self, talks: Sequence[Conversation], book: RuleBook) -> list[ModelRules]:
        """The rules of the models that are known, each once."""
        named = dict.fromkeys(filter(None, [self.model] if self.model else [talk.model for talk in talks]))
        known = (model for model in named if self.model or _is_known(book, self.host, model))
        return [book.rules(self.host, model) for model in known]

    def _rows(
        self,
        simulation: Simulation,
        strategy: Strategy,
        talks: Sequence[Conversation],
        progress: Progress,
        sent: list[Call],
        strips: list[CallTimeline] | None,
    ) -> list[CallRow]:
        """The row of each call; the calls themselves are added to `sent`, their pictures to `strips`."""
        simulation.learn_all(self.bills, self.starts_warm or "warm_start" in self.rules)
        rows = []
        for number, call in enumerate(in_time(strategy, talks), 1):
            made = date_call(call)
            sent.append(made if self.counts_answers else replace(made, output=()))
            simulated = simulation.simulated(sent[-1])
            rows.append(simulated.row)
            if strips is not None:
                strips.append(simulated.strip)
            progress(strategy.name, number)
        return rows


def lifetimes_of(models: Sequence[ModelRules]) -> tuple[str, str]:
    """What the host of the first of these calls its short and its long lifetime."""
    lives = models[0].ttl_s if models else {}
    return _lifetime(lives.get("5m"), "5m"), _lifetime(lives.get("1h"), "1h")


def _lifetime(seconds: float | None, otherwise: str) -> str:
    if not seconds:
        return otherwise
    return f"{seconds / 3600:g}h" if seconds >= 3600 else f"{seconds / 60:g}m"


def own_readings(strategy: Strategy) -> Mapping[str, object]:
    """Readings of the rules under which a strategy's claim is told."""
    return getattr(strategy, "rules", None) or {}


def _is_known(book: RuleBook, host: str, model: str) -> bool:
    try:
        return bool(book.rules(host, model).generation)
    except CannotEvaluate:
        return False


def in_time(strategy: Strategy, talks: Sequence[Conversation], root: Thread | None = None) -> Iterator[PlannedCall]:
    """The calls of all conversations, in the order they start.

    Their threads grow in one tree of this plan alone, and no conversation is looked at before it begins: so a
    placement sees what was sent until then, and nothing of other strategies. `root` is for agents that do not look.
    """
    root = root or Thread()
    lead = getattr(strategy, "lead_s", 0.0)
    begins = sorted((talk.events[0].at - lead, number) for number, talk in enumerate(talks) if talk.events)
    running: list[tuple[float, int, PlannedCall, Iterator[PlannedCall]]] = []
    while begins or running:
        if begins and (not running or begins[0][0] <= running[0][0]):
            _, number = heappop(begins)
            calls = iter(strategy.plan(replace(talks[number], root=root)))
        else:
            _, number, call, calls = heappop(running)
            yield call
        if following := next(calls, None):
            heappush(running, (following.start, number, following, calls))
