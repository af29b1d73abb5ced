"""What a question, or the session, costs on each provider: a row a variant, a dot a strategy, an axis of factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cachecost.analysis.comparison.summary import StrategyLine, Summary
from cachecost.base.formatting import dollars, times
from cachecost.views.charts.palette import LINE_COLOURS, MUTED, PAPER, RULE
from cachecost.views.charts.style import (
    MARGIN,
    POINTS_PER_INCH,
    SMALL_SIZE,
    WIDTH,
    cut,
    draw_title,
    house_style,
    text_width,
    title_height,
    widest,
)
from cachecost.views.run.files import group_lines, provider_name, providers_title

ROW, LEGEND_LINE, AXIS_LABELS = 0.3, 0.24, 0.5
NAME_WIDTH = 4.0
STRATEGY_WIDTH = 4.3
GAP = 0.12
MARKERS = "osD^vPX*<>ph"
SPREAD = 0.09
"""Rows that the dots of two strategies are apart, so that equals are seen."""


@dataclass(frozen=True, slots=True)
class Dot:
    """What a strategy costs in a variant: USD, and up to how many if no best-effort hit comes about."""

    strategy: int
    least: float
    most: float


def compares_providers(summaries: Sequence[Summary]) -> bool:
    """Whether the variants are on several hosts, and there are prices to compare."""
    hosts = {summary.comparison.host for summary in summaries}
    return len(hosts) > 2 and all(summary.is_priced and summary.lines for summary in summaries)


def providers_figure(summaries: Sequence[Summary], headed: bool = True) -> Figure:
    """A row a variant, in the scenario's order; strategies that cost the same everywhere are one dot."""
    names = _strategies(summaries)
    rows = []
    for summary in summaries:
        found = [_usd(summary.line(name), has_questions=summary.has_questions) for name, _ in names]
        rows.append([Dot(number, float(usd[0]), float(usd[1])) for number, usd in enumerate(found) if usd])
    title = providers_title(summaries)
    with house_style():
        head = MARGIN + (title_height(title) if headed else 0)
        legend = [cut(shown, STRATEGY_WIDTH, SMALL_SIZE) for _, shown in names]
        places = _legend_places(legend)
        top = head + LEGEND_LINE * (1 + places[-1][1]) + 0.12
        height = top + ROW * len(rows) + AXIS_LABELS
        figure = Figure(figsize=(WIDTH, height))
        if headed:
            draw_title(figure, title)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, WIDTH)
        axes.set_ylim(0, height)
        for number, (name, (x, line)) in enumerate(zip(legend, places, strict=True)):
            y = height - head - LEGEND_LINE * (line + 0.5)
            _dot(axes, x + 0.07, y, number)
            axes.text(x + 0.2, y, name, size=SMALL_SIZE, va="center_baseline")
        _draw(_axes(figure, summaries, rows, top, height), rows)
    return figure


def _usd(line: StrategyLine | None, *, has_questions: bool) -> tuple[Decimal, Decimal] | None:
    """What is compared, and its upper end."""
    if line is None or line.refused:
        return None
    least, most = (line.question, line.question_most) if has_questions else (line.total, line.most)
    return None if least is None or least <= 0 else (least, least if most is None else most)


