"""Columns of a text table: what stands in them, and which are shown in how many cells of width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from cachecost.numbers import UNKNOWN, percent, point_aligned, tokens
from cachecost.views.summary import CLASS_FIELDS, Line, Summary

GAP = 2
INDENT = 2
NARROWEST_BAR = 6
WIDEST_BAR = 24
REFUSED = "✗"
PREFILL = "prefill"
"""The column of uncached tokens where no price is known: the one that counts, and is never dropped."""
DROP_FIRST = ("output", "input", "calls", "floor", "write_1h", "read", "write_5m")
"""When the terminal is narrow: the rarer a column is looked at, the earlier it goes."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: numbers are set flush right, names flush left."""

    key: str
    header: str
    cells: list[str]
    right: bool = True

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.header, *self.cells)))

    def flush(self, row: int) -> str:
        """The cell as wide as the column."""
        cell = self.cells[row]
        blanks = " " * (self.width - cell_len(cell))
        return blanks + cell if self.right else cell + blanks


def strategy_columns(summary: Summary) -> list[Column]:
    """The numbers of every strategy, in the order they are read; tokens are sums over all calls."""
    lines = summary.lines
    columns = [_column("calls", "calls", lines, lambda line: f"{line.calls:,}")]
    for name in summary.classes:
        key = PREFILL if name == "input" and not summary.is_priced else name
        columns.append(_column(key, summary.class_names[name], lines, _tokens_of(name)))
    if not summary.is_priced:
        columns.append(_column("hit_share", "hit share", lines, lambda line: percent(line.hit_share)))
    columns.append(_column("cost", "cost", lines, lambda line: line.money))
    if len(lines) > 1:
        columns.append(_column("vs_first", "vs first", lines, vs_first))
    if any(line.floor is not None for line in lines):
        columns.append(_column("floor", "over floor", lines, above_floor))
    if summary.has_questions:
        columns.append(_column("question", "a question", lines, lambda line: line.question_money))
    return columns


def vs_first(line: Line) -> str:
    """Against the first strategy; a cross where refused calls make it not comparable."""
    return REFUSED if line.refused else percent(line.vs_first, signed=True)


def above_floor(line: Line) -> str:
    """How far from the least that these bytes can cost."""
    return percent(line.above_floor, signed=True)


def fitted(columns: Sequence[Column], name_width: int, width: int) -> list[Column]:
    """The columns that stand in `width` cells beside names of `name_width` and the narrowest bar."""
    kept = list(columns)
    for key in DROP_FIRST:
        if room_for_bar(kept, name_width, width) >= NARROWEST_BAR:
            break
        kept = [column for column in kept if column.key != key]
    return kept


def room_for_bar(columns: Sequence[Column], name_width: int, width: int) -> int:
    """Cells left for the bar, at most the widest; less than the narrowest means none is drawn."""
    taken = INDENT + name_width + sum(GAP + column.width for column in columns) + GAP
    return min(width - taken, WIDEST_BAR)


def shortened(name: str, width: int) -> str:
    """`name` in `width` cells: what is too long loses its middle, since names differ at their ends."""
    if cell_len(name) <= width:
        return name
    head, tail = name[: len(name) // 2], name[len(name) // 2 :]
    while cell_len(head) + cell_len(tail) > width - 1 and (head or tail):
        head, tail = (head[:-1], tail) if cell_len(head) >= cell_len(tail) else (head, tail[1:])
    return f"{head.rstrip()}…{tail.lstrip()}"


def _tokens_of(name: str) -> Callable[[Line], str]:
    return lambda line: UNKNOWN if line.is_empty else tokens(getattr(line.usage, CLASS_FIELDS[name]))


def _column(key: str, header: str, lines: Sequence[Line], cell: Callable[[Line], str]) -> Column:
    return Column(key, header, point_aligned([cell(line) for line in lines]))
