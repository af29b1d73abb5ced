"""A scenario with one day, model and set of assumptions: its conversations, and what its strategies cost."""

from __future__ import annotations

from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

from cachecost.analysis.explain.explaining import explain_workload
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.base.version import __version__
from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import Comparison, Ledger, PublishedFigure
from cachecost.providers.assumptions import show_assumption
from cachecost.providers.prices import STANDARD, PriceBook
from cachecost.providers.rules import data_date
from cachecost.scenario import Scenario, ScenarioConversations, load_conversations
from cachecost.scenario.models import PublishedFigureSpec, SystemHead
from cachecost.simulation.setup import Progress, no_progress
from cachecost.simulation.strategy_ledger import LowerBound, replay_strategy
from cachecost.simulation.workload import plan_workload, scenario_setup
from cachecost.strategies.spec import StrategySpec


class VariantRun:
    """A scenario with one day, model and set of assumptions."""

    def __init__(self, variant: str, scenario: Scenario, folder: Path, like: VariantRun | None = None) -> None:
        """Conversations are those of `like` where the scenario names the same. Raises InputError, CannotEvaluate."""
        self.variant = variant
        self.scenario = scenario
        self.folder = folder
        is_same = like is not None and like.scenario.conversation == scenario.conversation
        self.loaded: ScenarioConversations = (
            like.loaded if like is not None and is_same else load_conversations(scenario, folder)
        )
        self.conversations, bills = self.loaded
        self.setup = replace(scenario_setup(scenario, folder, bills), may_lack_prices=True, starts_warm=True)

    def comparison(
        self,
        progress: Progress = no_progress,
        lower_bound: LowerBound | None = None,
        with_timelines: bool = False,
        explains: bool = True,
    ) -> Comparison:
        ledgers = [
            self.ledger(spec, progress, lower_bound, with_timelines, explains) for spec in self.scenario.strategies
        ]
        return replace(self.empty_comparison(), ledgers=ledgers)

    def empty_comparison(self) -> Comparison:
        """The comparison without any strategy."""
        scenario = self.scenario
        return Comparison(
            self.variant,
            scenario.host,
            scenario.model,
            self.setup.day or data_date(scenario.host),
            {name: str(value) for name, value in scenario.rules.items()},
            [],
            scenario.first,
        )

    def ledger(
        self,
        spec: StrategySpec,
        progress: Progress = no_progress,
        lower_bound: LowerBound | None = None,
        with_timelines: bool = False,
        explains: bool = True,
    ) -> Ledger:
        """What a strategy costs, and how much of the conversation it sends; where it `explains`, why each call costs
        what it does."""
        found = replay_strategy(
            spec,
            self.conversations,
            self.setup,
            progress,
            lower_bound,
            with_timelines,
            measured=True,
            explains=explains,
        )
        common = self.setup.rules.assumptions
        own = getattr(self.setup.build_strategy(spec), "rules", None) or {}
        differing = (name for name in sorted(own) if getattr(common, name) != own[name])
        return replace(
            found,
            leaves_out=spec.leaves_out,
            ranked=spec.ranked,
            described_in=spec.described_in,
            assumes=", ".join(f"{name}={show_assumption(own[name])}" for name in differing),
        )

    def explanations(self, comparison: Comparison) -> list[Explanation]:
        """What the first and the best strategy pay more than they must; nothing where `explain` knows no such cache."""
        if not self.setup.uses_breakpoints:
            return []
        names = [ledger.strategy for ledger in comparison.ledgers]
        asked = dict.fromkeys((comparison.first, comparison.best.strategy))
        specs = [self.scenario.strategies[names.index(name)] for name in asked]
        return [explain_workload(plan_workload(spec, self.conversations, self.setup)) for spec in specs]

    def published_figure(self, spec: PublishedFigureSpec) -> PublishedFigure:
        """The published figure recomputed, at the prices of the scenario's model off-peak and at the standard tier.

        It is tokens × the sum of its prices × times, in exact dollars; or what caching saved of the cost of its input
        tokens, less than nothing where writing cost more."""
        saving = {str(name): number for name, number in (spec.saving or {}).items()}
        tokens = sum(saving.values()) if spec.saving is not None else spec.tokens or 0
        quote = self.setup.prices.quote(self.scenario.host, self.scenario.model, self.setup.day, STANDARD)
        prices = quote.of(tokens)
        if spec.saving is not None:
            cost = sum((getattr(prices, name) * number for name, number in saving.items()), Decimal(0))
            how = " + ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in saving.items())
            share = 1 - cost / (prices.input * tokens)
            return PublishedFigure(spec.source, spec.says, share, f"{how}, against {tokens:,} uncached", is_share=True)
        per_token = sum((sign * getattr(prices, name) for sign, name in spec.terms), Decimal(0))
        times = f" × {spec.times}" if spec.times > 1 else ""
        how = f"{tokens:,} tokens × ${per_token.normalize():f} per million ({spec.price}){times}"
        return PublishedFigure(spec.source, spec.says, per_token * tokens * spec.times / 10**6, how)

    def about(self) -> str:
        """One line: what was replayed, how long it is, on which model, at whose prices."""
        what, conversations = "a synthetic conversation", self.conversations
        if not self.scenario.conversation.synthetic:
            days = sorted({day_of(event.at) for conversation in conversations for event in conversation.events})
            count = len(conversations)
            what = "a recorded conversation" if count == 1 else f"{count} recorded conversations"
            what += " of " + " to ".join(str(day) for day in dict.fromkeys((days[0], days[-1])))
        asked = sum(len(conversation.inquiries) for conversation in conversations)
        questions = [f"{asked} questions"] if asked else []
        calls = f"{sum(len(conversation.replies) for conversation in conversations)} calls of the main thread"
        return " · ".join([what, calls, *questions, self.scenario.model, f"prices and rules of {self.setup.day}"])

    def assumptions(self) -> list[str]:
        """What the figures assume, apart from rules and prices."""
        head = self.scenario.conversation.head
        sentences = []
        for layer, given in (("tools", head.tools), ("system prompt", head.system)):
            if given is not None and not self.scenario.conversation.synthetic:
                blocks = given.blocks if isinstance(given, SystemHead) else None
                tokens = sum(blocks) if blocks else given.tokens or 0
                sentences.append(f"The recording has no {layer}; {tokens:,} tokens are assumed for it.")
        if self.setup.bills:
            sentences.append("Prefixes that the recording was billed for keep their billed length.")
        if any(reply.output_tokens is None for conversation in self.conversations for reply in conversation.replies):
            sentences.append("Output tokens are counted from the replies; the recording has no bill for them.")
        capacity = self.setup.rules.rules(self.scenario.host, self.scenario.model, self.setup.day).capacity_tokens
        if capacity is None:
            sentences.append("No entry is evicted before its TTL ends, so hits are an upper bound.")
        else:
            sentences.append(f"The server keeps {capacity:,} tokens; the least recently used are evicted first.")
        return sentences

    def versions(self) -> dict[str, str]:
        return versions_of(self.scenario.host, self.setup.prices)


def versions_of(host: str, prices: PriceBook | None) -> dict[str, str]:
    """What the figures of a run follow from besides its scenario. Without `prices` nothing was priced."""
    return {
        "cachecost": __version__,
        "rules": str(data_date(host)),
        "prices": prices.versions if prices else "",
        "tiktoken": version("tiktoken"),
    }
