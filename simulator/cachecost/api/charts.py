"""Charts of the results that have no report, and the display of charts in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cachecost.analysis.comparison.summary import CLASS_FIELDS, CLASS_NAMES
from cachecost.ledger.rows import CallRow
from cachecost.providers.usage import INPUT_CLASSES
from cachecost.views.charts.palette import CLASS_COLOURS, INK, LINE_COLOURS, MUTED, RULE
from cachecost.views.charts.style import (
    MARGIN,
    POINTS_PER_INCH,
    SMALL_SIZE,
    WIDTH,
    annotate_beside,
    cut,
    draw_title,
    house_style,
    png,
    text_width,
    title_height,
    widest,
)

ROW, BAR = 0.36, 0.6
"""Inches of a row, and the part of it that the bar fills."""
NAME_WIDTH, GAP, PLOT = 3.6, 0.09, 2.9


class NotebookChart(Figure):
    """A figure that a notebook displays regardless of its matplotlib backend."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture at twice the size that it is shown in."""
        return png(self), {"width": round(self.get_size_inches()[0] * POINTS_PER_INCH)}


def as_chart(figure: Figure) -> NotebookChart:
    """`figure` as a chart for notebooks."""
    figure.__class__ = NotebookChart
    return cast("NotebookChart", figure)


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A bar with a bold `label` and a muted `remark` at its end; `error` is half the length of its error bar."""

    name: str
    value: Decimal
    label: str
    remark: str = ""
    strong: bool = False
    error: Decimal = Decimal(0)
    colour: str = ""

    @property
    def words(self) -> float:
        """Width of the label and the remark in inches."""
        return text_width(self.label, bold=True) + text_width(self.remark) + 3 * GAP

    @property
    def reach(self) -> float:
        """The end of the bar, with its error bar."""
        return float(max(self.value, Decimal(0)) + self.error)


def bars(title: str, entries: Sequence[ChartBar], level: tuple[str, Decimal] | None = None) -> NotebookChart:
    """A bar a entry; `level` is a line over all of them, with its name."""
    with house_style():
        head = MARGIN + title_height(title) + 0.1 + (0.2 if level else 0)
        height = head + ROW * max(len(entries), 1) + MARGIN
        figure = Figure(figsize=(WIDTH, height))
        draw_title(figure, title)
        axes = _bar_axes(figure, entries, head, height)
        for row, entry in enumerate(entries):
            axes.barh(row, float(entry.value), BAR, color=entry.colour or LINE_COLOURS[0], linewidth=0)
            if entry.error:
                axes.errorbar(float(entry.value), row, xerr=float(entry.error), color=INK, linewidth=1, capsize=3)
            low = axes.get_xlim()[0]
            name = cut(entry.name, NAME_WIDTH)
            annotate_beside(axes, name, (low, row), -GAP, ha="right", weight="bold" if entry.strong else "normal")
            annotate_beside(axes, entry.label, (entry.reach, row), GAP, weight="bold")
            annotate_beside(
                axes, entry.remark, (entry.reach, row), 2 * GAP + text_width(entry.label, bold=True), color=MUTED
            )
        if level:
            text, value = level
            axes.axvline(float(value), color=INK, linewidth=1, linestyle=(0, (4, 2)), zorder=3)
            style: dict[str, Any] = {"ha": "center", "va": "bottom", "size": SMALL_SIZE, "color": MUTED}
            axes.annotate(text, (float(value), axes.get_ylim()[1]), (0, 3), textcoords="offset points", **style)
    return as_chart(figure)


def _bar_axes(figure: Figure, entries: Sequence[ChartBar], head: float, height: float) -> Axes:
    left = MARGIN + min(widest([entry.name for entry in entries], bold=True), NAME_WIDTH) + GAP
    room = WIDTH - left - MARGIN
    axes = figure.add_axes((left / WIDTH, MARGIN / height, room / WIDTH, (height - head - MARGIN) / height))
    low = min(0.0, *(float(entry.value) for entry in entries)) if entries else 0.0
    high = max((low + (entry.reach - low) * room / max(room - entry.words, 1) for entry in entries), default=0) or 1
    axes.set_xlim(low, high)
    axes.set_ylim(max(len(entries), 1) - 0.5, -0.5)
    axes.spines[:].set_visible(False)
    axes.axvline(0, color=RULE, linewidth=1)
    axes.set_xticks([])
    axes.set_yticks([])
    return axes


def columns(title: str, rows: Sequence[CallRow]) -> NotebookChart:
    """One column per call, as high as its prompt: read, written and uncached tokens, from the bottom up."""
    classes = [name for name in INPUT_CLASSES if name != "write_1h" or any(row.usage.write_1h for row in rows)]
    with house_style():
        head = MARGIN + title_height(title) + 0.36
        height = head + PLOT + 0.5
        figure = Figure(figsize=(WIDTH, height))
        draw_title(figure, title)
        axes = figure.add_axes((0.085, 0.5 / height, 1 - 0.085 - MARGIN / WIDTH, PLOT / height))
        numbers, lower = [row.call for row in rows], [0] * len(rows)
        for name in classes:
            tokens = [int(getattr(row.usage, CLASS_FIELDS[name])) for row in rows]
            label, colour = CLASS_NAMES[name], CLASS_COLOURS[name]
            axes.bar(numbers, tokens, 1.0, bottom=lower, color=colour, linewidth=0, label=label)
            lower = [low + more for low, more in zip(lower, tokens, strict=True)]
        axes.set_xlim(0.5, max(numbers, default=1) + 0.5)
        axes.set_ylim(0, max(lower, default=1) * 1.04 or 1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1000:,.0f}k" if value else "0")
        axes.set_xlabel("calls", loc="left")
        axes.set_ylabel("input tokens of the call")
        axes.grid(axis="y", color=RULE, linewidth=0.6)
        axes.tick_params(length=0)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, frameon=False, fontsize=SMALL_SIZE)
    return as_chart(figure)
