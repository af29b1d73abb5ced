"""Rows as CSV, text that is safe in Markdown, tables in Markdown; ranks and lower bounds of strategies."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from io import StringIO
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from cachecost.base.atomic_files import open_whole
from cachecost.base.formatting import (
    UNKNOWN,
    all_of,
    change,
    dollar_places,
    dollars,
    exact_or_none,
    inert,
    inert_cell,
    percent,
)
from cachecost.base.frames import flat_rows
from cachecost.views.tables.table import COMPARISON, Column, Table

if TYPE_CHECKING:
    from cachecost.analysis.comparison.summary import Summary
    from cachecost.ledger.results import Ledger

Row = Mapping[str, Any]
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
NO_REFERENCE = "&#8203;"
"""A space of no width. Forges look for references in what is rendered, where a backslash is gone."""
LONGEST_WORD, LONGEST_TEXT = 80, 600


def csv_text(rows: Iterable[Row]) -> str:
    """A header and a line a row. What is nested has its names joined by a point; nothing is an empty cell."""

    def cell(value: object) -> str:
        return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)

    flat = [{name: inert_cell(cell(value)) for name, value in row.items()} for row in flat_rows(rows)]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writerow({name: inert_cell(name) for name in names})
    writer.writerows(flat)
    return text.getvalue()


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    """Write the rows, whole or not at all. Raises CannotWrite."""
    with open_whole(path) as stream:
        stream.write(csv_text(rows).encode())


def lower_bounds(ledgers: Sequence[Ledger]) -> dict[Decimal, list[Ledger]]:
    """The strategies by their lower bound, in their order, without those that have none."""
    found: dict[Decimal, list[Ledger]] = {}
    for ledger in ledgers:
        if ledger.lower_bound is not None:
            found.setdefault(ledger.lower_bound, []).append(ledger)
    return found


def have_own_bounds(ledgers: Sequence[Ledger]) -> bool:
    """Whether strategies send different requests, so that each has to be compared with its own lower bound."""
    return len(lower_bounds(ledgers)) > 1


def lower_bound_sentence(ledgers: Sequence[Ledger]) -> str:
    """What no breakpoints and TTLs can go below, for a line under the table; "" where unknown, or a column."""
    bounds = lower_bounds(ledgers)
    if len(bounds) != 1:
        return ""
    [(usd, bounded)] = bounds.items()
    places = dollar_places([usd, *(ledger.cost.total for ledger in ledgers)])
    names = [ledger.strategy for ledger in bounded]
    others = [ledger.strategy for ledger in ledgers if ledger not in bounded]
    whose = ""
    if others:
        whose = f" for {all_of(names) if len(names) <= len(others) + 1 else f'all but {all_of(others)}'}"
    words = "no choice of breakpoints and TTLs makes these requests cheaper"
    if (above := change(min(ledger.cost.total for ledger in bounded), usd)) is not None:
        words += f", and the cheapest strategy is {f'{percent(above)} above' if above else 'at'} it"
    return f"Lower bound{whose}: {dollars(usd, places)}; {words}."


def rank_column(summary: Summary, names: Sequence[str]) -> Column:
    """The ranks of the strategies of these names; an empty cell for one that is not compared, and for "" (the bill)."""
    from cachecost.analysis.comparison.summary import find_ranks  # as most who write tables rank nothing

    ranks = find_ranks(summary)
    return Column("rank", "rank", [str(ranks.get(name, "")) for name in names], rank=COMPARISON)


def escape_markdown(text: str) -> str:
    """`text` in one line, with nothing in it that Markdown reads as markup."""
    return SPECIAL.sub(r"\\\1", inert(" ".join(text.split())))


def escape_comment(text: str) -> str:
    """As `escape_markdown`, for a comment on a forge: short, and nothing in it pings, links or commands anybody."""
    shown = REFERENCE.sub(lambda match: match[0] + NO_REFERENCE, escape_markdown(short(text)))
    # digits of a commit that are too few to be taken for one
    return COMMIT.sub(lambda commit: NO_REFERENCE.join(wrap(commit[0], 6)), shown)


def short(text: str) -> str:
    """`text` whose words, and as a whole, are no longer than a comment bears: the middle of more is left out."""
    return _without_middle(" ".join(_without_middle(word, LONGEST_WORD) for word in text.split(" ")), LONGEST_TEXT)


def _without_middle(text: str, most: int) -> str:
    half = (most - 1) // 2
    return text if len(text) <= most else f"{text[:half]}…{text[-half:]}"


def markdown_table(table: Table, escape: Callable[[str], str] = escape_markdown) -> str:
    headers = list(map(escape, table.headers))
    rule = ["---:" if column.right else ":---" for column in table.columns]
    lines = [headers, rule]
    for row in range(len(table.rows)):
        cells = []
        for number, column in enumerate(table.columns):
            cell = column.cells[row].strip()
            text = escape(cell)
            if column.right:
                text = text.replace("\\$", "$")  # amounts: two in a row of numbers begin no formula
            is_bold = table.is_bold(row, number) and cell not in ("", UNKNOWN)
            cells.append(f"**{text}**" if is_bold else text)
        lines.append(cells)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def code_block(lines: Collection[str], language: str = "") -> str:
    """A fenced block that its lines cannot end."""
    shown = list(map(inert, lines))
    longest = max((len(run) for line in shown for run in TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence + language, *shown, fence])


def picture_link(name: str, description: str, files: Collection[str]) -> str:
    """A link to the picture `name` with its description as text; empty if it is not among `files`."""
    return f"![{escape_markdown(description)}]({name})" if name in files else ""


def pick(one: object, *names: str) -> dict[str, Any]:
    """These attributes, for an object of JSON whose keys have the same names."""
    return {name: getattr(one, name) for name in names}


def pick_usd(one: object, *names: str) -> dict[str, str | None]:
    """As `pick`, of dollars: all digits of each, or None, as NAME_usd."""
    return {f"{name}_usd": exact_or_none(getattr(one, name)) for name in names}
