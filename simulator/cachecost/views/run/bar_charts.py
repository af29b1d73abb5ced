"""Dollars stacked by token class, one bar a strategy; and the pictures of a report as SVG and PNG."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cachecost.analysis.comparison.summary import (
    CLASS_FIELDS,
    StrategyLine,
    Summary,
    dollars_title,
    question_title,
    ranked,
)
from cachecost.base.formatting import percent
from cachecost.ledger.rows import Cost
from cachecost.providers.usage import ZERO
from cachecost.views.charts.palette import CLASS_COLOURS, INK, MUTED, RULE
from cachecost.views.charts.style import (
    MARGIN,
    SMALL_SIZE,
    TEXT_SIZE,
    WIDTH,
    annotate_beside,
    draw_title,
    house_style,
    png,
    svg,
    text_width,
    title_height,
    widest,
    wrap_text,
)
from cachecost.views.run.files import (
    CUMULATIVE,
    DOLLARS,
    MOST_NAMED,
    PROVIDERS,
    QUESTION,
    README_PICTURE,
    LineGroup,
    group_lines,
)
from cachecost.views.run.line_charts import cumulative_figure
from cachecost.views.run.provider_chart import compares_providers, providers_figure

ROW = 0.40
BAR = 0.62
"""Inches of a row, and the part of it that the bar fills."""
LEGEND = 0.42
NAME_WIDTH = 4.2
GAP = 0.09
PALE = 0.45
WHISKER = 0.005
"""Part of the width of the axes from which on it is shown that bars of a group end further out."""
HAIRLINE = 0.001
"""Part of the width of the axes below which nothing is drawn: half a point."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: `parts` are dollars, or tokens, by token class; `label` is bold at its end, `remark` muted after it.

    A `strong` bar is the cheapest; a `pale` one leaves out calls that were refused, or is compared apart.
    """

    name: str
    parts: dict[str, float]
    label: str
    remark: str
    strong: bool
    pale: bool
    reach: float = 0.0
    """Of several strategies, where the longest of their bars would end."""

    @property
    def total(self) -> float:
        return max(sum(self.parts.values()), self.reach)

    def shows(self, name: str, bars: Sequence[Bar]) -> bool:
        """Whether a part of it can be seen among `bars`."""
        return self.parts.get(name, 0) > max(bar.total for bar in bars) * HAIRLINE

    @property
    def words(self) -> float:
        """Inches of what stands at its end."""
        return text_width(self.label, bold=True) + text_width(self.remark) + 3 * GAP


def dollars_figure(summary: Summary) -> Figure:
    """What the session costs under each strategy, by token class; in tokens where no price is known."""
    groups = _groups(summary, summary.lines, lambda line: (line.money, line.total, line.usage), _session_end)
    bars = []
    for group in groups:
        line = group.line
        tokens = {name: float(getattr(line.usage, CLASS_FIELDS[name])) for name in summary.classes}
        parts = _parts(line.cost, 1) if summary.is_priced else tokens
        label = line.money if summary.is_priced else percent(line.cache_hit_rate)
        remark = _remark(line) or (percent(line.vs_first, signed=True) if line.vs_first is not None else "")
        is_pale = bool(line.refused) or line.is_apart
        bar = Bar(line.name, parts, label, remark, line in summary.best_lines, is_pale)
        bars.append(_group_bar(group, bar, _session_end))
    return _figure(dollars_title(summary), bars, summary.shown_classes)


def question_figure(summary: Summary) -> Figure:
    """What one question costs in each arm, by token class: all its calls together, over the number of questions."""
    asking = [line for line in summary.lines if line.questions]
    known = [line.question for line in ranked(asking) if line.question is not None]
    cheapest = min(known, default=None)
    groups = _groups(summary, asking, lambda line: (line.question_money, line.question_cost), _question_end)
    bars = []
    for group in groups:
        line = group.line
        # without a length where a refused call leaves the cost of a question unknown
        parts = _parts(line.question_cost, line.questions) if line.question is not None else {}
        strong = not line.is_apart and line.question == cheapest
        bar = Bar(line.name, parts, line.question_money, _remark(line), strong, pale=line.is_apart)
        bars.append(_group_bar(group, bar, _question_end))
    return _figure(question_title(summary), bars, summary.shown_classes)


def _groups(
    summary: Summary,
    lines: Sequence[StrategyLine],
    look: Callable[[StrategyLine], Hashable],
    end: Callable[[StrategyLine], Decimal],
) -> list[LineGroup]:
    """A bar a strategy; where they are many, one for all that are alike, and for those that are near."""
    kept = [line for line in (summary.first, summary.best) if line is not None]
    own = (lambda line: line.name) if len(lines) <= MOST_NAMED else look
    return group_lines(lines, own, end, kept)


def _group_bar(group: LineGroup, bar: Bar, end: Callable[[StrategyLine], Decimal]) -> Bar:
    """The bar of the first, up to the longest of the others. It has a remark only where it stands for all of them."""
    ends = [end(line) for line in group.lines]
    if min(ends) == max(ends):
        return replace(bar, name=group.name)
    label = group.money(end, group.line.places) if group.line.is_priced else ""
    return replace(bar, name=group.name, label=label, remark="" if "–" in label else bar.remark, reach=float(max(ends)))


def _session_end(line: StrategyLine) -> Decimal:
    return line.cost.total if line.is_priced else Decimal(line.usage.total_input + line.usage.output_tokens)


def _question_end(line: StrategyLine) -> Decimal:
    return line.question or ZERO


def _remark(line: StrategyLine) -> str:
    """Why a bar is not compared with the others; "" where it is."""
    if line.refused:
        return f"{line.refused:,} of {line.calls:,} calls refused"
    return f"{'own assumption' if line.assumes else 'sees less'}: compared apart" if line.is_apart else ""


def _parts(cost: Cost, among: int) -> dict[str, float]:
    return {name: float(amount / among) for name, amount in cost.by_class().items()}


def _figure(title: str, bars: Sequence[Bar], classes: Mapping[str, str]) -> Figure:
    with house_style():
        classes = {name: words for name, words in classes.items() if any(bar.shows(name, bars) for bar in bars)}
        head = MARGIN + title_height(title) + LEGEND
        height = head + ROW * max(len(bars), 1) + MARGIN
        figure = Figure(figsize=(WIDTH, height))
        draw_title(figure, title)
        y, x = (height - MARGIN - title_height(title) - LEGEND / 2) / height, MARGIN
        for name, words in classes.items():  # squares with their names, in one line under the title
            figure.text(x / WIDTH, y, "■", color=CLASS_COLOURS[name], va="center_baseline", size=TEXT_SIZE + 2)
            x += 0.2
            figure.text(x / WIDTH, y, words, color=INK, va="center_baseline", size=SMALL_SIZE)
            x += text_width(words, SMALL_SIZE) + 0.22
        _draw(_axes(figure, bars, head, height), bars)
    return figure


def _axes(figure: Figure, bars: Sequence[Bar], head: float, height: float) -> Axes:
    """Axes with the names to the left; so scaled that what stands at the end of each bar fits as well."""
    left = MARGIN + min(widest([bar.name for bar in bars], bold=True), NAME_WIDTH) + GAP
    room = WIDTH - left - MARGIN
    axes = figure.add_axes((left / WIDTH, MARGIN / height, room / WIDTH, (height - head - MARGIN) / height))
    axes.set_xlim(0, max((bar.total * room / (room - bar.words) for bar in bars), default=0) or 1)
    axes.set_ylim(max(len(bars), 1) - 0.5, -0.5)
    axes.spines[:].set_visible(False)
    axes.spines["left"].set(visible=True, color=RULE)
    axes.set_xticks([])
    axes.set_yticks([])
    return axes


def _draw(axes: Axes, bars: Sequence[Bar]) -> None:
    end = axes.get_xlim()[1]
    for row, bar in enumerate(bars):
        start, alpha = 0.0, PALE if bar.pale else 1
        for name, width in bar.parts.items():
            if width > end * HAIRLINE:  # less would come and go with the rounding of pixels
                axes.barh(row, width, BAR, left=start, color=CLASS_COLOURS[name], linewidth=0, alpha=alpha)
                start += width
        if bar.reach > start + end * WHISKER:
            axes.plot([start, bar.reach], [row, row], color=MUTED, linewidth=1.2, solid_capstyle="butt")
            axes.plot([bar.reach, bar.reach], [row - BAR / 4, row + BAR / 4], color=MUTED, linewidth=1.2)
        weight = "bold" if bar.strong else "normal"
        shown = "\n".join(wrap_text(bar.name, NAME_WIDTH, bold=bar.strong))
        annotate_beside(axes, shown, (0, row), -GAP, ha="right", weight=weight, linespacing=1.1)
        annotate_beside(axes, bar.label, (bar.total, row), GAP, weight="bold")
        annotate_beside(axes, bar.remark, (bar.total, row), 2 * GAP + text_width(bar.label, bold=True), color=MUTED)


def figures(summary: Summary, variants: Sequence[Summary] = ()) -> dict[str, Figure]:
    """Every picture that this comparison has, by its file name: where no price is known, that of its tokens alone.

    `variants` are all of the run, this one first; where they are several hosts, one picture has them all.
    """
    if not summary.lines:
        return {}
    drawn = {DOLLARS: dollars_figure(summary)}
    if summary.is_priced and any(line.cost.total for line in summary.lines):
        drawn[CUMULATIVE] = cumulative_figure(summary)
    if any(line.question is not None for line in summary.lines):
        drawn[QUESTION] = question_figure(summary)
    if compares_providers(variants):
        drawn[PROVIDERS] = providers_figure(variants)
    return drawn


def chart_files(summary: Summary, variants: Sequence[Summary] = ()) -> dict[str, bytes]:
    """File name to content: all pictures as SVG, the one that answers the question as PNG too."""
    drawn = figures(summary, variants)
    files = {name: svg(figure) for name, figure in drawn.items()}
    answer = PROVIDERS if PROVIDERS in drawn else DOLLARS
    if answer in drawn:
        files[README_PICTURE] = png(drawn[answer])
    return files
