"""Where an answer changes while one value of the scenario does: a search between two values with another answer.

The scenario is compared at each value that the search asks for: only what depends on the value is simulated again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from cachecost.analysis.comparison.summary import is_tied, order_words, strategy_line
from cachecost.analysis.comparison.variant_run import VariantRun
from cachecost.base.formatting import quote
from cachecost.ledger.results import BreakEven, Comparison, Ledger
from cachecost.scenario.loading import numbered_paths, scenario_at, value_as_written
from cachecost.scenario.models import AssumptionSpec, plain

Number = int | Decimal
Names = frozenset[str]
ComparisonAt = Callable[[Number, Names | None], Comparison]
"""The comparison at a value; of these strategies alone where they are named, as each of them takes time."""


def cheapest_in(comparison: Comparison, winner: str) -> str:
    """The cheapest strategy: `winner` where its lead or lag is within the error margin."""
    best = comparison.best
    ledger = next((each for each in comparison.ledgers if each.strategy == winner), None)
    if ledger is None or best is ledger or ledger.errors or winner in comparison.apart:
        return best.strategy
    lines = [strategy_line(each, comparison.effort(each), None) for each in (best, ledger)]
    return winner if is_tied(*lines) else best.strategy


@dataclass(frozen=True, slots=True)
class Claim:
    """What an answer says of a comparison: which strategy is the cheapest, `strategy` as long as it is within the error
    margin of the cheapest; with `first` whether `strategy` costs less than that, by more than the error margin.
    """

    strategy: str
    first: str | None = None

    def answer(self, comparison: Comparison) -> str:
        """What the comparison says, as a name or a few words."""
        if self.first is None:
            return cheapest_in(comparison, self.strategy)
        ledgers = {ledger.strategy: ledger for ledger in comparison.ledgers}
        pair = [ledgers[name] for name in (self.strategy, self.first)]
        line, other = (strategy_line(ledger, comparison.effort(ledger), None) for ledger in pair)
        return "less than" if order_words(line, other) == "less than" else "no less than"

    def strategies(self, answers: Iterable[str]) -> Names:
        """The strategies between which these answers decide."""
        return frozenset(answers if self.first is None else (self.strategy, self.first))

    def sentence(self, answer: str) -> str:
        """The claim with this answer: "“a” is the cheapest"."""
        if self.first is None:
            return f"{quote(answer)} is the cheapest"
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
        low, answer = 0, claim.answer(at(values[0], names))
        while high - low > 1:
            middle = (low + high) // 2
            holds = claim.answer(at(values[middle], names)) == answer
            low, high = (middle, high) if holds else (low, middle)
        found = claim.answer(at(values[low], None))
        if found == start:
            break
        names, high = names | claim.strategies((found,)), low
    instead = claim.answer(at(values[high], None))
    return BreakEven(claim.sentence(start), claim.sentence(instead), values[low], values[high])


class Trials:
    """The comparison of a scenario at other values of one of its assumptions."""

    def __init__(self, main: VariantRun, comparison: Comparison, spec: AssumptionSpec) -> None:
        self._main, self._comparison, self._spec = main, comparison, spec
        self._ledgers: dict[tuple[Any, str], Ledger] = {}
        self._runs: dict[str, VariantRun] = {}
        self._paths = numbered_paths(main.scenario, spec.set or ())
        self._by_host = {
            one.name for one in main.scenario.strategies if getattr(one.resolve(), "inquiry_by_host", None) is not None
        }
        """They ask as another strategy does, so the value of an option of questions cannot be set for them."""

    @property
    def as_written(self) -> Any:
        """The value in the scenario; None where its paths have several or an unknown one."""
        found = [value_as_written(self._main.scenario, path) for path in self._paths]
        return found[0] if found and all(value == found[0] for value in found) else None

    @property
    def strategies(self) -> list[str]:
        """The strategies that alone depend on the value; none where all do."""
        numbers = {int(path.split(".")[1]) for path in self._paths if path.startswith("strategies.")}
        is_local = all(path.startswith("strategies.") for path in self._paths)
        return [self._main.scenario.strategies[number].name for number in sorted(numbers)] if is_local else []

    def at(self, value: Number | Any, names: Names | None = None) -> Comparison:
        """The comparison at a value: of all strategies, or of those named and the compared one; never those
        that assume other rules and are compared apart, unless the assumption or the question is about them."""
        scenario, first, local = self._main.scenario, self._comparison.first, self.strategies
        follow = self._by_host if any(".inquiry." in path for path in self._paths) else set()
        about = {*local, *scenario.question_about, first}
        number = plain(value) if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else value
        if repr(number) not in self._runs:
            changed = scenario_at(scenario, self._paths, number, self._main.folder)
            self._runs[repr(number)] = VariantRun("", changed, self._main.folder, self._main)
        run = self._runs[repr(number)]
        specs = {spec.name: spec for spec in run.scenario.strategies}
        ledgers = list[Ledger]()
        for ledger in self._comparison.ledgers:
            name = ledger.strategy
            is_apart = ledger.assumes and not ledger.ranked and name not in about
            if is_apart or name in follow or not (names is None or name in names or name == first):
                continue
            if not local or name in local:
                key = repr(value), name
                if key not in self._ledgers:
                    self._ledgers[key] = run.ledger(specs[name], explains=False)
                ledger = self._ledgers[key]
            ledgers.append(ledger)
        return replace(run.empty_comparison(), ledgers=ledgers)
