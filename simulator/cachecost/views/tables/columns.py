"""Columns of a text table: what stands in them, and which are shown in how many cells of width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len

from cachecost.analysis.comparison.summary import CLASS_FIELDS, Line, Summary
from cachecost.base.formatting import percent, percent_column, point_aligned, token_column

GAP = 2
INDENT = 2
NARROWEST_BAR = 6
WIDEST_BAR = 24
LEAST_NAMES = 30
"""Cells that names have before columns are hidden for them."""
LONGEST_HEADER = 20
REFUSED = "✗"
PREFILL = "prefill"
"""The column of uncached tokens where no price is known: the one that counts."""
ANSWER, COMPARISON, LOWER_BOUND, COUNT, ZERO_CLASS = range(5)
"""Ranks of columns. What carries the answer is never hidden; of the others the highest rank goes first."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: numbers are set flush right, names flush left. `rank`: see `fit`."""

    key: str
    header: str
    cells: list[str]
    right: bool = True
    rank: int = ANSWER

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.header, *self.cells)))

    def flush(self, row: int) -> str:
        """The cell as wide as the column."""
        cell = self.cells[row]
        blanks = " " * (self.width - cell_len(cell))
        return blanks + cell if self.right else cell + blanks


@dataclass(frozen=True, slots=True)
class Fit:
    """A table in `width` cells: a column of names, the columns that are shown, and those hidden for lack of width."""

    names: Column
    shown: list[Column]
    hidden: list[Column]
    width: int
    missing: int
    """Cells that the names would need besides."""

    @property
    def columns(self) -> list[Column]:
        """What is shown, the names first."""
        return [self.names, *self.shown]

    @property
    def needed(self) -> int:
        """Cells in which nothing would be hidden."""
        spare = 0 if self.missing else max(0, self.room)
        return self.width + self.missing + max(0, cells_of(self.hidden) - spare)

    @property
    def room(self) -> int:
        """Cells left beside the table; none where negative."""
        return self.width - INDENT - self.names.width - cells_of(self.shown)


def fit(names: Sequence[str], header: str, columns: Sequence[Column], width: int, narrow: int = LEAST_NAMES) -> Fit:
    """A table of `names` and `columns` in `width` cells: what carries the answer first, then names, then the rest.

    Columns of a rank above ANSWER are hidden, the highest rank first, while names would have less than `narrow`
    cells. Names take what the columns leave, and lose their middle where that is less than they need.
    """
    longest = max(map(cell_len, (header, *names)))
    kept = [
        replace(column, header=shortened(column.header, LONGEST_HEADER)) if column.right else column
        for column in columns
    ]
    fitting = [column for column in kept if column.rank == ANSWER]
    for column in sorted(kept, key=lambda column: column.rank):
        if column.rank > ANSWER and cells_of([*fitting, column]) <= width - INDENT - min(longest, narrow):
            fitting.append(column)
    keys = {column.key for column in fitting}
    kept = [column for column in kept if column.key in keys]
    room = max(width - INDENT - cells_of(kept), cell_len(header))
    column = Column("name", header, [shortened(name, room) for name in names], right=False)
    return Fit(column, kept, [one for one in columns if one.key not in keys], width, max(0, longest - room))


def hidden_note(fits: Sequence[Fit], see: str) -> str:
    """What tables hide for lack of width and how to see it, in a line; "" where nothing is. `see` shows all of it."""
    heads = dict.fromkeys(column.header for one in fits for column in one.hidden)
    hidden = [f"“{head}”" if "," in head else head for head in heads]
    cut = any(one.missing for one in fits)
    if not hidden and not cut:
        return ""
    wider = max(one.needed for one in fits)
    what = " and ".join(filter(None, [", ".join(hidden), "the middle of long names" * cut]))
    return f"hidden for lack of width: {what}; shown by {see}, or in a terminal of {wider} columns"


def cells_of(columns: Sequence[Column]) -> int:
    """Cells that the columns take, each with the gap before it."""
    return sum(GAP + column.width for column in columns)


def strategy_columns(summary: Summary) -> list[Column]:
    """The numbers of every strategy, in the order they are read; tokens are sums over all calls."""
    lines = summary.lines
    columns = [Column("calls", "calls", [f"{line.calls:,}" for line in lines], rank=COUNT)]
    columns += [_class_column(summary, name) for name in summary.classes]
    if not summary.is_priced:
        columns.append(Column("hit_share", "hit share", percent_column([line.hit_share for line in lines])))
    columns.append(Column("cost", "cost", point_aligned([line.money for line in lines])))
    if len(lines) > 1:
        columns.append(Column("vs_first", summary.against, against_cells(lines), rank=COMPARISON))
    if any(line.floor is not None for line in lines):
        over = percent_column([line.above_floor for line in lines], signed=True)
        columns.append(Column("floor", "over floor", over, rank=LOWER_BOUND))
    if summary.has_questions:
        columns.append(Column("question", "a question", point_aligned([line.question_money for line in lines])))
    return columns


def against_cells(lines: Sequence[Line]) -> list[str]:
    """The lines against the one that all are compared to; a cross where refused calls make one not comparable."""
    cells = percent_column([line.vs_first for line in lines], signed=True)
    return [REFUSED if line.refused else cell for line, cell in zip(lines, cells, strict=True)]


def vs_first(line: Line) -> str:
    """The same of one line, where it stands alone."""
    return REFUSED if line.refused else percent(line.vs_first, signed=True)


def shortened(name: str, width: int) -> str:
    """`name` in `width` cells: what is too long loses its middle, since names differ at their ends."""
    if cell_len(name) <= width:
        return name
    head, tail = name[: len(name) // 2], name[len(name) // 2 :]
    while cell_len(head) + cell_len(tail) > width - 1 and (head or tail):
        head, tail = (head[:-1], tail) if cell_len(head) >= cell_len(tail) else (head, tail[1:])
    return f"{head.rstrip()}…{tail.lstrip()}"


def _class_column(summary: Summary, name: str) -> Column:
    """Tokens of a class. One that is zero everywhere may be hidden, one that counts never."""
    field, lines = CLASS_FIELDS[name], summary.lines
    key = PREFILL if name == "input" and not summary.is_priced else name
    counts = [None if line.is_empty else getattr(line.usage, field) for line in lines]
    rank = ANSWER if any(counts) or key == PREFILL else ZERO_CLASS
    return Column(key, summary.class_names[name], token_column(counts), rank=rank)
