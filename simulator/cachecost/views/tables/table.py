"""A table as every report has it: columns of words, which text, Markdown and HTML render."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

REFUSED = "✗"
ANSWER, COMPARISON, LOWER_BOUND, COUNT, ZERO_CLASS = range(5)
DETAIL = 99
"""Ranks of columns. A narrow terminal never hides ANSWER; of the others it hides the highest rank first.
DETAIL is for reports in files: the terminal never shows it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. Numbers are aligned right, words left. `bold`: the rows whose cell stands out.

    `leads`: in a terminal it stands before the names.
    """

    key: str
    header: str
    cells: list[str]
    right: bool = True
    rank: int = ANSWER
    bold: frozenset[int] = frozenset()
    leads: bool = False

    @property
    def width(self) -> int:
        """Terminal cells that the column takes."""
        return max(map(cell_len, (self.header, *self.cells)))

    def flush(self, row: int) -> str:
        """The cell, padded to the width of the column."""
        cell = self.cells[row]
        blanks = " " * (self.width - cell_len(cell))
        return blanks + cell if self.right else cell + blanks


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length; the first names the rows. `strong`: the rows in bold.

    `wraps`: long headers may wrap in HTML.
    """

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
    """The numbers of the rows whose flag is true."""
    return frozenset(number for number, flag in enumerate(flags) if flag)
