"""The bill in a terminal: the verdict, the cost by token class and by group, then the uncached loops."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from typing import IO, Literal, cast

from rich.cells import cell_len, set_cell_size
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cachecost.base.formatting import count_text, point_aligned
from cachecost.base.inert import encodable
from cachecost.live.server.bill import BillShare, ServerBill, bill_of
from cachecost.live.server.bill_figures import class_rows, columns, counted_by, facts, verdict
from cachecost.live.server.meter import Meter
from cachecost.views.streams import inert_console, styled_stream
from cachecost.views.tables.fitting import GAP, INDENT, fit_table, hidden_note
from cachecost.views.tables.table import COMPARISON, COUNT, LOWER_BOUND, ZERO_CLASS, Column
from cachecost.views.tables.table import Table as FigureTable

Colours = Literal["standard", "256", "truecolor", "windows"]
PIPE_WIDTH = 120
NARROWEST_NAME = 18
KEYS = ("calls", "input", "read_tokens", "write_5m_tokens", "write_1h_tokens", "input_tokens", "output_tokens")
LAST_KEYS = ("cache_hit_rate", "unread", "uncached", "cost")
RANKS = {"cache_hit_rate": COMPARISON, "uncached": LOWER_BOUND, "unread": COUNT, "input": ZERO_CLASS}
"""Columns that may be hidden for lack of width. A token class may be only if it is zero everywhere."""
MOST_CONVERSATIONS = 20


def print_bill(meter: Meter, stream: IO[str]) -> None:
    """Print the bill, as wide as the terminal or 120 cells into a pipe, with colors as it and NO_COLOR allow."""
    print_text(bill_of(meter), stream)


def print_text(bill: ServerBill, stream: IO[str]) -> None:
    """Print to `stream`, with ASCII replacements for characters that its encoding lacks."""
    probe = inert_console(stream)
    width = probe.width if probe.is_terminal or os.environ.get("COLUMNS") else PIPE_WIDTH
    colours = None if probe.no_color or not probe.is_terminal else cast("Colours | None", probe.color_system)
    text = bill_text(bill, width, colours)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    styled_stream(stream).write(encodable(text, encoding))


def bill_text(bill: ServerBill, width: int = PIPE_WIDTH, colours: Colours | None = None) -> str:
    """The whole bill, no line wider than `width` cells."""
    page = StringIO()
    console = inert_console(page, width=width, color_system=colours, force_terminal=bool(colours), legacy_windows=False)
    for part in _parts(bill, width):
        console.print(part, highlight=False, markup=False, emoji=False)
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())


def _parts(bill: ServerBill, width: int) -> Iterator[RenderableType]:
    yield Text(verdict(bill), "bold")
    if not bill.total.calls:
        return
    for fact in facts(bill):
        yield _indent(Text(fact))
    yield Text()
    yield _classes(bill.total)
    for header, shares in (
        ("workspace", bill.workspaces),
        ("model", bill.models),
        ("conversation", bill.conversations),
    ):
        if len(shares) > 1 or header == "conversation":
            yield Text()
            yield from _table(header, shares, width)
    if bill.loops:
        yield Text()
        yield Text(f"{count_text(len(bill.loops), 'conversation')} left uncached", "bold red")
    for loop in bill.loops:
        yield _indent(Text(loop.sentence))
    if counted_by(bill):
        yield Text()
        yield _indent(Text(f"tokens   {counted_by(bill)}", "dim"))


def _classes(total: BillShare) -> RenderableType:
    rows = [(name, count, cost) for key, name, count, cost in class_rows(total) if _is_used(total, key)]
    names, counts, costs = ([row[number] for row in rows] for number in range(3))
    numbers = [Column("count", "", counts), Column("cost", "cost", point_aligned(costs))]
    return _grid([Column("name", "tokens", names, False), *numbers])


def _is_used(share: BillShare, key: str) -> bool:
    """1h writes are shown only if there are any; other classes always."""
    return key != "write_1h" or bool(share.usage.write_1h)


def _table(header: str, shares: Sequence[BillShare], width: int) -> Iterator[RenderableType]:
    shown = sorted(shares, key=lambda share: -share.cost.total)[:MOST_CONVERSATIONS]
    kept = columns(shown, [*KEYS, *LAST_KEYS])
    kept = [column for column in kept if column.key != "write_1h_tokens" or set(column.cells) != {"0"}]
    names_column = Column("name", header, [share.name for share in shown], False)
    fitted = fit_table(FigureTable([names_column, *map(_with_rank, kept)]), width, NARROWEST_NAME)
    names = [_cut(share.name, max(_room(fitted.shown, width), len(header))) for share in shown]
    yield _grid([Column("name", header, names, False), *fitted.shown])
    if note := hidden_note([replace(fitted, missing=0)], "the page at /cachecost"):
        yield _indent(Text(note, "dim"))
    if len(shares) > len(shown):
        yield _indent(Text(f"and {count_text(len(shares) - len(shown), header)} more", "dim"))


def _with_rank(column: Column) -> Column:
    is_zero = column.key.endswith("_tokens") and set(column.cells) == {"0"}
    return replace(column, rank=ZERO_CLASS if is_zero else RANKS.get(column.key, column.rank))


def _cut(name: str, width: int) -> str:
    """`name` shortened to `width` cells at its end, since the beginning identifies a conversation."""
    if cell_len(name) <= width:
        return name
    return f"{set_cell_size(name, width - 1).rstrip()}…"


def _room(kept: Sequence[Column], width: int) -> int:
    return width - INDENT - sum(GAP + column.width for column in kept)


def _grid(kept: Sequence[Column]) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for column in kept:
        table.add_column(Text(column.header, justify="right" if column.right else "left"), no_wrap=True)
    for number in range(len(kept[0].cells)):
        table.add_row(*(Text(column.flush(number)) for column in kept))
    return Padding(table, (0, 0, 0, INDENT))


def _indent(text: RenderableType) -> RenderableType:
    return Padding(text, (0, 0, 0, INDENT))