def _strategies(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    """Strategies with what they are called in the legend; those that cost the same everywhere are one."""
    main = summaries[0]

    def look(line: StrategyLine) -> tuple[object, ...]:
        return tuple(_usd(summary.line(line.name), has_questions=main.has_questions) for summary in summaries)

    kept = [line for line in (main.first, main.best) if line is not None]
    groups = group_lines(main.lines, look, lambda line: line.total or Decimal(0), kept)
    return [(group.line.name, group.name) for group in groups]


def _legend_places(names: Sequence[str]) -> list[tuple[float, int]]:
    """Inches from the left, and the line, of each entry of the legend."""
    places, x, line = [], MARGIN, 0
    for name in names:
        width = 0.2 + text_width(name, SMALL_SIZE) + 0.25
        if x + width > WIDTH and x > MARGIN:
            x, line = MARGIN, line + 1
        places.append((x, line))
        x += width
    return places


def _axes(
    figure: Figure, summaries: Sequence[Summary], rows: Sequence[Sequence[Dot]], top: float, height: float
) -> Axes:
    names = [cut(provider_name(summary, summaries[0]), NAME_WIDTH) for summary in summaries]
    left = MARGIN + widest(names) + GAP
    right = MARGIN + widest([_range_words(dots) for dots in rows], SMALL_SIZE) + GAP
    axes_width = WIDTH - left - right
    axes = figure.add_axes(
        (left / WIDTH, AXIS_LABELS / height, axes_width / WIDTH, (height - top - AXIS_LABELS) / height)
    )
    ends = [end for dots in rows for dot in dots for end in (dot.least, dot.most)] or [1.0]
    axes.set_xscale("log")
    axes.set_xlim(min(ends) / 1.25, max(ends) * 1.25)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    powers = [10.0**power for power in range(-6, 6)]
    ticks = [tick for tick in powers if min(ends) / 1.25 <= tick <= max(ends) * 1.25]
    if len(ticks) < 3:  # halves between powers of ten
        halves = sorted(tick for power in powers for tick in (power, 2 * power, 5 * power))
        ticks = [tick for tick in halves if min(ends) / 1.25 <= tick <= max(ends) * 1.25]
    axes.set_xticks(ticks, [dollars(Decimal(f"{tick:.6g}")) for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks([])
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    what = "dollars of one question" if summaries[0].has_questions else "dollars of the session"
    ranges = any(dot.most > dot.least for dots in rows for dot in dots)
    lines = "; a line to the right of a dot: up to the cost without any best-effort hit" if ranges else ""
    axes.set_xlabel(f"{what}; the same distance is the same factor{lines}", x=(MARGIN - left) / axes_width, ha="left")
    for row, (name, dots) in enumerate(zip(names, rows, strict=True)):
        _beside(axes, name, (0, row), -GAP, ha="right")
        _beside(axes, _range_words(dots), (1, row), GAP, size=SMALL_SIZE, color=MUTED)
    return axes


def _range_words(dots: Sequence[Dot]) -> str:
    """How far apart the strategies of a row are: "10 ×"."""
    least = [dot.least for dot in dots]
    return times(Decimal(f"{max(least) / min(least):.4g}")) if least else ""


def _draw(axes: Axes, rows: Sequence[Sequence[Dot]]) -> None:
    for row, dots in enumerate(rows):
        axes.axhline(row, color=RULE, linewidth=0.6, zorder=0)
        least = [dot.least for dot in dots]
        axes.plot([min(least, default=1), max(least, default=1)], [row, row], color=RULE, linewidth=4, zorder=1)
        for place, dot in enumerate(dots):
            y = row + SPREAD * (place - (len(dots) - 1) / 2)
            if dot.most > dot.least:
                axes.plot([dot.least, dot.most], [y, y], color=_colour(dot.strategy), linewidth=1.1, zorder=2)
            _dot(axes, dot.least, y, dot.strategy)


def _dot(axes: Axes, x: float, y: float, number: int) -> None:
    axes.plot(
        [x],
        [y],
        marker=MARKERS[number % len(MARKERS)],
        color=_colour(number),
        markersize=6,
        markeredgecolor=PAPER,
        markeredgewidth=0.5,
        linestyle="none",
        zorder=3,
        clip_on=False,
    )


def _colour(number: int) -> str:
    return LINE_COLOURS[number % len(LINE_COLOURS)]


def _beside(axes: Axes, text: str, at: tuple[float, float], inches: float, **style: Any) -> None:
    """A text beside the axes, at a share of their width and a row."""
    axes.annotate(
        text,
        at,
        (inches * POINTS_PER_INCH, 0),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        va="center_baseline",
        annotation_clip=False,
        **style,
    )
