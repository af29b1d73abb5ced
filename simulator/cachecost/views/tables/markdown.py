"""Pieces of Markdown: escaped words, a table, a picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from cachecost.base.formatting import UNKNOWN
from cachecost.base.inert import inert
from cachecost.views.tables.table import Table

SPECIAL = re.compile(r"([\\`*<|\[\]$~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;))")
"""Characters that could begin markup; a dollar sign too, which GitHub may take for the start of a formula."""
TICKS = re.compile("`+")
REFERENCE = re.compile(
    r"@(?=[\w\\-])"  # mentions, and addresses of mail
    r"|:(?=//)|\b[wW]{3}(?=\.)"  # addresses of pages
    r"|\b(?:GH|gh)-(?=\d)|#(?=\w)|[!%&](?=\w)|\\~(?=\w)"  # issues, requests, epics, milestones, labels
    r"|^(?=/\w)"  # what GitLab takes for a command where a line begins with it
)
COMMIT = re.compile(r"\b(?=[0-9]*[a-f])[0-9a-f]{7,40}\b")
COMMIT_PART = 6
"""Digits of a commit that are too few to be taken for one."""
NO_REFERENCE = "&#8203;"
"""A space of no width. Forges look for references in what is rendered, where a backslash is gone."""
LONGEST_WORD, LONGEST_TEXT = 80, 600


def escape_markdown(text: str) -> str:
    """`text` in one line, with nothing in it that Markdown reads as markup."""
    return SPECIAL.sub(r"\\\1", inert(" ".join(text.split())))


def escape_comment(text: str) -> str:
    """As `escape_markdown`, for a comment on a forge: short, and nothing in it pings, links or commands anybody."""
    shown = REFERENCE.sub(lambda match: match[0] + NO_REFERENCE, escape_markdown(short(text)))
    return COMMIT.sub(_parted, shown)


def _parted(commit: re.Match[str]) -> str:
    digits = commit[0]
    return NO_REFERENCE.join(digits[at : at + COMMIT_PART] for at in range(0, len(digits), COMMIT_PART))


def short(text: str) -> str:
    """`text` whose words, and as a whole, are no longer than a comment bears: the middle of more is left out."""
    return _without_middle(" ".join(_without_middle(word, LONGEST_WORD) for word in text.split(" ")), LONGEST_TEXT)


def _without_middle(text: str, most: int) -> str:
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def markdown_table(table: Table, escape: Callable[[str], str] = escape_markdown) -> str:
    """The table without its caption."""
    headers = list(map(escape, table.headers))
    rule = ["---:" if column.right else ":---" for column in table.columns]
    rows = [[_cell(table, row, column, escape) for column in range(len(headers))] for row in range(len(table.rows))]
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


def _cell(table: Table, row: int, column: int, escape: Callable[[str], str]) -> str:
    """The cell, bold where it stands out; empty and unknown ones stay as they are."""
    cell = table.columns[column].cells[row].strip()
    text = escape(cell)
    if table.columns[column].right:
        text = text.replace("\\$", "$")  # amounts: two in a row of numbers begin no formula
    return f"**{text}**" if table.is_bold(row, column) and cell not in ("", UNKNOWN) else text
