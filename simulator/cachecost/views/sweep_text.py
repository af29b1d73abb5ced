"""A sweep on the terminal: who is cheapest where, then the table, then what could not be evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TextIO

from rich.table import Table
from rich.text import Text

from cachecost.numbers import counted, dollar_range, dollars, percent, point_aligned, tokens
from cachecost.sweep.rows import Row
from cachecost.views.streams import inert_console
from cachecost.views.sweep_rows import PERCENTILES, Line, points_of

MOST_LINES, MOST_FAULTS = 60, 1_000
SPREAD = (5, 50, 95)
"""The percentiles that a narrow table keeps."""
NARROW = 100
AT_BEST = " at best"
BEST_EFFORT = "Hits are best effort where a range is told: who is cheapest there is so at best."
RECORDINGS = (".jsonl", ".json")


class Summary:
    """What is kept of a sweep's lines to be printed: the first of them, the first faults, and who won how often."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.faults: list[Line] = []
        self.count = self.fault_count = 0
        self.winners: Counter[str] = Counter()
        self.least = self.most = Decimal(0)
        self.is_priced = True
        self.may_miss = False

    def add(self, point: Sequence[Line]) -> None:
        """The lines of one point of the grid."""
        for line in point:
            self._note(line)
        good = [line for line in point if line.strategy and not line.first.errors]
        if good:
            self._won(min(good, key=lambda line: line.cost))

    def _note(self, line: Line) -> None:
        if line.strategy:
            self.is_priced = self.is_priced and line.is_priced
            self.may_miss = self.may_miss or line.most is not None
            self.count += 1
            self.lines += [line] if self.count <= MOST_LINES else []
        if line.fault:
            self.fault_count += 1
            self.faults += [line] if self.fault_count <= MOST_FAULTS else []

    def _won(self, line: Line) -> None:
        cost = line.cost
        self.least, self.most = (min(self.least, cost), max(self.most, cost)) if self.winners else (cost, cost)
        self.winners[line.strategy] += 1


def print_sweep(
    name: str, axes: Sequence[str], cells: int, rows: Iterable[Row], stream: TextIO, out: Path | None
) -> bool:
    """Print the sweep to `stream`, and tell whether there were faults; colour only where the terminal wants it."""
    summary = Summary()
    for point in points_of(rows):
        summary.add(point)
    console = inert_console(stream, highlight=False, soft_wrap=True)
    grid = f"{' × '.join(axes)} · " if axes else ""
    console.print(Text(f"{name}   {grid}{counted(cells, 'cell')}"))
    for sentence in _answer(summary):
        console.print(Text(sentence))
    if summary.may_miss:
        console.print(Text(BEST_EFFORT))
    console.print()
    console.print(_table(axes, summary.lines, console.width), soft_wrap=False)
    for sentence in _rest(axes, summary, out):
        console.print(Text(sentence))
    return bool(summary.faults)


def _answer(summary: Summary) -> Iterator[str]:
    """Who is cheapest, and where."""
    ranked = summary.winners.most_common()
    points, seeds = summary.winners.total(), _of_seeds(summary.lines)
    if len(ranked) == 1:
        told = "has least to compute" if not summary.is_priced else f"is cheapest{AT_BEST * summary.may_miss}"
        if len({line.strategy for line in summary.lines}) == 1 and not summary.is_priced:
            return
        low, high = (_amount(amount, summary.is_priced) for amount in (summary.least, summary.most))
        span = low + (f" to {high}" if points > 1 else "")
        yield f"{ranked[0][0]} {told}{' everywhere' if points > 1 else ''}: {span}{seeds}."
    elif ranked:
        told = ", ".join(f"{name} at {times}" for name, times in ranked)
        what = "Who is cheapest" if summary.is_priced else "Who has least to compute"
        yield f"{what} depends on the point: {told} of {points}{seeds}."


def _of_seeds(lines: Sequence[Line]) -> str:
    return f", means of {len(lines[0].costs):,} seeds" if lines[0].has_seeds else ""


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
    costs = point_aligned([_cost(line, line.cost, line.most) for line in lines])
    shares = {} if all(line.is_priced for line in lines) else {"hit share": [percent(one.hit_share) for one in lines]}
    if not lines or not lines[0].has_seeds:
        calls = {"calls": [f"{line.first.calls:,}" for line in lines]}
        return {**calls, **shares, "prefill to do" if shares else "cost": costs}
    kept = SPREAD if width < NARROW else PERCENTILES
    spread = {
        f"p{at}": point_aligned([_cost(line, line.percentiles[at], line.most_percentiles.get(at)) for line in lines])
        for at in kept
    }
    settled = [f"± {percent(line.convergence)}" if line.convergence is not None else "–" for line in lines]
    return {**shares, "mean": costs, "settled": settled, **spread}


def _cost(line: Line, amount: Decimal, most: Decimal | None) -> str:
    return dollar_range(amount, most) if line.is_priced else tokens(int(amount))


def _amount(amount: Decimal, is_priced: bool) -> str:
    return dollars(amount) if is_priced else tokens(int(amount))


def _rest(axes: Sequence[str], summary: Summary, out: Path | None) -> Iterator[str]:
    where = f" in {out}" if out else "; --out F.parquet keeps all"
    if summary.count > MOST_LINES:
        yield f"… {summary.count - MOST_LINES:,} more{where}"
    if summary.faults:
        yield f"\n{counted(summary.fault_count, 'fault')}; the other cells stand:"
    for line in summary.faults:
        at = ", ".join(f"{axis}={label}" for axis, label in zip(axes, line.labels, strict=True))
        yield f"  {at or 'the scenario'}{f' {line.strategy}' if line.strategy else ''}: {line.fault}"
    if summary.fault_count > MOST_FAULTS:
        yield f"  … {summary.fault_count - MOST_FAULTS:,} more{where}"
    if out:
        yield f"\ntable   {out}"
