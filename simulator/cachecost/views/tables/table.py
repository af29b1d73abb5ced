"""A table as every report has it: columns of words, which text, Markdown and HTML render, fitted to a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from cachecost.base.formatting import all_of, inert, quote
from cachecost.base.structs import replace
from cachecost.views.streams import report_console

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.padding import Padding
    from rich.text import Text


REFUSED = "✗"
ANSWER, COMPARISON, LOWER_BOUND, COUNT, ZERO_CLASS = range(5)
DETAIL = 99
"""Ranks of columns. A narrow terminal never hides ANSWER; of the others it hides the highest rank first.
DETAIL is for reports in files: the terminal never shows it."""
GAP = 2
INDENT = 2
LEAST_NAMES = 30
"""Cells that names have before columns are hidden for them."""
PIPE_WIDTH = 180
LONGEST_WORD = 28
"""Cells of a word from which on it breaks: an id, a path."""
NUMBER = re.compile(r"[−+±<]?\$?[\d,.]+[kMB%]?(?: (?:s|min|h))?|–|")
"""What never breaks from its unit: a count, dollars, a percentage, a duration, unknown, nothing."""


@dataclass(frozen=True, slots=True)
class Column:
    """Numbers are aligned right, words left. `bold`: the rows whose cell stands out. `leads`: it stands before the
    names."""

    key: str
    header: str
    cells: list[str]
    right: bool = True
    rank: int = ANSWER
    bold: frozenset[int] = frozenset()
    leads: bool = False

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.header, *self.cells)))

    def flush(self, row: int) -> str:
        cell = self.cells[row]
        blanks = " " * (self.width - cell_len(cell))
        return blanks + cell if self.right else cell + blanks


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length; the first names the rows. `strong`: bold rows. `wraps`: long headers may wrap in
    HTML."""

    columns: Sequence[Column]
    caption: str = ""
    strong: frozenset[int] = frozenset()
    wraps: bool = False

    @property
    def headers(self) -> list[str]:
        return [column.header for column in self.columns]

    @property
    def rows(self) -> list[list[str]]:
        """The cells row by row, without the blanks that align them."""
        return [[cell.strip() for cell in row] for row in zip(*(column.cells for column in self.columns), strict=True)]

    def is_bold(self, row: int, column: int) -> bool:
        return row in self.strong or row in self.columns[column].bold


def word_column(header: str, cells: list[str], rank: int = ANSWER) -> Column:
    """A column of words; its header is its key."""
    return Column(header, header, cells, right=False, rank=rank)


def build_table(
    caption: str,
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: int = 1,
    strong: Iterable[bool] = (),
    wraps: bool = False,
) -> Table:
    """A table of rows. The first `words` columns are aligned left; `strong` tells for each row whether it is bold."""
    cells = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in headers]
    columns = [
        Column(header, header, column, right=number >= words)
        for number, (header, column) in enumerate(zip(headers, cells, strict=True))
    ]
    return Table(columns, caption, true_rows(strong), wraps)


def true_rows(flags: Iterable[bool]) -> frozenset[int]:
    return frozenset(number for number, flag in enumerate(flags) if flag)


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
        leading = [column for column in self.shown if column.leads]
        return [*leading, self.names, *(column for column in self.shown if not column.leads)]

    @property
    def needed_width(self) -> int:
        """Cells in which nothing would be hidden."""
        spare = 0 if self.missing else max(0, self.room)
        return self.width + self.missing + max(0, count_cells(self.hidden) - spare)

    @property
    def room(self) -> int:
        """Cells left to the right of the table; none where negative."""
        return self.width - INDENT - self.names.width - count_cells(self.shown)


