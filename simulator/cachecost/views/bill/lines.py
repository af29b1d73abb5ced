"""Lines of a bill in a terminal: sentences that wrap between words, and rows of tables without blanks at their ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from cachecost.views.tables.fitting import GAP, INDENT, FittedTable

if TYPE_CHECKING:
    from rich.console import Console

NARROWEST_PROSE = 36
"""Cells that words beside a row need; with less they stand below it."""
BELOW = 6
"""Blanks before words below a row."""
NO_BREAK = "\xa0"
StyledLine = tuple[str, str]
"""A line, and its style in rich's words."""
AFTER_NUMBER = re.compile(r"(?<=[\d%]) (?=[\w×%])")
"""A number never breaks from what it counts."""


def wrap_line(text: str, width: int, indent: str = "", hanging: str | None = None) -> list[str]:
    """`text` in lines of at most `width` cells; a word that is longer, such as a path, has a line of its own."""
    joined = AFTER_NUMBER.sub(NO_BREAK, text)
    lines = wrap(
        joined,
        width,
        initial_indent=indent,
        subsequent_indent=indent if hanging is None else hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(NO_BREAK, " ") for line in lines]


def wrap_parts(text: str, width: int, hanging: str = "  ") -> list[str]:
    """As `wrap_line`, but only between parts that " · " separates, where each fits into a line."""
    lines = [""]
    for part in text.split(" · "):
        longer = f"{lines[-1]} · {part}" if lines[-1].strip() else lines[-1] + part
        if lines[-1].strip() and len(longer) > width:
            lines.append(hanging + part)
        else:
            lines[-1] = longer
    return [short for line in lines for short in (wrap_line(line, width) if len(line) > width else [line])]


def header_line(fitted: FittedTable) -> str:
    cells = (c.header.rjust(c.width) if c.right else c.header.ljust(c.width) for c in fitted.columns)
    return (" " * INDENT + (" " * GAP).join(cells)).rstrip()


def row_lines(fitted: FittedTable) -> Iterator[str]:
    """The rows of a table, whose columns are aligned."""
    for row in range(len(fitted.names.cells)):
        yield (" " * INDENT + (" " * GAP).join(column.flush(row) for column in fitted.columns)).rstrip()


def prose_width(fitted: FittedTable) -> int:
    """Cells for words beside the rows of a table; 0 where they are too few."""
    room = fitted.room - GAP
    return room if room >= NARROWEST_PROSE else 0


def rows_with_prose(fitted: FittedTable, words: Sequence[str]) -> Iterator[str]:
    """The rows, each with its words beside it, or below it where room lacks."""
    room = prose_width(fitted)
    at = fitted.width - room
    for line, text in zip(row_lines(fitted), words, strict=True):
        if not room:
            yield line
            yield from wrap_line(text, fitted.width, " " * BELOW)
            continue
        first, *rest = wrap_line(text, room) or [""]
        yield f"{line.ljust(at)}{first}".rstrip()
        yield from (" " * at + one for one in rest)


def plain(lines: Iterable[str]) -> Iterator[StyledLine]:
    return ((line, "") for line in lines)


def print_lines(console: Console, lines: Iterable[StyledLine]) -> None:
    for line, style in lines:
        console.print(line, style=style, soft_wrap=True, highlight=False)
