"""What `cachecost optimize` prints for people: what to do, how far everything is from the floor, how sure that is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from io import StringIO
from typing import IO

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cachecost.analysis.optimum.optimum import Optimum
from cachecost.base.formatting import (
    change,
    compared,
    counted,
    dollar_column,
    dollars,
    percent,
    percent_column,
    rough_dollars,
    tokens,
)
from cachecost.views.optimum.sentences import plan_words
from cachecost.views.run.text_tables import table_of
from cachecost.views.streams import inert_console, styled
from cachecost.views.tables.columns import INDENT, Column, Fit, fit, hidden_note

PIPE_WIDTH, WIDEST_PROSE = 120, 120
MOST_ROWS = 8
KNOWN = {"none", "automatic", "system-only", "progressive", "base", "claude-code"}
PLAN, FLOOR = "this plan", "floor for these bytes"


def print_optimum(found: Optimum, title: str, stream: IO[str]) -> None:
    """Print to `stream`; 120 cells into a pipe."""
    probe = inert_console(stream)
    width = probe.width if probe.is_terminal or os.environ.get("COLUMNS") else PIPE_WIDTH
    page = StringIO()
    console = inert_console(page, width=width, highlight=False)
    console.print(
        Text.assemble((title, "bold"), f"   {counted(len(found.plan) - len(found.extras), 'call')}"), soft_wrap=True
    )
    console.print()
    for sentence in answer(found):
        console.print(Text(sentence, "bold"), width=min(width, WIDEST_PROSE))
    console.print()
    fitted = _fitted(found, width)
    console.print(_table(fitted))
    console.print()
    console.print(_facts(found, min(width, WIDEST_PROSE)))
    if note := hidden_note([fitted], "--csv F"):
        console.print(Padding(Text(note), (0, 0, 0, INDENT)))
    styled(stream).write("".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines()))


def answer(found: Optimum) -> Iterator[str]:
    """What to do, and what it is worth."""
    yield plan_words(found.plan)
    before = found.recorded_usd if found.recorded_usd is not None else found.best_preset.usd
    name = found.first if found.recorded_usd is not None else found.best_preset.name
    yield (
        f"That costs {dollars(found.usd)} instead of {dollars(before)} ({name}): {_less(found.usd, before)}. "
        + _proof(found)
    )


def _less(usd: Decimal, before: Decimal) -> str:
    return compared(change(usd, before))


def _proof(found: Optimum) -> str:
    gap = change(found.usd, found.floor_usd)
    if found.is_optimal:
        return "Nothing legal is cheaper: that is proved."
    if gap is not None and gap <= 0:
        return "It is at the floor, but not under every reading of the documents."
    return f"No legal plan costs less than {dollars(found.floor_usd)}; this one is {percent(gap)} above that floor."


def _rows(found: Optimum) -> list[tuple[str, Decimal]]:
    """The plan, what was recorded, and the presets: those that cost the same in one row, the cheapest rows only."""
    groups: dict[Decimal, list[str]] = {}
    for one in sorted((one for one in found.presets if not one.refused), key=lambda one: one.usd):
        groups.setdefault(one.usd, []).append(one.name)
    rows = [
        (_names(names), usd)
        for number, (usd, names) in enumerate(groups.items())
        if number < MOST_ROWS or set(names) & KNOWN
    ]
    if found.recorded_usd is not None:
        rows.append((found.first, found.recorded_usd))
    return [(PLAN, found.usd), *sorted(rows, key=lambda row: row[1])]


def _names(names: list[str]) -> str:
    """The best known of strategies that come to the same, and how many there are."""
    first = next((name for name in names if name.partition("@")[0] in KNOWN), names[0])
    return first if len(names) == 1 else f"{first} and {len(names) - 1} more like it"


def _fitted(found: Optimum, width: int) -> Fit:
    """The strategies, then the lower bounds, in `width` cells."""
    rows, floors = _rows(found), _floors(found)
    costs = dollar_column([usd for _, usd in (*rows, *floors)])
    over = percent_column([change(usd, found.floor_usd) for _, usd in rows], signed=True)
    saved = percent_column([_saved(found, usd) for _, usd in rows])
    blank = [""] * len(floors)
    columns = [
        Column("cost", "cost", costs),
        Column("over", "over the floor", [*over, *blank]),
        Column("saved", "saved by this plan", [*saved, *blank]),
    ]
    return fit([name for name, _ in (*rows, *floors)], "strategy", columns, width)


def _table(fitted: Fit) -> Padding:
    table = table_of(fitted.columns)
    for number in range(len(fitted.names.cells)):
        cells = (Text(column.flush(number)) for column in fitted.columns)
        table.add_row(*cells, style="bold" if number == 0 else "")
    return Padding(table, (0, 0, 0, INDENT))


def _floors(found: Optimum) -> list[tuple[str, Decimal]]:
    """The lower bounds, each with its name."""
    if found.with_pings and found.floor.usd != found.floor_usd:
        return [(FLOOR, found.floor_usd), (f"{FLOOR}, without pings", found.floor.usd)]
    return [(FLOOR, found.floor_usd)]


def _saved(found: Optimum, usd: Decimal) -> Decimal | None:
    saved = change(found.usd, usd)
    return -saved if saved else None


def _facts(found: Optimum, width: int) -> Padding:
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for label, sentence in facts(found):
        grid.add_row(Text(label), Text(sentence))
    holder = Table.grid()
    holder.add_column(width=width - 2)
    holder.add_row(grid)
    return Padding(holder, (0, 0, 0, 2))


def facts(found: Optimum) -> Iterator[tuple[str, str]]:
    """How sure it is, and what else changes: (label, sentence)."""
    band = Decimal(str(found.band))
    about = f": ±{percent(band)} → ±{rough_dollars(found.usd * band)} on each figure" if band else ""
    yield "tokens", f"{found.token_source}{about}"
    yield "rules", _rules(found)
    for name, load in found.loads.items():
        yield (
            "prefill" if name == "plan" else "",
            f"{name}: {percent(load.mean_share)} of a prompt is not read (95th percentile {percent(load.p95_share)}); "
            f"at most {tokens(load.peak_per_minute)} input tokens a minute count against a rate limit",
        )
    yield "seconds", _seconds(found)
    if found.refused:
        yield "left out", f"{len(found.refused):,} calls that failed, are refused, or could not be evaluated"
    if found.answers_usd:
        yield "answers", f"{dollars(found.answers_usd)} of each figure is output, the same in every plan"


def _rules(found: Optimum) -> str:
    if not found.depends_on:
        return "under every other reading of the open switches no compared preset is cheaper than this plan"
    bad = [one for one in found.readings if not one.is_cheaper]
    told = "; ".join(
        f"with {one.switch}={one.value} it costs {dollars(one.plan_usd)}, a preset {dollars(one.preset_usd)}"
        for one in bad
    )
    return f"the plan depends on a reading of the documents, so it is not called optimal: {told}"


def _seconds(found: Optimum) -> str:
    fit = found.fit
    if fit is None:
        return "not supported by the data: the recording has no times to the first token"
    if not fit.is_supported:
        return f"not supported by the data ({fit.calls} calls with a time, r² {fit.r2:.2f})"
    saved = found.loads[found.first].unread_tokens - found.loads["plan"].unread_tokens
    return (
        f"first token after {fit.base_s:.2f} s + {fit.per_token_s * 1000:.3f} s per 1,000 unread tokens "
        f"(r² {fit.r2:.2f}, {fit.calls} calls): {saved * fit.per_token_s:+.1f} s saved in all"
    )
