"""The strategies of a comparison in their order of cost, and how sure that order is: ranks and sentences.

Assumptions in words: each in a sentence, by what becomes of the answer.

Where an answer changes while one value of the scenario does: a search between two values with another answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import combinations, groupby
from typing import Protocol

from cachecost.analysis.comparison.summary import (
    StrategyLine,
    Summary,
    doubt_sentences,
    is_tied,
    join_names,
    lead_words,
    margin_words,
    ranked,
    strategy_line,
    who_is_cheapest,
)
from cachecost.base.formatting import capitalized, change, count_text, percent, quote, rough_dollars, tokens
from cachecost.ledger.results import Assumption, BreakEven, Comparison

SENTENCE_END = re.compile(r"(?<=[.])\s+(?=[A-Z“])")
MOST_ASSUMED = 5
"""Assumptions next to the verdict, at most."""
CHANGE, HOLD, UNTRIED = "Would change the answer", "Would not change it", "Not tried"


def assumption_groups(assumptions: Sequence[Assumption]) -> list[tuple[str, list[str]]]:
    """The assumptions by whether they would change the answer, each in a sentence; no group is empty."""
    groups = [(CHANGE, True), (HOLD, False), (UNTRIED, None)]
    found = [(title, [sentence(one) for one in assumptions if one.changes is changes]) for title, changes in groups]
    return [(title, sentences) for title, sentences in found if sentences]


def sentence(assumption: Assumption) -> str:
    """ "Retry rate of the answer tool: 0.05 (not measured; RFD 033). “a” stays the cheapest …"."""
    value = "" if assumption.value is None else f": {_shown(assumption.value)}"
    reasons = "; ".join(part for part in (assumption.why, assumption.source) if part)
    name = assumption.name.removesuffix(".")
    stated = f"{capitalized(name)}{value}{f' ({reasons})' if reasons else ''}."
    return f"{stated} {assumption.effect}" if assumption.effect else stated


def _shown(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def brief_sentence(assumption: Assumption) -> str:
    """The assumption and what becomes of the answer, in one sentence."""
    value = "" if assumption.value is None else f" ({_shown(assumption.value)})"
    effect = SENTENCE_END.split(assumption.effect)[0].removesuffix(".")
    stated = f"{capitalized(assumption.name.removesuffix('.'))}{value}"
    effect = effect[:1].lower() + effect[1:]
    return f"{stated}: {effect}." if effect else f"{stated}."


def first_assumptions(assumptions: Sequence[Assumption]) -> list[str]:
    """Those that could change most, in a sentence each: what was tried before what was not."""
    return [brief_sentence(one) for one in assumptions[:MOST_ASSUMED]]


def summary_sentence(assumptions: Sequence[Assumption]) -> str:
    """How many assumptions there are, how many were varied, and whether the winner stays; "" without any."""
    if not assumptions:
        return ""
    tried = [one for one in assumptions if one.changes is not None]
    changing = sum(bool(one.changes) for one in tried)
    were = "were" if len(tried) > 1 else "was"
    counted = f"{len(tried) or 'None'} of {count_text(len(assumptions), 'assumption')} {were} varied"
    return f"{counted}{f'; {changing} would change the answer' if changing else '; the winner stays' if tried else ''}."


@dataclass(frozen=True, slots=True)
class Rank:
    """The places that a strategy can have among those compared, from 1: several where others are indistinguishable."""

    first: int
    last: int

    def __str__(self) -> str:
        """ "1", or "2–3"."""
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


def find_ranks(summary: Summary) -> dict[str, Rank]:
    """The rank of each strategy that is compared, the cheapest first; none of one that is apart or had a refused call.

    It comes after every strategy that is cheaper by more than the error margin of the difference (or, without such a
    margin, at all), and before every one that is more expensive by more than that.
    """
    order = _in_order(summary)
    first, last = [1] * len(order), [len(order)] * len(order)
    for low, high in combinations(range(len(order)), 2):
        if not is_tied(order[low], order[high]):
            first[high] += 1
            last[low] -= 1
    return {line.name: Rank(*places) for line, *places in zip(order, first, last, strict=True)}


def rank_fields(summary: Summary) -> dict[str, dict[str, int | None]]:
    """The ranks for JSON and CSV, by strategy: `rank_from` and `rank_to`, both None for one without a rank."""
    ranks = find_ranks(summary)
    return {line.name: _fields(ranks.get(line.name)) for line in summary.lines}


def _fields(rank: Rank | None) -> dict[str, int | None]:
    return {"rank_from": rank.first if rank else None, "rank_to": rank.last if rank else None}


def rank_sentences(summary: Summary) -> list[str]:
    """Which strategy is the cheapest, by how much, what is indistinguishable from it, and which cost the same.

    Empty where there is nothing to compare.
    """
    if len(summary.lines) < 2:
        return []
    best, order = summary.best, _in_order(summary)
    if best is None:
        return [f"{capitalized(who_is_cheapest(()))}."]
    if len(order) == 1:
        return [f"{quote(best.name)} is the only strategy that can be compared: {best.answer}."]
    return [_answer(summary, best, order), *_ties(summary, order), *doubt_sentences(summary)]


def _answer(summary: Summary, best: StrategyLine, order: Sequence[StrategyLine]) -> str:
    """The cheapest, or those that cannot be told apart, and their lead over the next that can."""
    winners = summary.best_lines
    following = next((line for line in order if line not in winners), None)
    lead = f", {_lead(summary, best, following)}" if following else ""
    if len(winners) == 1:
        return f"{quote(best.name)} is the cheapest: {best.answer}{lead}."
    names = join_names([line.name for line in winners])
    if len(summary.equal_lines) == len(winners):
        return f"{names} tie as the cheapest: {best.answer} each{lead}."
    widest = max(winners, key=lambda line: line.effort)
    over = f" over {quote(widest.name)}" if len(winners) > 2 else ""
    return f"{names} are indistinguishable: {quote(best.name)} has {lead_words(best, widest)}{over}{lead}."


def _lead(summary: Summary, best: StrategyLine, line: StrategyLine) -> str:
    """How much less `best` costs than a line, in that line's share: "$0.44 (8%, ±$0.03) less than “b”"."""
    less = line.effort - best.effort
    share = percent(-(change(best.effort, line.effort) or 0))
    if not summary.is_priced:
        return f"{tokens(int(less))} ({share}) less than {quote(line.name)}"
    margin = margin_words(best, line)
    return f"{rough_dollars(less)} ({', '.join(filter(None, (share, margin)))}) less than {quote(line.name)}"


