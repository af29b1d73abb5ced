"""Cumulative dollars over calls: one line a strategy, its name at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cachecost.analysis.comparison.sentences import cumulative_title
from cachecost.analysis.comparison.summary import Line, Summary
from cachecost.base.formatting import dollars
from cachecost.ledger.results import ZERO, Ledger
from cachecost.views.charts.palette import LINE_COLOURS, MUTED, RULE
from cachecost.views.charts.style import (
    MARGIN,
    SMALL_SIZE,
    WIDTH,
    cut,
    draw_title,
    house_style,
    title_height,
    widest,
)
from cachecost.views.run.line_groups import ChartGroups, LineGroup, group_lines, money_range

PLOT_HEIGHT = 3.4
AXIS_LABELS = 0.5
LABEL_STEP = 0.19
"""Inches between two labels, at least."""
LEADER = 0.35
POINTS = 240
"""Points that a line is drawn through at most: more cannot be seen, and a picture grows heavy."""
LEVELS = 400
"""Heights that can be told apart: lines that are everywhere on the same one look the same."""
NAME_WIDTH = 3.6


@dataclass(frozen=True, slots=True)
class Curve:
    """The dollars of one strategy after each call."""

    label: str
    values: list[float]
    colour: str
    dashed: bool
    strong: bool

    @property
    def end(self) -> float:
        return self.values[-1]


@dataclass(frozen=True, slots=True)
class Band:
    """The strategies without a line of their own: between which dollars they are after each call."""

    label: str
    low: list[float]
    high: list[float]

    @property
    def end(self) -> float:
        return (self.low[-1] + self.high[-1]) / 2


def cumulative_figure(summary: Summary, headed: bool = True) -> Figure:
    """Dollars so far after each call, of every strategy that was not wholly refused; `headed` by its title.

    At most twelve lines have a name; what is left is a pale band.
    """
    title = cumulative_title(summary)
    with house_style():
        curves, band = _curves(summary)
        labels = [curve.label for curve in curves] + ([band.label] if band else [])
        plot = max(PLOT_HEIGHT, LABEL_STEP * (len(labels) + 1))
        head = MARGIN + (title_height(title) + 0.12 if headed else 0)
        height = head + plot + AXIS_LABELS + MARGIN / 2
        figure = Figure(figsize=(WIDTH, height))
        if headed:
            draw_title(figure, title)
        axes = _axes(figure, curves, labels, plot, height)
        _draw(axes, curves, band)
        _label_ends(axes, curves, band, plot)
    return figure


def spread(wanted: Sequence[float], step: float, low: float, high: float) -> list[float]:
    """Places `step` apart or more, in the same order, as near to `wanted` as that allows (least squares).

    Of equals the first stands highest. They stand between `low` and `high`; too many to stand there go on above.
    """
    order = sorted(range(len(wanted)), key=lambda number: (wanted[number], -number))
    groups: list[list[float]] = []
    for rank, number in enumerate(order):
        groups.append([wanted[number] - rank * step])
        while len(groups) > 1 and _mean(groups[-2]) >= _mean(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    flat = [_mean(group) for group in groups for _ in group]
    highest = max(low, high - step * (len(wanted) - 1))
    places = dict(zip(order, (min(max(at, low), highest) for at in flat), strict=True))
    return [places[number] + step * order.index(number) for number in range(len(wanted))]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _curves(summary: Summary) -> tuple[list[Curve], Band | None]:
    """In the scenario's order; the cheapest strategy has the first colour."""
    lines = [line for line in summary.lines if line.total is not None and line.calls]
    ledgers = {ledger.strategy: ledger for ledger in summary.comparison.ledgers}
    running = {line.name: _running(ledgers[line.name]) for line in lines}
    top = max((values[-1] for values in running.values()), default=0.0) or 1.0
    groups = group_lines(
        lines,
        lambda line: (line.money, *(round(value / top * LEVELS) for value in running[line.name])),
        lambda line: line.total or ZERO,
        [line for line in (summary.first, summary.best) if line is not None],
    )
    order = sorted(groups.named, key=lambda group: summary.best not in group.lines)
    numbers = {group.name: number for number, group in enumerate(order)}
    curves = [_curve(group, running, numbers[group.name], summary.best) for group in groups.named]
    return curves, _band(groups, running)


