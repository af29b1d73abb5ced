"""A table of words for the terminal: words wrap, but neither a word nor a number breaks; what is hidden is said."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from cachecost.views.streams import inert_console

PIPE_WIDTH = 180
LONGEST_WORD = 28
"""Cells of a word from which on it breaks: an id, a path."""
NUMBER = re.compile(r"[−+±<]?\$?[\d,.]+[kMB%]?(?: (?:s|min|h))?|–|")
"""What never breaks from its unit: a count, dollars, a percentage, a duration, unknown, nothing."""


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], hide: Sequence[str] = ()) -> None:
    """Print to stdout; colour only where the terminal wants it (rich respects NO_COLOR and pipes).

    In a narrow terminal the columns in `hide` go, the first of them first, and the last line says so.
    """
    from rich.table import Table

    from cachecost.views.tables.columns import ANSWER, COMPARISON, Column, fit, hidden_note

    console = inert_console(sys.stdout, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    found = [list(row) for row in rows]
    least = [_least([name, *(row[number] for row in found)]) for number, name in enumerate(columns)]
    ranks = [COMPARISON + len(hide) - hide.index(name) if name in hide else ANSWER for name in columns]
    wanted = [
        Column(str(number), name.ljust(least[number]), [], False, ranks[number]) for number, name in enumerate(columns)
    ]
    fitted = fit([" " * least[0]], "", wanted[1:], console.width, least[0])
    kept = [0, *(int(column.key) for column in fitted.shown)]
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number in kept:
        table.add_column(columns[number], overflow="fold", min_width=least[number])
    for row in found:
        table.add_row(*(row[number] for number in kept))
    console.print(table)
    if note := hidden_note([replace(fitted, missing=0)], "--json"):
        console.print(re.sub(r" +,", ",", re.sub(r" +;", ";", note)), markup=False)


def _least(cells: Sequence[str]) -> int:
    """Cells that a column needs so that no number and no word breaks; a very long word does."""
    parts = (part for cell in cells for part in ([cell] if NUMBER.fullmatch(cell) else cell.split() or [""]))
    return min(max(map(len, parts)), LONGEST_WORD)
