"""The terms that strategies are compared under: host, model, day, readings, prices and token counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date

from cachecost.conversations.model import Conversation
from cachecost.ledger import CallRow, Ledger
from cachecost.prompts.counting import TokenCounter
from cachecost.providers.prices import PriceBook
from cachecost.providers.rules import RuleBook
from cachecost.providers.switches import switches_from
from cachecost.replay import Simulation, planned
from cachecost.strategies.build import build
from cachecost.strategies.plan import Strategy
from cachecost.strategies.spec import StrategySpec
from cachecost.tokens.factory import make_counter

Progress = Callable[[str, int], None]
"""Called with the strategy's name and how many of its calls are done."""


def quiet(strategy: str, calls: int) -> None:
    """No progress is shown."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is equal for all strategies of a comparison. `rules` are switches by name.

    `day` picks rules and prices; None: that of each call.
    """

    model: str
    day: date | None
    prices: PriceBook
    host: str = "anthropic"
    tokens: str = "tiktoken"
    rules: Mapping[str, object] = field(default_factory=dict)
    counters: dict[str, TokenCounter] = field(default_factory=dict)

    def book(self, over: Mapping[str, object] | None = None) -> RuleBook:
        """The rules, with a strategy's own readings `over` them. Raises InputError."""
        return RuleBook(switches_from({**self.rules, **(over or {})}), self.day)

    def counter(self, generation: str) -> TokenCounter:
        """The counter of a tokenizer generation; its counts are shared by all strategies. Raises CannotEvaluate."""
        if generation not in self.counters:
            self.counters[generation] = make_counter(self.tokens, generation)
        return self.counters[generation]

    def ledger(self, spec: StrategySpec | str, conversation: Conversation, progress: Progress = quiet) -> Ledger:
        """Every call that a strategy makes of `conversation`. Raises CannotEvaluate."""
        book = self.book()
        strategy = build(spec, model=self.model, facts=lambda model: book.rules(self.host, model))
        counter = self.counter(book.rules(self.host, self.model).generation)
        rows = self._rows(strategy, conversation, progress)
        return Ledger(strategy.name, rows, strategy.notes(conversation), counter.source, counter.band)

    def _rows(self, strategy: Strategy, conversation: Conversation, progress: Progress) -> list[CallRow]:
        book = self.book(getattr(strategy, "rules", None))
        simulation = Simulation(book, self.prices, self.counter, self.host, strategy.name)
        rows = []
        for number, call in enumerate(strategy.plan(conversation), 1):
            rows.append(simulation.row(planned(call)))
            progress(strategy.name, number)
        return rows
