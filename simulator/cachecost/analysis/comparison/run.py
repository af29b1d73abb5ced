"""A scenario -> what each of its strategies costs, under each of its readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

from cachecost.analysis.comparison.answer import verdict_of
from cachecost.analysis.explain.explaining import explained
from cachecost.analysis.optimum.lower_bound import floor_of
from cachecost.base.times import day_of
from cachecost.base.version import __version__
from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import Claim, Comparison, RunResult
from cachecost.providers.rules import data_date
from cachecost.replay.setup import Progress, ReplaySetup, no_progress
from cachecost.replay.simulation import Call
from cachecost.replay.strategy_ledger import LowerBound, replay_strategy
from cachecost.replay.workload import plan_workload, scenario_setup
from cachecost.scenario import Scenario, talks_of
from cachecost.scenario.models import ClaimSpec, SystemHead, ToolsHead


def run(scenario: Scenario, folder: Path, progress: Progress = no_progress, pictured: bool = False) -> RunResult:
    """Simulate every strategy under every reading. Paths in the scenario start at `folder`.

    `pictured` adds what only the HTML report shows: the strips of all calls, and what is avoidable in the first and
    the best strategy.

    Raises CannotEvaluate for a model, rule, price or count that is not known, InputError for a bad recording.
    """
    readings = [_Reading(name, reading, folder) for name, reading in scenario.readings]
    main = readings[0]
    comparisons = [main.comparison(progress, _floor, pictured)]
    comparisons += [reading.comparison(progress, None, False) for reading in readings[1:]]
    return RunResult(
        scenario.name,
        scenario.question,
        main.about(),
        verdict_of(comparisons),
        comparisons,
        main.assumptions(),
        [main.claim(claim) for claim in scenario.claims],
        main.versions(),
        main.explained(comparisons[0]) if pictured else [],
    )


def _floor(calls: Sequence[Call], setup: ReplaySetup) -> Decimal:
    return floor_of(calls, setup).usd


class _Reading:
    """A scenario under one day, model and reading of the rules."""

    def __init__(self, variant: str, scenario: Scenario, folder: Path) -> None:
        self.variant = variant
        self.scenario = scenario
        self.talks, bills = talks_of(scenario, folder)
        self.setup = replace(scenario_setup(scenario, folder, bills), may_lack_prices=True)

    def comparison(self, progress: Progress, lower_bound: LowerBound | None, pictured: bool) -> Comparison:
        scenario = self.scenario
        return Comparison(
            self.variant,
            scenario.host,
            scenario.model,
            self.setup.day or data_date(scenario.host),
            {name: str(value) for name, value in scenario.rules.items()},
            [
                replay_strategy(spec, self.talks, self.setup, progress, lower_bound, pictured)
                for spec in scenario.strategies
            ],
            scenario.first,
        )

    def explained(self, comparison: Comparison) -> list[Explanation]:
        """What the first and the best strategy pay more than they must; nothing where `explain` knows no such cache."""
        if not self.setup.uses_breakpoints:
            return []
        names = [ledger.strategy for ledger in comparison.ledgers]
        asked = dict.fromkeys((comparison.first, comparison.best.strategy))
        specs = [self.scenario.strategies[names.index(name)] for name in asked]
        return [explained(plan_workload(spec, self.talks, self.setup)) for spec in specs]

    def claim(self, told: ClaimSpec) -> Claim:
        """The published figure recomputed: tokens × the sum of its prices × times, in exact dollars."""
        if told.saving is not None:
            return self._saving(told, {str(name): number for name, number in told.saving.items()})
        tokens = told.tokens or 0
        prices = self.setup.prices.prices(self.scenario.host, self.scenario.model, self.setup.day, tokens)
        per_token = sum((sign * getattr(prices, name) for sign, name in told.terms), Decimal(0))
        times = f" × {told.times}" if told.times > 1 else ""
        how = f"{tokens:,} tokens × ${per_token.normalize():f} per million ({told.price}){times}"
        return Claim(told.source, told.says, per_token * tokens * told.times / 10**6, how)

    def _saving(self, told: ClaimSpec, tokens: Mapping[str, int]) -> Claim:
        """What caching saved of the cost of these input tokens; less than nothing where writing cost more."""
        whole = sum(tokens.values())
        prices = self.setup.prices.prices(self.scenario.host, self.scenario.model, self.setup.day, whole)
        cost = sum((getattr(prices, name) * number for name, number in tokens.items()), Decimal(0))
        how = " + ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in tokens.items())
        share = 1 - cost / (prices.input * whole)
        return Claim(told.source, told.says, share, f"{how}, against {whole:,} uncached", is_share=True)

    def about(self) -> str:
        """One line: what was replayed, how long it is, on which model, at whose prices."""
        asked = sum(len(talk.inquiries) for talk in self.talks)
        questions = [f"{asked} questions"] if asked else []
        calls = f"{sum(len(talk.replies) for talk in self.talks)} calls of the main thread"
        prices = f"prices and rules of {self.setup.day}"
        return " · ".join([self._what(), calls, *questions, self.scenario.model, prices])

    def _what(self) -> str:
        if self.scenario.conversation.synthetic:
            return "a synthetic conversation"
        days = sorted({day_of(event.at) for talk in self.talks for event in talk.events})
        what = "a recorded conversation" if len(self.talks) == 1 else f"{len(self.talks)} recorded conversations"
        return f"{what} of " + " to ".join(str(day) for day in dict.fromkeys((days[0], days[-1])))

    def assumptions(self) -> list[str]:
        """What the figures rest on besides rules and prices."""
        head = self.scenario.conversation.head
        told = [
            f"The recording has no {layer}; {_tokens(given):,} tokens stand in for it."
            for layer, given in (("tools", head.tools), ("system prompt", head.system))
            if given is not None and not self.scenario.conversation.synthetic
        ]
        if self.setup.bills:
            told.append("What the recording's bills tell of the length of a prefix sizes whatever sends it again.")
        if any(reply.output_tokens is None for talk in self.talks for reply in talk.replies):
            told.append("Output is counted from the replies, not taken from a bill.")
        return [*told, self._kept()]

    def _kept(self) -> str:
        """What becomes of entries before their time."""
        capacity = self.setup.rules.rules(self.scenario.host, self.scenario.model, self.setup.day).capacity_tokens
        if capacity is None:
            return "No entry is evicted before its time, so hits are an upper bound."
        return f"The server keeps {capacity:,} tokens; the least recently used go first."

    def versions(self) -> dict[str, str]:
        return {
            "cachecost": __version__,
            "rules": str(data_date(self.scenario.host)),
            "prices": self.setup.prices.versions,
            "tiktoken": version("tiktoken"),
        }


def _tokens(given: ToolsHead | SystemHead) -> int:
    blocks = given.blocks if isinstance(given, SystemHead) else None
    return sum(blocks) if blocks else given.tokens or 0
