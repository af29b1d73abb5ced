"""A scenario with one day, model and set of assumptions: its conversations, and what its strategies cost.

The answer of a run: at most 40 words and two figures, with the same rounded numbers as the tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

from cachecost.analysis.comparison.ranking import order_words
from cachecost.analysis.comparison.summary import (
    StrategyLine,
    Summary,
    doubt_sentences,
    is_tied,
    join_names,
    ranked,
    summarise,
)
from cachecost.analysis.explain.explaining import explain_workload
from cachecost.base.formatting import UNKNOWN, all_of, capitalized, dollars, quote, tokens
from cachecost.base.times import day_of
from cachecost.base.version import __version__
from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import Comparison, Ledger, PublishedFigure
from cachecost.providers.assumptions import show_assumption
from cachecost.providers.prices import STANDARD, PriceBook, Prices
from cachecost.providers.rules import data_date
from cachecost.scenario import Scenario, ScenarioConversations, load_conversations
from cachecost.scenario.models import FIGURE, ConclusionSpec, PublishedFigureSpec, SystemHead, ToolsHead, fits_verdict
from cachecost.simulation.setup import Progress, no_progress
from cachecost.simulation.strategy_ledger import LowerBound, replay_strategy
from cachecost.simulation.workload import plan_workload, scenario_setup
from cachecost.strategies.spec import StrategySpec

NUMERALS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def numeral(count: int) -> str:
    return NUMERALS[count] if count < len(NUMERALS) else f"{count:,}"


def verdict_of(
    comparisons: Sequence[Comparison],
    question_about: Sequence[str] = (),
    conclusions: Sequence[ConclusionSpec] = (),
    seeds: Sequence[Comparison] = (),
) -> str:
    """The first conclusion that holds, else what is the cheapest; then whatever else there is room for.

    `seeds` are the same comparison of conversations with other seeds.
    """
    summaries = [summarise(comparison) for comparison in comparisons]
    main = summaries[0]
    said = next(
        (
            _conclude(one, summaries)
            for one in conclusions
            if all(claim is not None and _is_true(*claim, summaries) for claim in one.claims)
        ),
        "",
    )
    sentences = [said] if said else list(_cheapest(main))
    more = [*_seeds(main, seeds), *doubt_sentences(main)]
    if not said:
        more += [*_asked_about(main, question_about), *_variants(summaries)]
    text = " ".join(sentences)
    for sentence in more:
        longer = f"{text} {sentence}"
        if fits_verdict(longer):
            text = longer
    return text


def _is_true(variant: str, one: str, sign: str, other: str, summaries: Sequence[Summary]) -> bool:
    summary = next((each for each in summaries if each.comparison.variant == variant), None)
    lines = [summary.line(name) for name in (one, other)] if summary else []
    left, right = lines if len(lines) == 2 else (None, None)
    if left is None or right is None or left.refused or right.refused:
        return False
    order = "=" if is_tied(left, right) else "<" if left.effort < right.effort else ">"
    return order in sign


def _conclude(conclusion: ConclusionSpec, summaries: Sequence[Summary]) -> str:
    main = summaries[0]

    def figure(match: re.Match[str]) -> str:
        line = main.line(match[2])
        if line is None:
            return UNKNOWN
        return line.question_money if match[1] == "question" else line.answer

    return FIGURE.sub(figure, conclusion.say)


def _cheapest(summary: Summary) -> Iterator[str]:
    best, first = summary.best, summary.first
    if best is None:
        yield "Every strategy had calls that the provider refuses or that could not be evaluated."
        return
    if len(summary.best_lines) == len(ranked(summary.lines)) > 1:
        every = "Both" if len(summary.best_lines) == 2 else f"All {numeral(len(summary.best_lines))}"
        yield f"{every} strategies cost the same{_within(summary)}: {best.answer}."
    elif first in summary.best_lines and first is not best and first is not None:
        yield f"Nothing costs less than {quote(first.name)}: {first.answer}."
    elif first is None or first.is_empty or first is best:
        yield f"{quote(best.name)} is the cheapest: {best.answer}."
    elif best.question is not None and first.question is not None:
        costs = f"{best.question_money} through {quote(best.name)} instead of {first.question_money}"
        yield f"A question costs {costs} through {quote(first.name)}."
    else:
        yield f"{quote(best.name)} costs {best.answer} instead of {first.answer} with {quote(first.name)}."
    shown = first if first in summary.best_lines else best
    others = [line.name for line in summary.best_lines if line is not shown]
    if others and len(summary.best_lines) < len(ranked(summary.lines)):
        yield f"{capitalized(join_names(others))} {'costs' if len(others) == 1 else 'cost'} the same{_within(summary)}."


def _within(summary: Summary) -> str:
    """ " within the error" where costs are not equal."""
    return "" if len(summary.equal_lines) == len(summary.best_lines) else " within the error"


def _asked_about(summary: Summary, names: Sequence[str]) -> Iterator[str]:
    """How the other strategies that the question is about compare with the compared one."""
    first = summary.first
    for name in names:
        line = summary.line(name)
        if first is None or line is None or line is first or line.refused or line in summary.best_lines:
            continue
        yield f"{quote(name)} costs {order_words(line, first)} {quote(first.name)}."


def seeds_sentence(main: Summary, seeds: Sequence[Comparison]) -> str:
    """What the cheapest strategy costs with other seeds; "" where there are none."""
    if not seeds or main.best is None:
        return ""
    won, tried = seeds_won(main, seeds)
    spans = [_span(line, main, seeds) for line in (main.first, main.best) if line is not None]
    wins = f"{quote(main.best.name)} is the cheapest in {'all' if won == tried else f'{won} of'} {tried}"
    return f"With {tried} seeds {all_of(list(dict.fromkeys(spans)))}; {wins}."


def _span(line: StrategyLine, main: Summary, seeds: Sequence[Comparison]) -> str:
    """ "“a” costs $3.66 to $8.31"."""
    found = [each.effort(ledger) for each in seeds for ledger in each.ledgers if ledger.strategy == line.name]
    costs = [line.effort, *found]
    return f"{quote(line.name)} costs {_amount(min(costs), main)} to {_amount(max(costs), main)}"


def _amount(effort: Decimal, summary: Summary) -> str:
    return dollars(effort) if summary.is_priced else f"{tokens(int(effort))} tokens of prefill"


def _seeds(main: Summary, seeds: Sequence[Comparison]) -> Iterator[str]:
    """In how many of the seeds the cheapest strategy is the cheapest."""
    if seeds and main.best is not None:
        won, tried = seeds_won(main, seeds)
        stays = "It wins" if len(main.best_lines) == 1 else "They win"
        yield f"{stays} in {'all' if won == tried else f'{numeral(won)} of'} {numeral(tried)} seeds."


def seeds_won(main: Summary, seeds: Sequence[Comparison]) -> tuple[int, int]:
    """In how many conversations the cheapest strategy is the cheapest, within the error; and how many there are."""
    found = [summarise(comparison) for comparison in seeds]
    return 1 + sum(set(main.winners) <= set(summary.winners) for summary in found), 1 + len(found)


def _variants(summaries: Sequence[Summary]) -> Iterator[str]:
    main, *others = summaries
    if not others or main.best is None:
        return
    differing = [summary for summary in others if not set(main.winners) <= set(summary.winners)]
    if not differing:
        yield f"{'It stays' if len(main.winners) == 1 else 'They stay'} the cheapest in every variant."
    else:
        counted = f"{capitalized(numeral(len(differing)))} of {numeral(len(others))} variants"
        has = "has" if len(differing) == 1 else "have"
        yield f"{'The variant' if len(others) == 1 else counted} {has} other winners."


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
        """The published figure recomputed: tokens × the sum of its prices × times, in exact dollars."""
        if spec.saving is not None:
            return self._saving(spec, {str(name): number for name, number in spec.saving.items()})
        tokens = spec.tokens or 0
        prices = self._standard_prices(tokens)
        per_token = sum((sign * getattr(prices, name) for sign, name in spec.terms), Decimal(0))
        times = f" × {spec.times}" if spec.times > 1 else ""
        how = f"{tokens:,} tokens × ${per_token.normalize():f} per million ({spec.price}){times}"
        return PublishedFigure(spec.source, spec.says, per_token * tokens * spec.times / 10**6, how)

    def _saving(self, spec: PublishedFigureSpec, tokens: Mapping[str, int]) -> PublishedFigure:
        """What caching saved of the cost of these input tokens; less than nothing where writing cost more."""
        whole = sum(tokens.values())
        prices = self._standard_prices(whole)
        cost = sum((getattr(prices, name) * number for name, number in tokens.items()), Decimal(0))
        how = " + ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in tokens.items())
        share = 1 - cost / (prices.input * whole)
        return PublishedFigure(spec.source, spec.says, share, f"{how}, against {whole:,} uncached", is_share=True)

    def _standard_prices(self, tokens: int) -> Prices:
        """Prices of a prompt of `tokens` on the scenario's model, off-peak, at the standard tier."""
        quote = self.setup.prices.quote(self.scenario.host, self.scenario.model, self.setup.day, STANDARD)
        return quote.of(tokens)

    def about(self) -> str:
        """One line: what was replayed, how long it is, on which model, at whose prices."""
        asked = sum(len(conversation.inquiries) for conversation in self.conversations)
        questions = [f"{asked} questions"] if asked else []
        calls = f"{sum(len(conversation.replies) for conversation in self.conversations)} calls of the main thread"
        prices = f"prices and rules of {self.setup.day}"
        return " · ".join([self._what(), calls, *questions, self.scenario.model, prices])

    def _what(self) -> str:
        if self.scenario.conversation.synthetic:
            return "a synthetic conversation"
        days = sorted({day_of(event.at) for conversation in self.conversations for event in conversation.events})
        what = (
            "a recorded conversation"
            if len(self.conversations) == 1
            else f"{len(self.conversations)} recorded conversations"
        )
        return f"{what} of " + " to ".join(str(day) for day in dict.fromkeys((days[0], days[-1])))

    def assumptions(self) -> list[str]:
        """What the figures assume, apart from rules and prices."""
        head = self.scenario.conversation.head
        sentences = [
            f"The recording has no {layer}; {_tokens(given):,} tokens are assumed for it."
            for layer, given in (("tools", head.tools), ("system prompt", head.system))
            if given is not None and not self.scenario.conversation.synthetic
        ]
        if self.setup.bills:
            sentences.append("Prefixes that the recording was billed for keep their billed length.")
        if any(reply.output_tokens is None for conversation in self.conversations for reply in conversation.replies):
            sentences.append("Output tokens are counted from the replies; the recording has no bill for them.")
        return [*sentences, self._eviction_sentence()]

    def _eviction_sentence(self) -> str:
        capacity = self.setup.rules.rules(self.scenario.host, self.scenario.model, self.setup.day).capacity_tokens
        if capacity is None:
            return "No entry is evicted before its TTL ends, so hits are an upper bound."
        return f"The server keeps {capacity:,} tokens; the least recently used are evicted first."

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


def _tokens(given: ToolsHead | SystemHead) -> int:
    blocks = given.blocks if isinstance(given, SystemHead) else None
    return sum(blocks) if blocks else given.tokens or 0
