"""Strategies of a chart in groups: those that look the same are one line or bar, and of many those that are near."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.comparison.strategy_line import StrategyLine
from cachecost.base.formatting import dollar_range

MOST_NAMED = 12
"""Lines or bars of one chart."""
Amount = Callable[[StrategyLine], Decimal | None]


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Strategies that are one line or bar of a chart; the first lends it its figures."""

    lines: Sequence[StrategyLine]

    @property
    def line(self) -> StrategyLine:
        return self.lines[0]

    @property
    def name(self) -> str:
        """ "claude-code and 27 others"."""
        return group_name([line.name for line in self.lines])

    def money(self, amount: Amount, places: int | None) -> str:
        """ "$2.07"; "$2.03–2.08" where they differ."""
        known = [usd for line in self.lines if (usd := amount(line)) is not None]
        return dollar_range(min(known, default=None), max(known, default=None), places)


def group_name(names: Sequence[str]) -> str:
    """ "claude-code", "claude-code and zed", "claude-code and 27 others"."""
    first, *others = names
    if not others:
        return first
    return f"{first} and {others[0] if len(others) == 1 else f'{len(others)} others'}"


def group_lines(
    lines: Sequence[StrategyLine],
    look: Callable[[StrategyLine], Hashable],
    end: Callable[[StrategyLine], Decimal],
    kept: Sequence[StrategyLine] = (),
) -> list[LineGroup]:
    """At most twelve groups in the order of their first lines: lines of the same `look`, then those whose `end`s are
    nearest. Lines of `kept` stay apart from one another and lend their group its name."""
    found: dict[Hashable, list[StrategyLine]] = {}
    for line in lines:
        found.setdefault(look(line), []).append(line)
    groups = sorted(found.values(), key=lambda group: (bool(group[0].refused), end(group[0])))
    while len(groups) > MOST_NAMED:
        at = min(range(len(groups) - 1), key=lambda at: _gap(groups[at], groups[at + 1], end, kept))
        groups[at : at + 2] = [groups[at] + groups[at + 1]]
    places = {line.name: place for place, line in enumerate(lines)}
    named = [LineGroup(sorted(group, key=lambda line: (line not in kept, places[line.name]))) for group in groups]
    return sorted(named, key=lambda group: min(places[line.name] for line in group.lines))


def _gap(
    group: Sequence[StrategyLine],
    other: Sequence[StrategyLine],
    end: Callable[[StrategyLine], Decimal],
    kept: Sequence[StrategyLine],
) -> tuple[bool, bool, Decimal]:
    """How little two neighbours belong together: refused lines and those of `kept` stay apart as long as others do."""
    both_kept = all(any(line in kept for line in lines) for lines in (group, other))
    ends = [end(line) for line in (*group, *other)]
    return bool(group[0].refused) != bool(other[0].refused), both_kept, max(ends) - min(ends)
