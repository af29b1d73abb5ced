"""Cumulative dollars over calls: a line a strategy, or the classes and layers of one strategy stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cachecost.analysis.comparison.summary import CLASS_NAMES, Summary, cumulative_title
from cachecost.base.formatting import dollars
from cachecost.ledger.results import Ledger
from cachecost.ledger.rows import CallRow
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import ZERO
from cachecost.views.charts.palette import CLASS_COLOURS, LINE_COLOURS, RULE
from cachecost.views.charts.style import (
    MARGIN,
    SMALL_SIZE,
    TEXT_SIZE,
    WIDTH,
    cut,
    draw_title,
    house_style,
    title_height,
    widest,
)
from cachecost.views.run.files import group_lines
from cachecost.views.run.tables import Split, cost_by_class, cost_by_layer, running_parts, running_sums, sample_numbers

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
PALE = 0.22


@dataclass(frozen=True, slots=True)
class Curve:
    """The dollars of one strategy after each call; of several, with the least and the most of them, if they differ."""

    label: str
    values: list[float]
    low: list[float]
    high: list[float]
    colour: str
    dashed: bool
    strong: bool

    @property
    def end(self) -> float:
        return self.values[-1]


def cumulative_figure(summary: Summary, headed: bool = True) -> Figure:
    """Dollars so far after each call, of every strategy that was not wholly refused; `headed` by its title.

    At most twelve lines: strategies that are near one another are one of them, on a pale band.
    """
    title = cumulative_title(summary)
    with house_style():
        curves = _curves(summary)
        plot = max(PLOT_HEIGHT, LABEL_STEP * (len(curves) + 1))
        head = MARGIN + (title_height(title) + 0.12 if headed else 0)
        height = head + plot + AXIS_LABELS + MARGIN / 2
        figure = Figure(figsize=(WIDTH, height))
        if headed:
            draw_title(figure, title)
        axes = _axes(figure, curves, plot, height)
        _draw(axes, curves)
        top = axes.get_ylim()[1]
        places = spread([curve.end / top * plot for curve in curves], LABEL_STEP, 0.05, plot)
        for curve, place in zip(curves, places, strict=True):
            _label(axes, curve, curve.end / top, place / plot)
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


def _curves(summary: Summary) -> list[Curve]:
    """In the scenario's order; the cheapest strategy has the first colour."""
    lines = [line for line in summary.lines if line.total is not None and line.calls]
    ledgers = {ledger.strategy: ledger for ledger in summary.comparison.ledgers}
    running = {
        line.name: list(map(float, running_sums(ledgers[line.name].rows, lambda row: row.cost.total))) for line in lines
    }
    top = max((values[-1] for values in running.values()), default=0.0) or 1.0
    groups = group_lines(
        lines,
        lambda line: (line.money, *(round(value / top * LEVELS) for value in running[line.name])),
        lambda line: line.total or ZERO,
        [line for line in (summary.first, summary.best) if line is not None],
    )
    order = sorted(groups, key=lambda group: summary.best not in group.lines)
    numbers = {group.name: number for number, group in enumerate(order)}
    curves = []
    for group in groups:
        number, values = numbers[group.name], running[group.line.name]
        money = group.money(lambda line: line.total, group.line.places)
        label = f"{cut(group.name, NAME_WIDTH, SMALL_SIZE)}  {money}"
        colour, dashed = LINE_COLOURS[number % len(LINE_COLOURS)], number >= len(LINE_COLOURS)
        others = [running[line.name] for line in group.lines]  # a shorter one stays at its last value
        ends = [[one[min(at, len(one) - 1)] for one in others] for at in range(len(values))]
        low, high = list(map(min, ends)), list(map(max, ends))
        curves.append(Curve(label, values, low, high, colour, dashed, strong=summary.best in group.lines))
    return curves


def _axes(figure: Figure, curves: Sequence[Curve], plot: float, height: float) -> Axes:
    top = (max((curve.end for curve in curves), default=0) or 1) * 1.03
    left = MARGIN + widest(dollar_ticks(top)[1], SMALL_SIZE) + 0.1
    right = LEADER + widest([curve.label for curve in curves], SMALL_SIZE, bold=True) + MARGIN
    axes = figure.add_axes((left / WIDTH, AXIS_LABELS / height, (WIDTH - left - right) / WIDTH, plot / height))
    _set_scales(axes, max((len(curve.values) - 1 for curve in curves), default=0), top, 6)
    return axes


