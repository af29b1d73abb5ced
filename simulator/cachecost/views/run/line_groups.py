"""Strategies of a chart in groups: those that look the same are one, and at most twelve have a name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.analysis.comparison.summary import Line
from cachecost.base.formatting import count_text, dollar_range

MOST_NAMED = 12
"""Lines or bars with a name in one chart; of more, the last one stands for all that have none."""


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Strategies that are one line or bar of a chart; the first lends it its figures."""

    lines: Sequence[Line]

    @property
    def line(self) -> Line:
        return self.lines[0]

    @property
    def name(self) -> str:
        """ "claude-code and 27 others"."""
        return group_name([line.name for line in self.lines])


@dataclass(frozen=True, slots=True)
class ChartGroups:
    """The groups that have a name, in their order, and the strategies that have none."""

    named: Sequence[LineGroup]
    others: Sequence[Line]

    @property
    def others_name(self) -> str:
        return count_text(len(self.others), "other")


def group_name(names: Sequence[str]) -> str:
    """ "claude-code", "claude-code and zed", "claude-code and 27 others"."""
    first, *others = names
    if not others:
        return first
    return f"{first} and {others[0] if len(others) == 1 else f'{len(others)} others'}"


def money_range(lines: Sequence[Line], money: Callable[[Line], Decimal | None], places: int | None) -> str:
    """ "$2.08–3.79" over the lines whose dollars are known."""
    known = [amount for line in lines if (amount := money(line)) is not None]
    return dollar_range(min(known, default=None), max(known, default=None), places)


def group_lines(
    lines: Sequence[Line], look: Callable[[Line], Hashable], end: Callable[[Line], Decimal], kept: Sequence[Line] = ()
) -> ChartGroups:
    """The groups of lines of the same `look`. Of more than twelve, those with one of `kept` and those whose `end`s
    differ most have a name."""
    found: dict[Hashable, list[Line]] = {}
    for line in lines:
        found.setdefault(look(line), []).append(line)
    groups = [LineGroup(_kept_first(members, kept)) for members in found.values()]
    if len(groups) <= MOST_NAMED:
        return ChartGroups(groups, ())
    named = _most_different(groups, end, kept)
    return ChartGroups(
        [group for group in groups if group in named],
        [line for group in groups if group not in named for line in group.lines],
    )


def _kept_first(members: Sequence[Line], kept: Sequence[Line]) -> Sequence[Line]:
    """A strategy that a sentence names lends its name to its group."""
    return sorted(members, key=lambda line: line not in kept)


def _most_different(
    groups: Sequence[LineGroup], end: Callable[[Line], Decimal], kept: Sequence[Line]
) -> list[LineGroup]:
    """One group fewer than may have a name: those of `kept`, the largest, then one by one the one farthest from all."""
    named = [group for group in groups if group.line in kept]
    named += [max(groups, key=lambda group: len(group.lines))]
    named = list({id(group): group for group in named}.values())
    while len(named) < MOST_NAMED - 1:
        left = [group for group in groups if group not in named]
        named.append(max(left, key=lambda group: _distance(group, named, end)))
    return named


def _distance(group: LineGroup, named: Sequence[LineGroup], end: Callable[[Line], Decimal]) -> Decimal:
    return min((abs(end(group.line) - end(other.line)) for other in named), default=Decimal(0))
