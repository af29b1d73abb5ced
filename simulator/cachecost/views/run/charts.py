"""The charts of a comparison: bars by token class, dollars call after call, providers; and their files."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cachecost.analysis.comparison.summary import (
    CLASS_FIELDS,
    CLASS_NAMES,
    StrategyLine,
    Summary,
    cumulative_title,
    dollars_title,
    question_title,
    ranked,
)
from cachecost.base.formatting import dollar_range, dollars, percent, times
from cachecost.base.structs import replace
from cachecost.ledger.results import Ledger
from cachecost.ledger.rows import Cost
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import ZERO
from cachecost.views.charts.palette import CLASS_COLOURS, INK, LINE_COLOURS, MUTED, PAPER, RULE
from cachecost.views.charts.style import (
    MARGIN,
    SMALL_SIZE,
    TEXT_SIZE,
    WIDTH,
    annotate_beside,
    cut,
    draw_title,
    house_style,
    png,
    svg,
    text_width,
    title_height,
    widest,
    wrap_text,
)
from cachecost.views.run.files import CUMULATIVE, DOLLARS, PROVIDERS, QUESTION, README_PICTURE
from cachecost.views.run.tables import (
    Split,
    cost_by_class,
    cost_by_layer,
    provider_name,
    providers_title,
    running_parts,
    running_sums,
    sample_numbers,
)

MOST_NAMED = 12
"""Lines or bars of one chart."""
ROW = 0.40
BAR = 0.62
"""Inches of a row, and the part of it that the bar fills."""
LEGEND = 0.42
NAME_WIDTH = 4.2
GAP = 0.09
HAIRLINE = 0.001
"""Part of the width of the axes below which nothing is drawn: half a point."""
AXIS_LABELS = 0.5
LABEL_STEP = 0.19
"""Inches between two labels, at least."""
LEADER = 0.35
POINTS = 240
"""Points that a line is drawn through at most: more cannot be seen, and a picture grows heavy."""
LEVELS = 400
"""Heights that can be told apart: lines that are everywhere on the same one look the same."""
LAYER_COLOURS = {
    **dict(zip([layer.value for layer in Layer], (LINE_COLOURS[2], LINE_COLOURS[3], LINE_COLOURS[0]), strict=True)),
    "output": CLASS_COLOURS["output"],
}
DOT_ROW, LEGEND_LINE = 0.3, 0.24
DOT_GAP = 0.12
MARKERS = "osD^vPX*<>ph"
SPREAD = 0.09
"""Rows that the dots of two strategies are apart, so that equals are seen."""


@dataclass(frozen=True, slots=True)
class LineGroup:
    """Strategies that are one line or bar of a chart; the first lends it its figures."""

    lines: Sequence[StrategyLine]

    @property
    def line(self) -> StrategyLine:
        return self.lines[0]

    @property
    def name(self) -> str:
        """ "claude-code and 27 others"."""
        return group_name([line.name for line in self.lines])

    def money(self, amount: Callable[[StrategyLine], Decimal | None], places: int | None) -> str:
        """ "$2.07"; "$2.03–2.08" where they differ."""
        known = [usd for line in self.lines if (usd := amount(line)) is not None]
        return dollar_range(min(known, default=None), max(known, default=None), places)


def group_name(names: Sequence[str]) -> str:
    """ "claude-code", "claude-code and zed", "claude-code and 27 others"."""
    first, *others = names
    if not others:
        return first
    return f"{first} and {others[0] if len(others) == 1 else f'{len(others)} others'}"


def group_lines(
    lines: Sequence[StrategyLine],
    look: Callable[[StrategyLine], Hashable],
    end: Callable[[StrategyLine], Decimal],
    kept: Sequence[StrategyLine] = (),
) -> list[LineGroup]:
    """At most twelve groups in the order of their first lines: lines of the same `look`, then those whose `end`s are
    nearest. Lines of `kept` stay apart from one another and lend their group its name."""
    found: dict[Hashable, list[StrategyLine]] = {}
    for line in lines:
        found.setdefault(look(line), []).append(line)
    groups = sorted(found.values(), key=lambda group: (bool(group[0].refused), end(group[0])))

    def gap(at: int) -> tuple[bool, bool, Decimal]:
        """How little two neighbours belong together: refused lines and those of `kept` stay apart as others do not."""
        pair = groups[at], groups[at + 1]
        both_kept = all(any(line in kept for line in group) for group in pair)
        ends = [end(line) for group in pair for line in group]
        return bool(pair[0][0].refused) != bool(pair[1][0].refused), both_kept, max(ends) - min(ends)

    while len(groups) > MOST_NAMED:
        at = min(range(len(groups) - 1), key=gap)
        groups[at : at + 2] = [groups[at] + groups[at + 1]]
    places = {line.name: place for place, line in enumerate(lines)}
    named = [LineGroup(sorted(group, key=lambda line: (line not in kept, places[line.name]))) for group in groups]
    return sorted(named, key=lambda group: min(places[line.name] for line in group.lines))


@dataclass(frozen=True, slots=True)
class Bar:
    """`parts` are dollars, or tokens, by token class; `label` is bold at its end, `remark` muted after it. A `strong`
    bar is the cheapest; a `pale` one leaves out calls that were refused, or is compared apart."""

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
        # names to the left; so scaled that what stands at the end of each bar fits as well
        left = MARGIN + min(widest([bar.name for bar in bars], bold=True), NAME_WIDTH) + GAP
        room = WIDTH - left - MARGIN
        axes = figure.add_axes((left / WIDTH, MARGIN / height, room / WIDTH, (height - head - MARGIN) / height))
        axes.set_xlim(0, max((bar.total * room / (room - bar.words) for bar in bars), default=0) or 1)
        axes.set_ylim(max(len(bars), 1) - 0.5, -0.5)
        axes.spines[:].set_visible(False)
        axes.spines["left"].set(visible=True, color=RULE)
        axes.set_xticks([])
        axes.set_yticks([])
        for row, bar in enumerate(bars):
            _draw_bar(axes, row, bar)
    return figure


def _draw_bar(axes: Axes, row: int, bar: Bar) -> None:
    end, start, alpha = axes.get_xlim()[1], 0.0, 0.45 if bar.pale else 1
    for name, width in bar.parts.items():
        if width > end * HAIRLINE:  # less would come and go with the rounding of pixels
            axes.barh(row, width, BAR, left=start, color=CLASS_COLOURS[name], linewidth=0, alpha=alpha)
            start += width
    # part of the width of the axes from which on it is shown that bars of a group end further out
    if bar.reach > start + end * 0.005:
        axes.plot([start, bar.reach], [row, row], color=MUTED, linewidth=1.2, solid_capstyle="butt")
        axes.plot([bar.reach, bar.reach], [row - BAR / 4, row + BAR / 4], color=MUTED, linewidth=1.2)
    weight = "bold" if bar.strong else "normal"
    shown = "\n".join(wrap_text(bar.name, NAME_WIDTH, bold=bar.strong))
    annotate_beside(axes, shown, (0, row), -GAP, ha="right", weight=weight, linespacing=1.1)
    annotate_beside(axes, bar.label, (bar.total, row), GAP, weight="bold")
    annotate_beside(axes, bar.remark, (bar.total, row), 2 * GAP + text_width(bar.label, bold=True), color=MUTED)


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
    """Dollars so far after each call, of every strategy that was not wholly refused. At most twelve lines: strategies
    that are near one another are one of them, on a pale band."""
    title = cumulative_title(summary)
    with house_style():
        curves = _curves(summary)
        plot = max(3.4, LABEL_STEP * (len(curves) + 1))
        head = MARGIN + (title_height(title) + 0.12 if headed else 0)
        height = head + plot + AXIS_LABELS + MARGIN / 2
        figure = Figure(figsize=(WIDTH, height))
        if headed:
            draw_title(figure, title)
        top = (max((curve.end for curve in curves), default=0) or 1) * 1.03
        left = MARGIN + widest(dollar_ticks(top)[1], SMALL_SIZE) + 0.1
        right = LEADER + widest([curve.label for curve in curves], SMALL_SIZE, bold=True) + MARGIN
        axes = figure.add_axes((left / WIDTH, AXIS_LABELS / height, (WIDTH - left - right) / WIDTH, plot / height))
        _set_scales(axes, max((len(curve.values) - 1 for curve in curves), default=0), top, 6)
        for curve in curves:
            last = len(curve.values) - 1
            at = [*range(0, last, -(-len(curve.values) // POINTS)), last]  # the first and the last among them
            low, values, high = ([ys[number] for number in at] for ys in (curve.low, curve.values, curve.high))
            if low != high:
                axes.fill_between(at, low, high, color=curve.colour, alpha=0.22, linewidth=0, zorder=1)
            style, (width, order) = (0, (5, 2)) if curve.dashed else "-", (2.6, 3) if curve.strong else (1.5, 2)
            axes.plot(at, values, color=curve.colour, linewidth=width, linestyle=style, zorder=order)
        places = spread([curve.end / top * plot for curve in curves], LABEL_STEP, 0.05, plot)
        for curve, place in zip(curves, places, strict=True):
            _label(axes, curve, curve.end / top, place / plot)
    return figure


def spread(wanted: Sequence[float], step: float, low: float, high: float) -> list[float]:
    """Places `step` apart or more, as near to `wanted` as that allows (least squares), of equals the first highest.
    They stand between `low` and `high`; too many to stand there go on above."""
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
        label = f"{cut(group.name, 3.6, SMALL_SIZE)}  {money}"
        colour, dashed = LINE_COLOURS[number % len(LINE_COLOURS)], number >= len(LINE_COLOURS)
        others = [running[line.name] for line in group.lines]  # a shorter one stays at its last value
        ends = [[one[min(at, len(one) - 1)] for one in others] for at in range(len(values))]
        low, high = list(map(min, ends)), list(map(max, ends))
        curves.append(Curve(label, values, low, high, colour, dashed, strong=summary.best in group.lines))
    return curves


def dollar_ticks(top: float) -> tuple[list[float], list[str]]:
    """Round amounts up to `top` and how they are written: without cents if none of them has any."""
    ticks = [float(tick) for tick in MaxNLocator(5).tick_values(0, top) if 0 <= tick <= top]
    whole = all(tick == int(tick) for tick in ticks)
    return ticks, [dollars(Decimal(f"{tick:.10g}"), 0 if whole else None) for tick in ticks]


def _label(axes: Axes, curve: Curve, end: float, place: float) -> None:
    """The label at height `place` beside the axes, led to from the line's end (both are shares of the height)."""
    last = (len(curve.values) - 1) / axes.get_xlim()[1]
    inch = 1 / (axes.get_position().width * WIDTH)
    path = ([last, 1 + 0.05 * inch, 1 + (LEADER - 0.1) * inch], [end, end, place])
    axes.plot(*path, transform=axes.transAxes, clip_on=False, color=curve.colour, linewidth=0.8)
    words: dict[str, Any] = {"size": SMALL_SIZE, "weight": "bold" if curve.strong else "normal"}
    x = 1 + (LEADER - 0.04) * inch
    axes.text(x, place, curve.label, transform=axes.transAxes, va="center_baseline", **words)


