"""Fits a table into a terminal: which columns are shown in how many cells, and what is hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from cachecost.base.formatting import all_of, quote
from cachecost.base.inert import inert
from cachecost.views.tables.table import ANSWER, DETAIL, Column, Table

GAP = 2
INDENT = 2
LEAST_NAMES = 30
"""Cells that names have before columns are hidden for them."""
LONGEST_HEADER = 20


@dataclass(frozen=True, slots=True)
class FittedTable:
    """A table in `width` cells: a column of names, the columns that are shown, and those hidden for lack of width."""

    names: Column
    shown: list[Column]
    hidden: list[Column]
    width: int
    missing: int
    """Further cells that the names would need."""
    strong: frozenset[int] = frozenset()

    @property
    def columns(self) -> list[Column]:
        """What is shown, in order: the columns that lead, the names, the others."""
        leading = [column for column in self.shown if column.leads]
        return [*leading, self.names, *(column for column in self.shown if not column.leads)]

    @property
    def needed_width(self) -> int:
        """Cells in which nothing would be hidden."""
        spare = 0 if self.missing else max(0, self.room)
        return self.width + self.missing + max(0, cells_of(self.hidden) - spare)

    @property
    def room(self) -> int:
        """Cells left to the right of the table; none where negative."""
        return self.width - INDENT - self.names.width - cells_of(self.shown)


def fit_table(table: Table, width: int, narrow: int = LEAST_NAMES) -> FittedTable:
    """The table in `width` cells: what carries the answer first, then names, then the rest.

    Columns of a rank above ANSWER are hidden, the highest rank first, while names would have less than `narrow`
    cells. Names take what the columns leave, and lose their middle where that is less than they need.
    """
    first, *others = map(_in_one_line, table.columns)
    columns = [column for column in others if column.rank != DETAIL]
    headed = [
        replace(column, header=shorten_middle(column.header, LONGEST_HEADER)) if column.right else column
        for column in columns
    ]
    fitting = [column for column in headed if column.rank == ANSWER]
    for column in sorted(headed, key=lambda column: column.rank):
        if column.rank > ANSWER and cells_of([*fitting, column]) <= width - INDENT - min(first.width, narrow):
            fitting.append(column)
    keys = {column.key for column in fitting}
    shown = [column for column in headed if column.key in keys]
    room = max(width - INDENT - cells_of(shown), cell_len(first.header))
    names = replace(first, cells=[shorten_middle(name, room) for name in first.cells])
    hidden = [column for column in columns if column.key not in keys]
    return FittedTable(names, shown, hidden, width, max(0, first.width - room), table.strong)


def _in_one_line(column: Column) -> Column:
    """The column with inert cells, so that no foreign text begins another line."""
    return replace(column, cells=list(map(inert, column.cells)))


def hidden_note(tables: Sequence[FittedTable], see: str) -> str:
    """What tables hide for lack of width and how to see it, in a line; "" where nothing is. `see` shows all of it."""
    headers = dict.fromkeys(column.header for table in tables for column in table.hidden)
    hidden = [quote(header) for header in headers]
    cut = any(table.missing for table in tables)
    if not hidden and not cut:
        return ""
    wider = max(table.needed_width for table in tables)
    what = all_of([*hidden, *["the middle of long names"] * cut])
    columns = f"{'column' if len(hidden) == 1 else 'columns'} " if hidden else ""
    return f"({columns}{what} {'needs' if len(hidden) + cut == 1 else 'need'} {wider} columns; or see {see})"


def cells_of(columns: Sequence[Column]) -> int:
    """Cells that the columns take, each with the gap before it."""
    return sum(GAP + column.width for column in columns)


def shorten_middle(name: str, width: int) -> str:
    """`name` in `width` cells: what is too long loses its middle, since names differ at their ends."""
    if cell_len(name) <= width:
        return name
    head, tail = name[: len(name) // 2], name[len(name) // 2 :]
    while cell_len(head) + cell_len(tail) > width - 1 and (head or tail):
        head, tail = (head[:-1], tail) if cell_len(head) >= cell_len(tail) else (head, tail[1:])
    return f"{head.rstrip()}…{tail.lstrip()}"
