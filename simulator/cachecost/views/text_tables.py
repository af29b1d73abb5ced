"""The two tables of the terminal: the strategies, and the variants of the scenario."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cachecost.ledger import ZERO
from cachecost.numbers import point_aligned
from cachecost.views.bars import bar
from cachecost.views.columns import (
    GAP,
    INDENT,
    NARROWEST_BAR,
    Column,
    fitted,
    room_for_bar,
    shortened,
    strategy_columns,
)
from cachecost.views.sentences import VariantRow, variant_rows
from cachecost.views.summary import Summary

LONGEST_NAME = 48
NARROWEST_NAMES = 44
"""Cells that the two columns of names of the variant table need together; less drops the column of the first."""


def strategy_table(summary: Summary, width: int) -> Padding:
    """One row a strategy, the cheapest one bold; never wraps in `width` cells."""
    names = _cut([line.name for line in summary.lines], "strategy", min(width * 2 // 5, LONGEST_NAME))
    columns = fitted(strategy_columns(summary), names.width, width)
    room = room_for_bar(columns, names.width, width)
    table = _table([names, *columns])
    if room >= NARROWEST_BAR:
        table.add_column("", no_wrap=True)
    largest = max((line.cost.total for line in summary.lines), default=ZERO)
    for number, line in enumerate(summary.lines):
        cells = [Text(column.flush(number)) for column in (names, *columns)]
        bars = [bar(line, largest, room)] if room >= NARROWEST_BAR else []
        table.add_row(*cells, *bars, style="bold" if line is summary.best else "")
    return Padding(table, (0, 0, 0, INDENT))


def variant_table(summaries: Sequence[Summary], width: int) -> Padding:
    """One row a variant of the scenario: who is cheapest there, and whether the order stays."""
    rows = variant_rows(summaries)
    numbers = _variant_numbers(rows, summaries[0].comparison.first)
    if _room_for_names(numbers, width) < NARROWEST_NAMES:
        numbers = numbers[1:]
    room = _room_for_names(numbers, width)
    variants = _cut([row.variant for row in rows], "variant", room // 2)
    cheapest = _cut([row.best for row in rows], "cheapest", room - variants.width)
    table = _table([variants, cheapest, *numbers])
    for number in range(len(rows)):
        table.add_row(*(Text(column.flush(number)) for column in (variants, cheapest, *numbers)))
    return Padding(table, (0, 0, 0, INDENT))


def _variant_numbers(rows: Sequence[VariantRow], first: str) -> list[Column]:
    return [
        Column("first", shortened(first, 20), point_aligned([row.first for row in rows])),
        Column("cost", "cost", point_aligned([row.cost for row in rows])),
        Column("saving", "vs first", [row.saving for row in rows]),
        Column("order", "order", [row.order for row in rows], right=False),
    ]


def _room_for_names(numbers: Sequence[Column], width: int) -> int:
    return width - INDENT - GAP - sum(GAP + column.width for column in numbers)


def _cut(names: Sequence[str], header: str, width: int) -> Column:
    return Column(header, header, [shortened(name, max(width, cell_len(header))) for name in names], right=False)


def _table(columns: Sequence[Column]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for column in columns:
        justify: JustifyMethod = "right" if column.right else "left"
        table.add_column(Text(column.header, justify=justify), no_wrap=True, min_width=column.width)
    return table
