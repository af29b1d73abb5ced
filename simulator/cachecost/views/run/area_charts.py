"""Dollars so far, stacked by token class and by layer of the prompt: two pictures side by side for one strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cachecost.analysis.comparison.summary import CLASS_NAMES
from cachecost.ledger.results import CallRow, Ledger
from cachecost.prompts.blocks import Layer
from cachecost.views.charts.palette import CLASS_COLOURS, LINE_COLOURS, RULE
from cachecost.views.charts.style import MARGIN, SMALL_SIZE, TEXT_SIZE, WIDTH, house_style
from cachecost.views.run.line_charts import dollar_ticks
from cachecost.views.run.tables import Split, cost_by_class, cost_by_layer, running_parts, sample_numbers

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
        _axis(left, len(ledger.rows), top)
        _axis(right, len(ledger.rows), top)
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


def _axis(axes: Axes, calls: int, top: float) -> None:
    ticks, labels = dollar_ticks(top)
    axes.set_xlim(0, calls or 1)
    axes.set_ylim(0, top)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_yticks(ticks, labels)
    axes.set_xlabel("calls", loc="left")
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.spines["left"].set_visible(False)
    axes.tick_params(length=0)
