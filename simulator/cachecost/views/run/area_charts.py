"""Dollars so far, stacked by token class and by layer of the prompt: two pictures side by side for one strategy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cachecost.analysis.comparison.summary import CLASS_NAMES
from cachecost.ledger.results import ZERO, CallRow, Ledger
from cachecost.prompts.blocks import Layer
from cachecost.views.charts.palette import CLASS_COLOURS, LINE_COLOURS, RULE
from cachecost.views.charts.style import MARGIN, SMALL_SIZE, WIDTH, house_style
from cachecost.views.run.line_charts import dollar_ticks

HEIGHT = 2.9
POINTS = 120
"""Points of a curve at most: more cannot be seen."""
LAYER_COLOURS = {
    **dict(zip([layer.value for layer in Layer], (LINE_COLOURS[2], LINE_COLOURS[3], LINE_COLOURS[0]), strict=True)),
    "output": CLASS_COLOURS["output"],
}


def area_figure(ledger: Ledger, top: float) -> Figure:
    """Both pictures of `ledger`, on an axis up to `top` dollars."""
    with house_style():
        figure = Figure(figsize=(WIDTH, HEIGHT))
        left, right = figure.subplots(1, 2, sharey=True)
        figure.subplots_adjust(left=0.07, right=1 - MARGIN / WIDTH, top=0.9, bottom=0.16, wspace=0.08)
        _stack(left, ledger.rows, by_class, CLASS_COLOURS, CLASS_NAMES)
        _stack(right, ledger.rows, by_layer, LAYER_COLOURS, {name: name for name in LAYER_COLOURS})
        _axis(left, len(ledger.rows), top)
        _axis(right, len(ledger.rows), top)
    return figure


def by_class(row: CallRow) -> Mapping[str, Decimal]:
    """Dollars of a call by token class."""
    return row.cost.by_class()


def by_layer(row: CallRow) -> Mapping[str, Decimal]:
    """Dollars of a call by layer, output beside them."""
    return {**{layer.value: amount for layer, amount in row.cost_by_layer.items()}, "output": row.cost.output}


def running(rows: Sequence[CallRow], split: Callable[[CallRow], Mapping[str, Decimal]], name: str) -> list[Decimal]:
    """Dollars of one part after each call, nothing before the first."""
    total, sums = ZERO, [ZERO]
    for row in rows:
        total += split(row).get(name, ZERO)
        sums.append(total)
    return sums


def thinned(count: int, most: int = POINTS) -> list[int]:
    """Numbers from 0 to `count`, both with them, evenly apart and no more than `most` and one."""
    if count <= most:
        return list(range(count + 1))
    return [round(number * count / most) for number in range(most + 1)]


def _stack(
    axes: Axes,
    rows: Sequence[CallRow],
    split: Callable[[CallRow], Mapping[str, Decimal]],
    colours: Mapping[str, str],
    names: Mapping[str, str],
) -> None:
    at = thinned(len(rows))
    sums = {name: running(rows, split, name) for name in colours}
    drawn = [name for name in colours if sums[name][-1]]
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
