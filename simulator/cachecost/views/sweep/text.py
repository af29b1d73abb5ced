"""A sweep on the terminal: who is cheapest where, then the table, then what could not be evaluated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TextIO

from rich.text import Text

from cachecost.base.formatting import (
    all_of,
    count_text,
    dollar_places,
    dollar_range,
    dollars,
    percent,
    percent_column,
    point_aligned,
    tokens,
)
from cachecost.sweep.rows import SweepRow
from cachecost.views.streams import inert_console
from cachecost.views.sweep.rows import PERCENTILES, SweepLine, points_of
from cachecost.views.tables.fitting import FittedTable, fit_table, hidden_note, shorten_middle
from cachecost.views.tables.table import ANSWER, COMPARISON, COUNT, LOWER_BOUND, Column, Table
from cachecost.views.tables.text import render_table

MOST_LINES, MOST_FAULTS = 60, 1_000
SPREAD = (5, 50, 95)
"""The percentiles that a narrow table hides last."""
NARROW = 100
LEAST_STRATEGY, LONGEST_LABEL = 20, 32
AT_BEST = " at best"
BEST_EFFORT = "Where a cost is a range, hits are best effort: the cheapest strategy is the cheapest at best."
RECORDINGS = (".jsonl", ".json")


class SweepSummary:
    """What is kept of a sweep's lines to be printed: the first of them, the first faults, and who won how often."""

    def __init__(self) -> None:
        self.lines: list[SweepLine] = []
        self.faults: list[SweepLine] = []
        self.count = self.fault_count = 0
        self.winners: Counter[tuple[str, ...]] = Counter()
        self.least = self.most = Decimal(0)
        self.is_priced = True
        self.may_miss = False

    def add(self, point: Sequence[SweepLine]) -> None:
        """The lines of one point of the grid."""
        for line in point:
            self._note(line)
        good = [line for line in point if line.strategy and not line.first.errors]
        if good:
            least = min(line.cost for line in good)
            self._count_winners([line for line in good if line.cost == least])

    def _note(self, line: SweepLine) -> None:
        if line.strategy:
            self.is_priced = self.is_priced and line.is_priced
            self.may_miss = self.may_miss or line.most is not None
            self.count += 1
            self.lines += [line] if self.count <= MOST_LINES else []
        if line.fault:
            self.fault_count += 1
            self.faults += [line] if self.fault_count <= MOST_FAULTS else []

    def _count_winners(self, lines: Sequence[SweepLine]) -> None:
        """The cheapest at a point; several where they tie."""
        cost = lines[0].cost
        self.least, self.most = (min(self.least, cost), max(self.most, cost)) if self.winners else (cost, cost)
        self.winners[tuple(line.strategy for line in lines)] += 1


def print_sweep(
    name: str, axes: Sequence[str], cells: int, rows: Iterable[SweepRow], stream: TextIO, out: Path | None
) -> bool:
    """Print the sweep to `stream`, and tell whether there were faults; colour only where the terminal wants it."""
    summary = SweepSummary()
    for point in points_of(rows):
        summary.add(point)
    console = inert_console(stream, highlight=False, soft_wrap=True)
    grid = f"{' × '.join(axes)} · " if axes else ""
    console.print(Text(f"{name}   {grid}{count_text(cells, 'cell')}"))
    for sentence in _answer(summary):
        console.print(Text(sentence))
    if summary.may_miss:
        console.print(Text(BEST_EFFORT))
    fitted = _fit(axes, summary.lines, console.width)
    if summary.lines:
        console.print()
        console.print(render_table(fitted), soft_wrap=False)
    for sentence in _rest(axes, summary, out):
        console.print(Text(sentence))
    if note := hidden_note([fitted], "--out F.csv"):
        console.print(Text(note))
    return bool(summary.faults)


def _answer(summary: SweepSummary) -> Iterator[str]:
    """Who is cheapest, and where."""
    ranked = summary.winners.most_common()
    points, seeds = summary.winners.total(), _seed_words(summary.lines)
    if len(ranked) == 1:
        cheapest = _cheapest_words(ranked[0][0], summary)
        if len({line.strategy for line in summary.lines}) == 1 and not summary.is_priced:
            return
        low, high = (_amount(amount, summary.is_priced) for amount in (summary.least, summary.most))
        span = low + (f" to {high}" if points > 1 else "")
        yield f"{cheapest}{' everywhere' if points > 1 else ''}: {span}{seeds}."
    elif ranked:
        places = ", ".join(f"{_tie_words(names)} at {times}" for names, times in ranked)
        what = "Who is cheapest" if summary.is_priced else "Who has least to compute"
        yield f"{what} depends on the point: {places} of {points}{seeds}."