def _ties(summary: Summary, order: Sequence[StrategyLine]) -> Iterator[str]:
    """The strategies that cost the same to the last digit, apart from the cheapest where the answer says it."""
    groups = [list(group) for _, group in groupby(order, key=lambda line: line.effort)]
    is_said = len(summary.equal_lines) == len(summary.best_lines)
    shown = [group for group in groups[1 if is_said else 0 :] if len(group) > 1]
    if shown:
        words = (f"{join_names([line.name for line in group])} at {group[0].answer}" for group in shown)
        yield f"Equal to the last digit: {'; '.join(words)}."


def _in_order(summary: Summary) -> list[StrategyLine]:
    """The lines that are compared, the cheapest first, equals in their own order."""
    return sorted(ranked(summary.lines), key=lambda line: line.effort)


Number = int | Decimal
Names = frozenset[str]
ComparisonAt = Callable[[Number, Names | None], Comparison]
"""The comparison at a value; of these strategies alone where they are named, as each of them takes time."""


def order_words(line: StrategyLine, other: StrategyLine) -> str:
    """ "less than", "more than", or "the same as" of what cannot be told apart."""
    if is_tied(line, other):
        return "the same as" if line.effort == other.effort else "the same within the error as"
    return "less than" if line.effort < other.effort else "more than"


