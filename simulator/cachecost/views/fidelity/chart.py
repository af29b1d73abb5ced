"""The residuals of a validation: how far each predicted prompt length is from the billed one."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cachecost.ledger.results import Fidelity, Judgement
from cachecost.views.charts.palette import LINE_COLOURS, MUTED, RULE
from cachecost.views.charts.style import MARGIN, SMALL_SIZE, WIDTH, draw_title, house_style

HEIGHT = 4.2
LOWER_BOUND_HEADING = 0.001
"""Errors below this share are drawn at zero's line: a logarithm has no zero."""
TICKS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
KINDS = {
    "hit": (LINE_COLOURS[0], "o"),
    "cold": (LINE_COLOURS[2], "s"),
    "unknown": (LINE_COLOURS[7], "x"),
    "range": (LINE_COLOURS[4], "^"),
}


def residual_figure(fidelity: Fidelity, title: str) -> Figure:
    """A point a call: billed prompt length against the error of the predicted one; both axes grow by factors.

    Without a `title` nothing is written above it.
    """
    with house_style():
        figure = Figure(figsize=(WIDTH, HEIGHT))
        top = draw_title(figure, title) if title else 0.0
        axes = figure.add_axes((0.09, 0.13, 0.88, 1 - 0.13 - (top + MARGIN + 0.2) / HEIGHT))
        _draw(axes, fidelity)
        return figure


def _draw(axes: Axes, fidelity: Fidelity) -> None:
    for kind, (colour, marker) in KINDS.items():
        points = [one for one in fidelity.judgements if one.kind == kind and one.billed.total_input]
        if points:
            axes.scatter(
                [one.billed.total_input for one in points],
                [signed_error(one) for one in points],
                c=colour,
                marker=marker,
                s=16,
                linewidths=1.0,
                alpha=0.75,
                label=f"{kind}, {len(points):,}",
            )
    axes.axhline(0, color=RULE, linewidth=1, zorder=0)
    axes.set_xscale("log")
    axes.set_xticks(TICKS, [f"{tick:,}" for tick in TICKS])
    axes.set_xlim(*_reach(fidelity))
    axes.minorticks_off()
    axes.set_yscale("symlog", linthresh=LOWER_BOUND_HEADING)
    axes.set_ylim(-1.2, 1.2)
    axes.set_yticks([-1, -0.1, -0.01, 0, 0.01, 0.1, 1], ["−100%", "−10%", "−1%", "0", "+1%", "+10%", "+100%"])
    axes.set_xlabel("billed input tokens of the call", color=MUTED)
    axes.legend(loc="upper left", bbox_to_anchor=(0, 1.13), ncols=len(KINDS), frameon=False, fontsize=SMALL_SIZE)


def _reach(fidelity: Fidelity) -> tuple[float, float]:
    lengths = [one.billed.total_input for one in fidelity.judgements if one.billed.total_input] or [1]
    return min(lengths) / 1.5, max(lengths) * 1.5


def signed_error(one: Judgement) -> float:
    """Predicted minus billed prompt length, as a share of the billed one."""
    billed = one.billed.total_input
    return (one.predicted.total_input - billed) / billed if billed else 0.0
