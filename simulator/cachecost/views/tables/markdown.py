"""The few pieces of Markdown: escaped words, a table, a picture."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from cachecost.base.formatting import UNKNOWN
from cachecost.base.inert import inert

SPECIAL = re.compile(r"([\\`*<|\[\]$~]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;))")
"""Signs that could begin markup; a dollar sign too, which GitHub may take for the start of a formula."""


def escaped(text: str) -> str:
    """Words as they are: nothing in them is markup, and no line ends."""
    return SPECIAL.sub(r"\\\1", inert(" ".join(text.split())))


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], names: int = 1) -> str:
    """A table whose first `names` columns stand flush left, the others flush right. Cells are Markdown already."""
    rule = [":---" if number < names else "---:" for number in range(len(headers))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headers, rule, *rows))


def strong(cells: Sequence[str]) -> list[str]:
    """The cells in bold; empty and unknown ones stay as they are."""
    return [cell if cell in ("", UNKNOWN) else f"**{cell}**" for cell in cells]


def picture(name: str, says: str, there: Collection[str]) -> str:
    """A link to the picture beside the report, its finding as its text; empty if it is not there."""
    return f"![{escaped(says)}]({name})" if name in there else ""
