"""A sweep on the terminal: who is cheapest where, then the table, then what could not be evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cachecost.numbers import counted, dollars, percent, point_aligned
from cachecost.sweep.rows import Row
from cachecost.views.sweep_rows import PERCENTILES, Line, lines_of

MOST_LINES = 60
SPREAD = (5, 50, 95)
"""The percentiles that a narrow table keeps."""
NARROW = 100
RECORDINGS = (".jsonl", ".json")


def print_sweep(
    name: str, axes: Sequence[str], cells: int, rows: Sequence[Row], stream: TextIO, out: Path | None
) -> None:
    """Print the sweep to `stream`; colour only where the terminal wants it."""
    lines = lines_of(rows)
    good = [line for line in lines if line.strategy]
    console = Console(file=stream, highlight=False, soft_wrap=True)
    grid = f"{' × '.join(axes)} · " if axes else ""
    console.print(Text(f"{name}   {grid}{counted(cells, 'cell')}"))
    for sentence in _answer(good):
        console.print(Text(sentence))
    console.print()
    console.print(_table(axes, good[:MOST_LINES], console.width), soft_wrap=False)
    for sentence in _rest(axes, lines, out):
        console.print(Text(sentence))


def _answer(lines: Sequence[Line]) -> Iterator[str]:
    """Who is cheapest, and where."""
    best: dict[tuple[str, ...], Line] = {}
    for line in lines:
        if not line.rows[0].errors and (line.labels not in best or line.cost < best[line.labels].cost):
            best[line.labels] = line
    winners = [line.strategy for line in best.values()]
    ranked = sorted(dict.fromkeys(winners), key=lambda name: -winners.count(name))
    if len(ranked) == 1:
        costs = [line.cost for line in best.values()]
        span = dollars(costs[0]) if len(costs) == 1 else f"{dollars(min(costs))} to {dollars(max(costs))}"
        yield f"{ranked[0]} is cheapest{' everywhere' if len(costs) > 1 else ''}: {span}{_of_seeds(lines)}."
    elif ranked:
        told = ", ".join(f"{name} at {winners.count(name)}" for name in ranked)
        yield f"Who is cheapest depends on the point: {told} of {len(winners)}{_of_seeds(lines)}."


def _of_seeds(lines: Sequence[Line]) -> str:
    return f", means of {len(lines[0].rows):,} seeds" if lines[0].has_seeds else ""


def _table(axes: Sequence[str], lines: Sequence[Line], width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for axis in axes:
        table.add_column(axis.rpartition(".")[2] if width < NARROW else axis, overflow="ellipsis", no_wrap=True)
    table.add_column("strategy", overflow="ellipsis", no_wrap=True)
    columns = _numbers(lines, width)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for number, line in enumerate(lines):
        cells = [cells[number] for cells in columns.values()]
        table.add_row(*map(Text, (*map(_short, line.labels), line.strategy, *cells)))
    return table


def _short(label: str) -> str:
    """A value in a column: of a recording's path its name."""
    return Path(label).stem if label.endswith(RECORDINGS) else label


def _numbers(lines: Sequence[Line], width: int) -> dict[str, list[str]]:
    """The columns of figures by their heads."""
    costs = point_aligned([dollars(line.cost) for line in lines])
    if not lines or not lines[0].has_seeds:
        return {"calls": [f"{line.rows[0].calls:,}" for line in lines], "cost": costs}
    kept = SPREAD if width < NARROW else PERCENTILES
    spread = {f"p{at}": point_aligned([dollars(line.percentiles[at]) for line in lines]) for at in kept}
    settled = [f"± {percent(line.convergence)}" if line.convergence is not None else "–" for line in lines]
    return {"mean": costs, "settled": settled, **spread}


def _rest(axes: Sequence[str], lines: Sequence[Line], out: Path | None) -> Iterator[str]:
    good = sum(bool(line.strategy) for line in lines)
    if good > MOST_LINES:
        yield f"… {good - MOST_LINES:,} more" + (f" in {out}" if out else "; --out F.parquet keeps all")
    faults = [line for line in lines if line.fault]
    if faults:
        yield ""
        yield f"{counted(len(faults), 'fault')}; the other cells stand:"
    for line in faults:
        at = ", ".join(f"{axis}={label}" for axis, label in zip(axes, line.labels, strict=True))
        yield f"  {at or 'the scenario'}{f' {line.strategy}' if line.strategy else ''}: {line.fault}"
    if out:
        yield f"\ntable   {out}"