def area_figure(ledger: Ledger, top: float) -> Figure:
    """Both pictures of `ledger`, on an axis up to `top` dollars."""
    with house_style():
        figure = Figure(figsize=(WIDTH, 3.2))
        panels = figure.subplots(1, 2, sharey=True)
        figure.subplots_adjust(left=0.07, right=1 - MARGIN / WIDTH, top=0.83, bottom=0.145, wspace=0.08)
        at = sample_numbers(len(ledger.rows))
        splits: Sequence[tuple[str, Split, Mapping[str, str]]] = (
            ("By token class", cost_by_class, CLASS_COLOURS),
            ("By layer of the prompt", cost_by_layer, LAYER_COLOURS),
        )
        for axes, (title, split, colours) in zip(panels, splits, strict=True):
            axes.set_title(title, loc="left", fontsize=TEXT_SIZE, fontweight="bold", pad=22, x=0)
            sums = {name: running_parts(ledger.rows, split, name) for name in colours}
            # an area below this part of the height is not seen
            drawn = [name for name in colours if float(sums[name][-1]) > top * 0.002]
            if drawn:
                heights = [[float(sums[name][number]) for number in at] for name in drawn]
                axes.stackplot(at, *heights, colors=[colours[name] for name in drawn], linewidth=0)
                for name in drawn:
                    axes.plot([], [], color=colours[name], linewidth=6, label=CLASS_NAMES.get(name, name))
                look = {"handlelength": 0.8, "columnspacing": 1.2, "borderaxespad": 0}
                place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 0.99)}
                axes.legend(ncols=len(drawn), frameon=False, fontsize=SMALL_SIZE, **place, **look)
            _set_scales(axes, len(ledger.rows), top, 5)
    return figure


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
        legend = [cut(shown, 4.3, SMALL_SIZE) for _, shown in names]
        places = _legend_places(legend)
        top = head + LEGEND_LINE * (1 + places[-1][1]) + 0.12
        height = top + DOT_ROW * len(rows) + AXIS_LABELS
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
        axes = _dot_axes(figure, summaries, rows, top, height)
        for row, dots in enumerate(rows):
            axes.axhline(row, color=RULE, linewidth=0.6, zorder=0)
            least = [dot.least for dot in dots]
            axes.plot([min(least, default=1), max(least, default=1)], [row, row], color=RULE, linewidth=4, zorder=1)
            for place, dot in enumerate(dots):
                y = row + SPREAD * (place - (len(dots) - 1) / 2)
                if dot.most > dot.least:
                    axes.plot([dot.least, dot.most], [y, y], color=_colour(dot.strategy), linewidth=1.1, zorder=2)
                _dot(axes, dot.least, y, dot.strategy)
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