def cheapest_in(comparison: Comparison, winner: str) -> str:
    """The cheapest strategy: `winner` where its lead or lag is within the error margin."""
    best = comparison.best
    ledger = next((each for each in comparison.ledgers if each.strategy == winner), None)
    if ledger is None or best is ledger or ledger.errors or winner in comparison.apart:
        return best.strategy
    lines = [strategy_line(each, comparison.effort(each), None) for each in (best, ledger)]
    return winner if is_tied(*lines) else best.strategy


class Claim(Protocol):
    """Something that an answer says of a comparison."""

    def answer(self, comparison: Comparison) -> str:
        """What the comparison says, as a name or a few words."""
        ...

    def strategies(self, answers: Iterable[str]) -> Names:
        """The strategies between which these answers decide."""
        ...

    def sentence(self, answer: str) -> str:
        """The claim with this answer: "“a” is the cheapest"."""
        ...


@dataclass(frozen=True, slots=True)
class CheapestClaim:
    """Which strategy is the cheapest: `winner` as long as it is within the error margin of the cheapest."""

    winner: str

    def answer(self, comparison: Comparison) -> str:
        return cheapest_in(comparison, self.winner)

    def strategies(self, answers: Iterable[str]) -> Names:
        return frozenset(answers)

    def sentence(self, answer: str) -> str:
        return f"{quote(answer)} is the cheapest"


@dataclass(frozen=True, slots=True)
class DifferenceClaim:
    """Whether a strategy costs less than the compared one, by more than the error margin."""

    strategy: str
    first: str

    def answer(self, comparison: Comparison) -> str:
        ledgers = {ledger.strategy: ledger for ledger in comparison.ledgers}
        line, other = (
            strategy_line(ledgers[name], comparison.effort(ledgers[name]), None) for name in (self.strategy, self.first)
        )
        return "less than" if order_words(line, other) == "less than" else "no less than"

    def strategies(self, answers: Iterable[str]) -> Names:
        return frozenset((self.strategy, self.first))

    def sentence(self, answer: str) -> str:
        return f"{quote(self.strategy)} costs {answer} {quote(self.first)}"


def steps_between(start: Number, end: Number, step: Number) -> Sequence[Number]:
    """The values from `start` to `end`: both of them, and between them the multiples of `step`; upwards or down."""
    low, high = sorted((start, end))
    first = int((Decimal(low) / step).to_integral_value(ROUND_FLOOR)) + 1
    last = int((Decimal(high) / step).to_integral_value(ROUND_CEILING)) - 1
    values = [low, *(number * step for number in range(first, last + 1)), *([high] if high != low else [])]
    return values if start <= end else values[::-1]


def find_break_even(at: ComparisonAt, claim: Claim, values: Sequence[Number]) -> BreakEven | None:
    """Where the answer at the first value ends, by bisection; None where the last value has the same answer.

    Between two values, only the strategies are simulated that decide. Where another one turns out to be in question at
    the value that was found, the search goes on before it.
    """
    start, end = (claim.answer(at(value, None)) for value in (values[0], values[-1]))
    if start == end:
        return None
    names, high = claim.strategies((start, end)), len(values) - 1
    while True:
        low, high = _bisect(at, claim, values[: high + 1], names)
        found = claim.answer(at(values[low], None))
        if found == start:
            break
        names, high = names | claim.strategies((found,)), low
    instead = claim.answer(at(values[high], None))
    return BreakEven(claim.sentence(start), claim.sentence(instead), values[low], values[high])


def _bisect(at: ComparisonAt, claim: Claim, values: Sequence[Number], names: Names) -> tuple[int, int]:
    """Two neighbours: the first has the answer of the first value, the second has not. The last value has another."""
    start = claim.answer(at(values[0], names))
    low, high = 0, len(values) - 1
    while high - low > 1:
        middle = (low + high) // 2
        holds = claim.answer(at(values[middle], names)) == start
        low, high = (middle, high) if holds else (low, middle)
    return low, high