def dollar_ticks(top: float) -> tuple[list[float], list[str]]:
    """Round amounts up to `top` and how they are written: without cents if none of them has any."""
    ticks = [float(tick) for tick in MaxNLocator(5).tick_values(0, top) if 0 <= tick <= top]
    whole = all(tick == int(tick) for tick in ticks)
    return ticks, [dollars(Decimal(f"{tick:.10g}"), 0 if whole else None) for tick in ticks]


def _draw(axes: Axes, curves: Sequence[Curve]) -> None:
    for curve in curves:
        style = (0, (5, 2)) if curve.dashed else "-"
        width, order = (2.6, 3) if curve.strong else (1.5, 2)
        last = len(curve.values) - 1
        at = [*range(0, last, -(-len(curve.values) // POINTS)), last]  # the first and the last among them
        low, values, high = ([ys[number] for number in at] for ys in (curve.low, curve.values, curve.high))
        if low != high:
            axes.fill_between(at, low, high, color=curve.colour, alpha=PALE, linewidth=0, zorder=1)
        axes.plot(at, values, color=curve.colour, linewidth=width, linestyle=style, zorder=order)


def _label(axes: Axes, curve: Curve, end: float, place: float) -> None:
    """The label at height `place` beside the axes, led to from the line's end (both are shares of the height)."""
    last = (len(curve.values) - 1) / axes.get_xlim()[1]
    inch = 1 / (axes.get_position().width * WIDTH)
    path = ([last, 1 + 0.05 * inch, 1 + (LEADER - 0.1) * inch], [end, end, place])
    axes.plot(*path, transform=axes.transAxes, clip_on=False, color=curve.colour, linewidth=0.8)
    axes.text(
        1 + (LEADER - 0.04) * inch,
        place,
        curve.label,
        transform=axes.transAxes,
        size=SMALL_SIZE,
        weight="bold" if curve.strong else "normal",
        va="center_baseline",
    )


HEIGHT = 3.2
UNSEEN = 0.002
"""Part of the height below which an area is not seen."""
LAYER_COLOURS = {
    **dict(zip([layer.value for layer in Layer], (LINE_COLOURS[2], LINE_COLOURS[3], LINE_COLOURS[0]), strict=True)),
    "output": CLASS_COLOURS["output"],
}
TITLE: dict[str, Any] = {"loc": "left", "fontsize": TEXT_SIZE, "fontweight": "bold", "pad": 22, "x": 0}


def area_figure(ledger: Ledger, top: float) -> Figure:
    """Both pictures of `ledger`, on an axis up to `top` dollars."""
    with house_style():
        figure = Figure(figsize=(WIDTH, HEIGHT))
        left, right = figure.subplots(1, 2, sharey=True)
        figure.subplots_adjust(left=0.07, right=1 - MARGIN / WIDTH, top=0.83, bottom=0.145, wspace=0.08)
        left.set_title("By token class", **TITLE)
        right.set_title("By layer of the prompt", **TITLE)
        _stack(left, ledger.rows, cost_by_class, CLASS_COLOURS, CLASS_NAMES, top)
        _stack(right, ledger.rows, cost_by_layer, LAYER_COLOURS, {name: name for name in LAYER_COLOURS}, top)
        _set_scales(left, len(ledger.rows), top, 5)
        _set_scales(right, len(ledger.rows), top, 5)
    return figure


def _stack(
    axes: Axes,
    rows: Sequence[CallRow],
    split: Split,
    colours: Mapping[str, str],
    names: Mapping[str, str],
    top: float,
) -> None:
    at = sample_numbers(len(rows))
    sums = {name: running_parts(rows, split, name) for name in colours}
    drawn = [name for name in colours if float(sums[name][-1]) > top * UNSEEN]
    if drawn:
        heights = [[float(sums[name][number]) for number in at] for name in drawn]
        axes.stackplot(at, *heights, colors=[colours[name] for name in drawn], linewidth=0)
    for name in drawn:
        axes.plot([], [], color=colours[name], linewidth=6, label=names[name])
    if drawn:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(-0.02, 0.99),
            ncols=len(drawn),
            frameon=False,
            fontsize=SMALL_SIZE,
            handlelength=0.8,
            columnspacing=1.2,
            borderaxespad=0,
        )


def _set_scales(axes: Axes, calls: int, top: float, steps: int) -> None:
    """Calls from left to right in at most `steps` steps, dollars upwards."""
    ticks, labels = dollar_ticks(top)
    axes.set_xlim(0, calls or 1)
    axes.set_ylim(0, top)
    axes.xaxis.set_major_locator(MaxNLocator(steps, integer=True))
    axes.set_yticks(ticks, labels)
    axes.set_xlabel("calls", loc="left")
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)
