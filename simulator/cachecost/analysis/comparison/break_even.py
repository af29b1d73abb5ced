"""Where an answer changes while one value of the scenario does: a search between two values with another answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Protocol

from cachecost.analysis.comparison.strategy_line import StrategyLine, is_tied, strategy_line
from cachecost.base.formatting import quote
from cachecost.ledger.assumptions import BreakEven
from cachecost.ledger.results import Comparison

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
