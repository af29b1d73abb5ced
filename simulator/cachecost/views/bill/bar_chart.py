"""Stacked bars of dollars as the paths of an SVG, a unit a bar; the picture is stretched to the page.

Colours are painted over each other from the top down: a step line for each part, all from the ground up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby

from cachecost.base.formatting import dollars
from cachecost.providers.usage import ZERO
from cachecost.views.tables.table import Table

HEIGHT = 200
"""Units of the highest bar."""
FEWEST_UNITS = 6
"""Units that a picture is wide at least, so that a few bars are no walls."""
GAPS_UP_TO = 140
"""Bars that are wide enough for a gap between them."""


@dataclass(frozen=True, slots=True)
class StackedBar:
    """A bar: its parts in USD from the bottom up, and what it says."""

    parts: Sequence[Decimal]
    says: str


@dataclass(frozen=True, slots=True)
class BarChart:
    """A picture with its words: the classes of its parts with their paths and names, and the table behind it.

    `gaps` is a path, too; empty where there is nothing. `axis` are the words below.
    """

    anchor: str
    title: str
    says: str
    width: int
    parts: list[tuple[str, str, str]]
    gaps: str
    bars: Sequence[StackedBar]
    top: str
    axis: Sequence[str]
    table: Table

    @property
    def height(self) -> int:
        """Units of the picture."""
        return HEIGHT

    @property
    def filled(self) -> int:
        """Percent of its width that bars take."""
        return round(100 * len(self.bars) / self.width)


def bar_chart(
    anchor: str,
    title: str,
    says: str,
    bars: Sequence[StackedBar],
    names: Sequence[tuple[str, str]],
    axis: Sequence[str],
    table: Table,
) -> BarChart:
    """The picture of these bars; `names` are the colour class and the name of each part, from the bottom up."""
    highest = max((sum(bar.parts, ZERO) for bar in bars), default=ZERO)
    return BarChart(
        anchor,
        title,
        says,
        max(len(bars), FEWEST_UNITS),
        list(_part_paths(bars, names, highest)),
        "".join(f"M{at} 0V{HEIGHT}" for at in range(1, len(bars))) if len(bars) <= GAPS_UP_TO else "",
        bars,
        dollars(highest),
        axis,
        table,
    )


def _part_paths(
    bars: Sequence[StackedBar], names: Sequence[tuple[str, str]], highest: Decimal
) -> Iterator[tuple[str, str, str]]:
    """Class, path and name of the parts that occur, the uppermost first."""
    for number in reversed(range(len(names))):
        if any(bar.parts[number] > 0 for bar in bars):
            tops = [_units(sum(bar.parts[: number + 1], ZERO), highest) for bar in bars]
            colour, name = names[number]
            yield colour, _steps(tops), name


def _units(amount: Decimal, highest: Decimal) -> int:
    return round(amount * HEIGHT / highest) if highest else 0


def _steps(heights: Sequence[int]) -> str:
    """A closed step line from the ground up."""
    path, end = f"M0 {HEIGHT}", 0
    for value, run in groupby(heights):
        end += len(list(run))
        path += f"V{HEIGHT - value}H{end}"
    return f"{path}V{HEIGHT}z"