def _dot_axes(
    figure: Figure, summaries: Sequence[Summary], rows: Sequence[Sequence[Dot]], top: float, height: float
) -> Axes:
    names = [cut(provider_name(summary, summaries[0]), 4.0) for summary in summaries]
    left = MARGIN + widest(names) + DOT_GAP
    right = MARGIN + widest([_range_words(dots) for dots in rows], SMALL_SIZE) + DOT_GAP
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
        # beside the axes: at a share of their width, and a row
        beside: dict[str, Any] = {"xycoords": axes.get_yaxis_transform()}
        annotate_beside(axes, name, (0, row), -DOT_GAP, ha="right", **beside)
        annotate_beside(axes, _range_words(dots), (1, row), DOT_GAP, size=SMALL_SIZE, color=MUTED, **beside)
    return axes


def _range_words(dots: Sequence[Dot]) -> str:
    """How far apart the strategies of a row are: "10 ×"."""
    least = [dot.least for dot in dots]
    return times(Decimal(f"{max(least) / min(least):.4g}")) if least else ""


def _dot(axes: Axes, x: float, y: float, number: int) -> None:
    edge: dict[str, Any] = {"markersize": 6, "markeredgecolor": PAPER, "markeredgewidth": 0.5}
    look: dict[str, Any] = {"marker": MARKERS[number % len(MARKERS)], "color": _colour(number), "linestyle": "none"}
    axes.plot([x], [y], **look, **edge, zorder=3, clip_on=False)


def _colour(number: int) -> str:
    return LINE_COLOURS[number % len(LINE_COLOURS)]


def figures(summary: Summary, variants: Sequence[Summary] = ()) -> dict[str, Figure]:
    """Every picture of this comparison by its file name. `variants` are all of the run, this one first; where they are
    several hosts, one picture has them all."""
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
