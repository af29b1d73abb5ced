"""Pieces of Markdown: escaped words, a table, a picture."""

from __future__ import annotations

import re
from collections.abc import Collection

from cachecost.base.formatting import UNKNOWN
from cachecost.base.inert import inert
from cachecost.views.tables.table import Table

SPECIAL = re.compile(r"([\\`*<|\[\]$~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;))")
"""Characters that could begin markup; a dollar sign too, which GitHub may take for the start of a formula."""
TICKS = re.compile("`+")


def escape_markdown(text: str) -> str:
    """`text` in one line, with nothing in it that Markdown reads as markup."""
    return SPECIAL.sub(r"\\\1", inert(" ".join(text.split())))


def markdown_table(table: Table) -> str:
    """The table without its caption."""
    headers = list(map(escape_markdown, table.headers))
    rule = ["---:" if column.right else ":---" for column in table.columns]
    rows = [[_cell(table, row, column) for column in range(len(headers))] for row in range(len(table.rows))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headers, rule, *rows))


def code_block(lines: Collection[str], language: str = "") -> str:
    """A fenced block that its lines cannot end."""
    shown = list(map(inert, lines))
    longest = max((len(run) for line in shown for run in TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence + language, *shown, fence])


def picture_link(name: str, description: str, files: Collection[str]) -> str:
    """A link to the picture `name` with its description as text; empty if it is not among `files`."""
    return f"![{escape_markdown(description)}]({name})" if name in files else ""


def _cell(table: Table, row: int, column: int) -> str:
    """The cell, bold where it stands out; empty and unknown ones stay as they are."""
    cell = table.columns[column].cells[row].strip()
    text = escape_markdown(cell)
    if table.columns[column].right:
        text = text.replace("\\$", "$")  # amounts: two in a row of numbers begin no formula
    return f"**{text}**" if table.is_bold(row, column) and cell not in ("", UNKNOWN) else text
