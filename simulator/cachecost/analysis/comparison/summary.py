"""The figures of every strategy of a comparison, added up once: text, charts and JSON render them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import combinations

from cachecost.analysis.comparison.strategy_line import StrategyLine, is_tied, ranked, strategy_line
from cachecost.base.formatting import dollar_places
from cachecost.ledger.results import Comparison, Ledger

TTL_NAMES = ("5m", "1h")
AGAINST_FIRST = "vs first"
"""The head of the column that compares with the first strategy."""
CLASS_NAMES = {"read": "read", "write_5m": "write 5m", "write_1h": "write 1h", "input": "uncached", "output": "output"}
PREFILL_NAMES = {"read": "prefill saved", "input": "prefill to do", "output": "output"}
"""The same where no price is known: what your own server computes, and what it need not."""
CLASS_FIELDS = {name: {"input": "input_tokens", "output": "output_tokens"}.get(name, name) for name in CLASS_NAMES}
"""Token class to the field of Usage that counts it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A comparison as its lines, in the scenario's order; those that are compared apart come last."""

    comparison: Comparison
    lines: tuple[StrategyLine, ...]
    first: StrategyLine | None
    best: StrategyLine | None
    """The cheapest of the lines that are compared, of equals the first; None if there is none."""

    @property
    def best_lines(self) -> tuple[StrategyLine, ...]:
        """The lines that tie with `best`, itself first: its lead over them is within the error margin of their
        difference. Empty if there is none.
        """
        best = self.best
        if best is None:
            return ()
        others = [line for line in ranked(self.lines) if line is not best and is_tied(best, line)]
        return (best, *others)

    @property
    def equal_lines(self) -> tuple[StrategyLine, ...]:
        """The lines that cost exactly as little as `best`, itself among them; empty if there is none."""
        return tuple(line for line in self.best_lines if self.best is not None and line.effort == self.best.effort)

    @property
    def winners(self) -> tuple[str, ...]:
        """The names of `best_lines`."""
        return tuple(line.name for line in self.best_lines)

    @property
    def against(self) -> str:
        """The head of the column that compares: "vs first", or "vs NAME" where `compare_to` is not the first."""
        name, ledgers = self.comparison.first, self.comparison.ledgers
        return AGAINST_FIRST if not ledgers or name == ledgers[0].strategy else f"vs {name}"

    @property
    def is_priced(self) -> bool:
        """Whether there are dollars to tell. Where not, lines are ranked by the tokens that must be computed."""
        return self.comparison.is_priced

    @property
    def has_questions(self) -> bool:
        return any(line.questions for line in self.lines)

    @property
    def apart(self) -> tuple[StrategyLine, ...]:
        """The lines that are not compared with the others."""
        return tuple(line for line in self.lines if line.is_apart)

    @property
    def is_certain(self) -> bool:
        """Whether the best stays the best even if best-effort hits do not happen."""
        best = self.best
        others = [line for line in ranked(self.lines) if line is not best]
        return best is None or best.most is None or all(best.most <= line.effort for line in others)

    @property
    def class_names(self) -> dict[str, str]:
        """What the token classes are called, with the host's own words for its TTLs."""
        short, long = next((ledger.ttls for ledger in self.comparison.ledgers), TTL_NAMES)
        names = {**CLASS_NAMES, "write_5m": f"write {short}", "write_1h": f"write {long}"}
        return names if self.is_priced else {**names, **PREFILL_NAMES}

    @property
    def classes(self) -> list[str]:
        """Token classes that occur; write_1h is left out where it is always zero. Without a price all writes
        are left out: they are part of what is computed."""
        if not self.is_priced:
            return list(PREFILL_NAMES)
        return [name for name in CLASS_NAMES if name != "write_1h" or any(line.usage.write_1h for line in self.lines)]

    @property
    def shown_classes(self) -> dict[str, str]:
        """The classes that occur, with their names."""
        return {name: self.class_names[name] for name in self.classes}

    def order(self) -> list[str]:
        """Names of the strategies that are compared, the cheapest first; equals in the scenario's order."""
        return [line.name for line in sorted(ranked(self.lines), key=lambda line: line.effort)]

    def line(self, name: str) -> StrategyLine | None:
        return next((line for line in self.lines if line.name == name), None)


def summarise(comparison: Comparison) -> Summary:
    """Add up a comparison; every row is looked at a fixed number of times."""
    base = next((ledger for ledger in comparison.ledgers if ledger.strategy == comparison.first), None)
    reference = comparison.effort(base) if base and not base.errors else None
    less, apart = comparison.less, comparison.apart
    found = (
        (ledger, strategy_line(ledger, comparison.effort(ledger), None if ledger is base else reference))
        for ledger in comparison.ledgers
    )
    lines = _in_columns(
        [replace(line, less=less.get(ledger.strategy), is_apart=ledger.strategy in apart) for ledger, line in found]
    )
    lines = tuple(sorted(lines, key=lambda line: line.is_apart))
    first = next((line for line in lines if line.name == comparison.first), None)
    best = min(ranked(lines), key=lambda line: line.effort, default=None)
    return Summary(comparison, lines, first, best)


def summarise_ledgers(ledgers: Sequence[Ledger]) -> Summary:
    """Add up strategies that are compared outside of a scenario, with the first; the summary names no host and day."""
    return summarise(Comparison("", "", "", date.min, {}, list(ledgers), ledgers[0].strategy))


def _in_columns(lines: Sequence[StrategyLine]) -> tuple[StrategyLine, ...]:
    """The lines with the precision of the columns that they make together."""
    costs = dollar_places(amount for line in lines for amount in (line.total, line.most))
    questions = dollar_places(amount for line in lines for amount in (line.question, line.question_most))
    return tuple(replace(line, places=costs, question_places=questions) for line in lines)


def same_order(one: Summary, other: Summary) -> bool:
    """Whether no two strategies that are compared in both change places by more than the error margin."""
    there = {line.name: line for line in ranked(other.lines)}
    here = sorted((line for line in ranked(one.lines) if line.name in there), key=lambda line: line.effort)
    return not any(
        there[high.name].effort < there[low.name].effort
        and not is_tied(low, high)
        and not is_tied(there[low.name], there[high.name])
        for low, high in combinations(here, 2)
    )
