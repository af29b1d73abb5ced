"""A table of words for the terminal: columns as wide as they need, the last one wrapped."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from cachecost.views.streams import inert_console

PIPE_WIDTH = 180


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print to stdout; colour only where the terminal wants it (rich respects NO_COLOR and pipes)."""
    from rich.table import Table

    console = inert_console(sys.stdout, highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