def _cheapest_words(names: Sequence[str], summary: SweepSummary) -> str:
    """ "a is cheapest", "a and b tie as the cheapest"."""
    if summary.is_priced:
        verb = "tie as the cheapest" if len(names) > 1 else "is cheapest"
        return f"{all_of(names)} {verb}{AT_BEST * summary.may_miss}"
    return f"{all_of(names)} {'tie with' if len(names) > 1 else 'has'} least to compute"


def _tie_words(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"a tie of {all_of(names)}"


def _seed_words(lines: Sequence[SweepLine]) -> str:
    return f", means of {len(lines[0].costs):,} seeds" if lines and lines[0].has_seeds else ""


def _fit(axes: Sequence[str], lines: Sequence[SweepLine], width: int) -> FittedTable:
    """The strategies with the point that each line is of, and its figures, in `width` cells."""
    names = Column("name", "strategy", [line.strategy for line in lines], right=False)
    points = [_axis_column(axis, [line.labels[number] for line in lines], width) for number, axis in enumerate(axes)]
    return fit_table(Table([names, *points, *_number_columns(lines)]), width, LEAST_STRATEGY)


def _axis_column(axis: str, labels: Sequence[str], width: int) -> Column:
    """An axis, by the last word of its path where the table is narrow."""
    header = axis.rpartition(".")[2] if width < NARROW else axis
    cells = [shorten_middle(_short_label(label), LONGEST_LABEL) for label in labels]
    return Column(f"axis {axis}", header, cells, right=False, leads=True)


def _short_label(label: str) -> str:
    """A value in a column: of a recording's path its name."""
    return Path(label).stem if label.endswith(RECORDINGS) else label


def _number_columns(lines: Sequence[SweepLine]) -> list[Column]:
    """The columns of figures."""
    is_priced = all(line.is_priced for line in lines)
    shares = (
        []
        if is_priced
        else [_column("cache hit rate", percent_column([one.cache_hit_rate for one in lines]), COMPARISON)]
    )
    costs = _costs(lines, [(line.cost, line.most) for line in lines])
    if not lines or not lines[0].has_seeds:
        calls = _column("calls", [f"{line.first.calls:,}" for line in lines], COUNT)
        return [calls, *shares, _column("cost" if is_priced else "prefill to do", costs)]
    settled = [f"± {percent(line.convergence)}" if line.convergence is not None else "–" for line in lines]
    spread = [_percentile(at, lines) for at in PERCENTILES]
    return [*shares, _column("mean", costs), _column("settled", settled, LOWER_BOUND), *spread]


def _percentile(at: int, lines: Sequence[SweepLine]) -> Column:
    cells = _costs(lines, [(line.percentiles[at], line.most_percentiles.get(at)) for line in lines])
    return _column(f"p{at}", cells, COMPARISON if at in SPREAD else COUNT)


def _column(head: str, cells: list[str], rank: int = ANSWER) -> Column:
    return Column(head, head, point_aligned(cells), rank=rank)


def _costs(lines: Sequence[SweepLine], amounts: Sequence[tuple[Decimal, Decimal | None]]) -> list[str]:
    """Dollars in one precision; tokens of prefill where no price is known."""
    places = dollar_places(amount for pair in amounts for amount in pair)
    return [
        dollar_range(amount, most, places) if line.is_priced else tokens(int(amount))
        for line, (amount, most) in zip(lines, amounts, strict=True)
    ]


def _amount(amount: Decimal, is_priced: bool) -> str:
    return dollars(amount) if is_priced else tokens(int(amount))


def _rest(axes: Sequence[str], summary: SweepSummary, out: Path | None) -> Iterator[str]:
    where = f" in {out}" if out else "; --out F.parquet keeps all"
    if summary.count > MOST_LINES:
        yield f"… {summary.count - MOST_LINES:,} more{where}"
    if summary.faults:
        rest = "all other cells were computed" if summary.lines else "no cell could be evaluated"
        yield f"\n{count_text(summary.fault_count, 'error')}; {rest}:"
    for line in summary.faults:
        at = ", ".join(f"{axis}={label}" for axis, label in zip(axes, line.labels, strict=True))
        yield f"  {at or 'the scenario'}{f' {line.strategy}' if line.strategy else ''}: {line.fault}"
    if summary.fault_count > MOST_FAULTS:
        yield f"  … {summary.fault_count - MOST_FAULTS:,} more{where}"
    if out:
        yield f"\ntable   {out}"
