"""The two tables of the terminal: the strategies, and the variants of the scenario."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cachecost.analysis.comparison.sentences import VariantRow, variant_rows
from cachecost.analysis.comparison.summary import Summary
from cachecost.base.formatting import point_aligned
from cachecost.ledger.results import ZERO
from cachecost.views.run.bars import bar
from cachecost.views.tables.columns import (
    COMPARISON,
    GAP,
    INDENT,
    LOWER_BOUND,
    NARROWEST_BAR,
    WIDEST_BAR,
    Column,
    Fit,
    fit,
    shortened,
    strategy_columns,
)

LONGEST_BEST = 32


def fitted_strategies(summary: Summary, width: int) -> Fit:
    """The strategies in `width` cells."""
    return fit([line.name for line in summary.lines], "strategy", strategy_columns(summary), width)


def strategy_table(summary: Summary, fitted: Fit) -> Padding:
    """One row a strategy, the cheapest ones bold, and a bar where there is room; never wraps."""
    room = min(fitted.room - GAP, WIDEST_BAR)
    table = table_of(fitted.columns)
    if room >= NARROWEST_BAR:
        table.add_column("", no_wrap=True)
    largest = max((line.cost.total for line in summary.lines), default=ZERO)
    for number, line in enumerate(summary.lines):
        bars = [bar(line, largest, room)] if room >= NARROWEST_BAR else []
        table.add_row(*_cells(fitted, number), *bars, style="bold" if line in summary.tied else "")
    return Padding(table, (0, 0, 0, INDENT))


def fitted_variants(summaries: Sequence[Summary], width: int) -> Fit:
    """The variants of the scenario in `width` cells."""
    rows = variant_rows(summaries)
    return fit([row.variant for row in rows], "variant", _variant_columns(rows, summaries[0]), width)


def variant_table(fitted: Fit) -> Padding:
    """One row a variant of the scenario: who is cheapest there, and whether the order stays."""
    table = table_of(fitted.columns)
    for number in range(len(fitted.names.cells)):
        table.add_row(*_cells(fitted, number))
    return Padding(table, (0, 0, 0, INDENT))


def table_of(columns: Sequence[Column]) -> Table:
    """An empty table with the heads of `columns`, none of which wraps or is cut."""
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for column in columns:
        justify: JustifyMethod = "right" if column.right else "left"
        table.add_column(Text(column.header, justify=justify), no_wrap=True, min_width=column.width)
    return table


def _variant_columns(rows: Sequence[VariantRow], main: Summary) -> list[Column]:
    """The cheapest and its cost carry the answer."""
    first = main.comparison.first
    best = [shortened(row.best, LONGEST_BEST) for row in rows]
    return [
        Column("best", "cheapest", best, right=False),
        Column("first", first, point_aligned([row.first for row in rows]), rank=LOWER_BOUND),
        Column("cost", "cost", point_aligned([row.cost for row in rows])),
        Column("saving", main.against, [row.saving for row in rows], rank=COMPARISON),
        Column("order", "order", [row.order for row in rows], right=False, rank=COMPARISON),
    ]


def _cells(fitted: Fit, row: int) -> list[Text]:
    return [Text(column.flush(row)) for column in fitted.columns]
