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
from cachecost.numbers import change, compared, dollars, percent, rough_dollars, tokens
from cachecost.views.columns import shortened
from cachecost.views.optimum_words import plan_words
from cachecost.views.streams import inert_console, styled

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
    console.print(Text.assemble((title, "bold"), f"   {len(found.plan) - len(found.extras):,} calls"), soft_wrap=True)
    console.print()
    for sentence in answer(found):
        console.print(Text(sentence, "bold"), width=min(width, WIDEST_PROSE))
    console.print()
    console.print(_table(found, width))
    console.print()
    console.print(_facts(found, min(width, WIDEST_PROSE)))
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


def _table(found: Optimum, width: int) -> Padding:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    table.add_column("strategy", no_wrap=True)
    for header in ("cost", "over the floor", "saved by this plan"):
        table.add_column(header, justify="right", no_wrap=True)
    for name, usd in _rows(found):
        over, saved = change(usd, found.floor_usd), change(found.usd, usd)
        cells = (dollars(usd), percent(over, signed=True), percent(-saved) if saved else "–")
        table.add_row(shortened(name, max(20, width - 60)), *cells, style="bold" if name == PLAN else "")
    table.add_row(FLOOR, dollars(found.floor_usd), "", "")
    if found.with_pings and found.floor.usd != found.floor_usd:
        table.add_row(f"{FLOOR}, without pings", dollars(found.floor.usd), "", "")
    return Padding(table, (0, 0, 0, 2))


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