def _curve(group: LineGroup, running: dict[str, list[float]], number: int, best: Line | None) -> Curve:
    label = f"{cut(group.name, NAME_WIDTH, SMALL_SIZE)}  {dollars(group.line.total, group.line.places)}"
    colour, dashed = LINE_COLOURS[number % len(LINE_COLOURS)], number >= len(LINE_COLOURS)
    return Curve(label, running[group.line.name], colour, dashed, strong=best in group.lines)


def _band(groups: ChartGroups, running: dict[str, list[float]]) -> Band | None:
    if not groups.others:
        return None
    all_values = [running[line.name] for line in groups.others]
    longest = max(map(len, all_values))
    padded = [values + [values[-1]] * (longest - len(values)) for values in all_values]
    label = f"{groups.others_name}  {money_range(groups.others, lambda line: line.total, groups.others[0].places)}"
    return Band(label, list(map(min, zip(*padded, strict=True))), list(map(max, zip(*padded, strict=True))))


def _running(ledger: Ledger) -> list[float]:
    total, values = ZERO, [0.0]
    for row in ledger.rows:
        total += row.cost.total
        values.append(float(total))
    return values


def _axes(figure: Figure, curves: Sequence[Curve], names: Sequence[str], plot: float, height: float) -> Axes:
    top = (max((curve.end for curve in curves), default=0) or 1) * 1.03
    ticks, labels = dollar_ticks(top)
    left = MARGIN + widest(labels, SMALL_SIZE) + 0.1
    right = LEADER + widest(names, SMALL_SIZE, bold=True) + MARGIN
    axes = figure.add_axes((left / WIDTH, AXIS_LABELS / height, (WIDTH - left - right) / WIDTH, plot / height))
    axes.set_xlim(0, max((len(curve.values) - 1 for curve in curves), default=0) or 1)
    axes.set_ylim(0, top)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_yticks(ticks, labels)
    axes.set_xlabel("calls", loc="left")
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)
    return axes


def dollar_ticks(top: float) -> tuple[list[float], list[str]]:
    """Round amounts up to `top` and how they are written: without cents if none of them has any."""
    ticks = [float(tick) for tick in MaxNLocator(5).tick_values(0, top) if 0 <= tick <= top]
    whole = all(tick == int(tick) for tick in ticks)
    return ticks, [f"${tick:,.0f}" if whole else dollars(Decimal(f"{tick:.10g}")) for tick in ticks]


def _draw(axes: Axes, curves: Sequence[Curve], band: Band | None) -> None:
    if band:
        at = _points(len(band.low))
        low, high = [band.low[number] for number in at], [band.high[number] for number in at]
        axes.fill_between(at, low, high, color=RULE, linewidth=0, zorder=1)
    for curve in curves:
        style = (0, (5, 2)) if curve.dashed else "-"
        width, order = (2.6, 3) if curve.strong else (1.5, 2)
        at = _points(len(curve.values))
        axes.plot(
            at,
            [curve.values[number] for number in at],
            color=curve.colour,
            linewidth=width,
            linestyle=style,
            zorder=order,
        )


def _points(count: int) -> list[int]:
    """At most so many as are drawn, the first and the last among them."""
    return [*range(0, count - 1, -(-count // POINTS)), count - 1]


def _label_ends(axes: Axes, curves: Sequence[Curve], band: Band | None, plot: float) -> None:
    """Each line's name at its end, with a thin leader where labels had to be moved apart."""
    top = axes.get_ylim()[1]
    ended: list[Curve | Band] = [*curves, *([band] if band else [])]
    places = spread([one.end / top * plot for one in ended], LABEL_STEP, 0.05, plot)
    for one, place in zip(ended, places, strict=True):
        _label(axes, one, one.end / top, place / plot)


def _label(axes: Axes, one: Curve | Band, end: float, place: float) -> None:
    """The label at height `place` beside the axes, led to from the line's end (both are shares of the height)."""
    count = len(one.values if isinstance(one, Curve) else one.low)
    last = (count - 1) / axes.get_xlim()[1]
    colour, strong = (one.colour, one.strong) if isinstance(one, Curve) else (MUTED, False)
    inch = 1 / (axes.get_position().width * WIDTH)
    path = ([last, 1 + 0.05 * inch, 1 + (LEADER - 0.1) * inch], [end, end, place])
    axes.plot(*path, transform=axes.transAxes, clip_on=False, color=colour, linewidth=0.8)
    axes.text(
        1 + (LEADER - 0.04) * inch,
        place,
        one.label,
        transform=axes.transAxes,
        size=SMALL_SIZE,
        weight="bold" if strong else "normal",
        va="center_baseline",
    )