def fit_table(table: Table, width: int, narrow: int = LEAST_NAMES) -> FittedTable:
    """The table in `width` cells. Columns of a rank above ANSWER are hidden, the highest rank first, while names would
    have less than `narrow` cells; names take what the columns leave, and lose their middle where that is too little."""
    # inert cells, so that no foreign text begins another line
    first, *others = (replace(column, cells=list(map(inert, column.cells))) for column in table.columns)
    columns = [column for column in others if column.rank != DETAIL]
    headed = [
        replace(column, header=shorten_middle(column.header, 20)) if column.right else column for column in columns
    ]
    fitting = [column for column in headed if column.rank == ANSWER]
    for column in sorted(headed, key=lambda column: column.rank):
        if column.rank > ANSWER and count_cells([*fitting, column]) <= width - INDENT - min(first.width, narrow):
            fitting.append(column)
    keys = {column.key for column in fitting}
    shown = [column for column in headed if column.key in keys]
    room = max(width - INDENT - count_cells(shown), cell_len(first.header))
    names = replace(first, cells=[shorten_middle(name, room) for name in first.cells])
    hidden = [column for column in columns if column.key not in keys]
    return FittedTable(names, shown, hidden, width, max(0, first.width - room), table.strong)


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


def count_cells(columns: Sequence[Column]) -> int:
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


def shorten_end(text: str, width: int) -> str:
    """`text` in `width` cells: what is too long, such as a sentence, loses its end."""
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 1).rstrip()}…"


def render_table(
    fitted: FittedTable,
    *,
    bars: Sequence[Text] | None = None,
    prose: tuple[str, Sequence[str]] | None = None,
    dim: Iterable[int] = (),
) -> Padding:
    """The table for a rich console; it neither wraps nor cuts a number. `bars` are a last column without a header,
    `prose` one of words that wrap (header, cells); `dim` rows are pale."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for column in fitted.columns:
        header = Text(column.header, justify="right" if column.right else "left")
        table.add_column(header, no_wrap=True, min_width=column.width)
    if bars is not None:
        table.add_column("", no_wrap=True)
    if prose is not None:
        table.add_column(prose[0], overflow="fold")
    pale = set(dim)
    for row in range(len(fitted.names.cells)):
        cells = [Text(column.flush(row)) for column in fitted.columns]
        last = [bars[row]] if bars is not None else []
        words = [prose[1][row]] if prose is not None else []
        table.add_row(*cells, *last, *words, style="bold" if row in fitted.strong else "dim" if row in pale else "")
    return Padding(table, (0, 0, 0, INDENT), expand=False)


def indented(text: RenderableType, width: int, indent: int = INDENT) -> Padding:
    """`text` from column `indent` on, wrapped between words before cell `width`."""
    from rich.padding import Padding
    from rich.table import Table

    holder = Table.grid()
    holder.add_column(width=width - indent)
    holder.add_row(text)
    return Padding(holder, (0, 0, 0, indent))


def facts_grid(facts: Iterable[tuple[str, str]], width: int) -> Padding:
    """Labels, and beside them sentences that wrap before cell `width`."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True, min_width=len("tokens"))
    grid.add_column()
    for label, sentence in facts:
        grid.add_row(Text(label), Text(sentence))
    return indented(grid, width)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], hide: Sequence[str] = ()) -> None:
    """Print a table of words to stdout; neither a word nor a number breaks. In a narrow terminal the columns in `hide`
    go, the first of them first, and the last line says so."""
    import sys

    from rich.table import Table as RichTable

    console = report_console(sys.stdout, PIPE_WIDTH)
    lines = [list(row) for row in rows]
    least = []  # cells that a column needs so that no number and no word breaks; a very long word does
    for number, name in enumerate(columns):
        cells = [name, *(row[number] for row in lines)]
        parts = [part for cell in cells for part in ([cell] if NUMBER.fullmatch(cell) else cell.split() or [""])]
        least.append(min(max(map(len, parts)), LONGEST_WORD))
    ranks = [COMPARISON + len(hide) - hide.index(name) if name in hide else ANSWER for name in columns]
    wanted = [
        Column(str(number), name.ljust(least[number]), [], False, ranks[number]) for number, name in enumerate(columns)
    ]
    fitted = fit_table(Table([Column("name", " " * least[0], [], False), *wanted[1:]]), console.width, least[0])
    shown = [0, *(int(column.key) for column in fitted.shown)]
    table = RichTable(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number in shown:
        table.add_column(columns[number], overflow="fold", min_width=least[number])
    for row in lines:
        table.add_row(*(row[number] for number in shown))
    console.print(table)
    if note := hidden_note([replace(fitted, missing=0)], "--json"):
        console.print(re.sub(r" +,", ",", re.sub(r" +;", ";", note)), markup=False)
