"""Tables in a terminal: fitted ones, whose rows never wrap, and tables of words, which do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cachecost.views.streams import report_console

if TYPE_CHECKING:
    from rich.padding import Padding
    from rich.text import Text

    from cachecost.views.tables.fitting import FittedTable

PIPE_WIDTH = 180
LONGEST_WORD = 28
"""Cells of a word from which on it breaks: an id, a path."""
NUMBER = re.compile(r"[−+±<]?\$?[\d,.]+[kMB%]?(?: (?:s|min|h))?|–|")
"""What never breaks from its unit: a count, dollars, a percentage, a duration, unknown, nothing."""


def render_table(
    fitted: FittedTable,
    *,
    bars: Sequence[Text] | None = None,
    prose: tuple[str, Sequence[str]] | None = None,
    dim: Iterable[int] = (),
) -> Padding:
    """The table for a rich console; strong rows are bold. It neither wraps nor cuts a number.

    `bars` are a last column without a header, `prose` one of words that wrap (header, cells); `dim` rows are pale.
    """
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    from cachecost.views.tables.fitting import GAP, INDENT

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


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], hide: Sequence[str] = ()) -> None:
    """Print a table of words to stdout; words wrap, but neither a word nor a number breaks.

    In a narrow terminal the columns in `hide` go, the first of them first, and the last line says so.
    """
    import sys

    from rich.table import Table as RichTable

    from cachecost.views.tables.fitting import fit_table, hidden_note
    from cachecost.views.tables.table import ANSWER, COMPARISON, Column, Table

    console = report_console(sys.stdout, PIPE_WIDTH)
    lines = [list(row) for row in rows]
    least = [_least_width([name, *(row[number] for row in lines)]) for number, name in enumerate(columns)]
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


def _least_width(cells: Sequence[str]) -> int:
    """Cells that a column needs so that no number and no word breaks; a very long word does."""
    parts = (part for cell in cells for part in ([cell] if NUMBER.fullmatch(cell) else cell.split() or [""]))
    return min(max(map(len, parts)), LONGEST_WORD)
