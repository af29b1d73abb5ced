"""What a scenario costs and how much it reads from the cache, commit by commit, as one small chart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cachecost.base.formatting import change, change_text, count_text, dollars, inert, percent
from cachecost.budgets.history import HistoryEntry, HistoryFigures
from cachecost.simulation.engine import AS_RECORDED
from cachecost.views.charts.palette import LINE_COLOURS, MUTED, RULE
from cachecost.views.charts.style import (
    MARGIN,
    SMALL_SIZE,
    TEXT_SIZE,
    WIDTH,
    cut,
    draw_title,
    house_style,
    standalone_svg,
    title_height,
)

ROW = 1.55
"""Inches of a scenario's two panels, with their labels."""
NAME, LABEL, PANEL = 0.22, 0.22, 0.82
"""Inches of its name, of what a panel shows, and of the panel."""
GAP = 1.0
LABELLED = 8
"""Commits of a panel that are all labelled; of more, the first, the last and those whose figure changed most."""
EDGE = 0.07
"""Of the width of a panel, left free at its sides for the names of the first and the last commit."""
ABOVE, BELOW = 6, -13
"""Points between a dot and its figure: below where the line comes from above."""
COST_COLOUR, RATE_COLOUR = LINE_COLOURS[1], LINE_COLOURS[0]


@dataclass(frozen=True, slots=True)
class ScenarioHistory:
    """The figures of one strategy of a scenario, oldest first, and the commits' names."""

    scenario: str
    strategy: str
    commits: Sequence[str]
    figures: Sequence[HistoryFigures]


def history_svg(entries: Sequence[HistoryEntry]) -> str:
    histories = scenario_histories(entries)
    title = history_title(histories)
    shown, is_named = histories[:8], len(histories) > 1
    with house_style():
        head = MARGIN + title_height(title) + 0.15
        height = head + ROW * max(1, len(shown)) + MARGIN - (0 if is_named else NAME)
        figure = Figure(figsize=(WIDTH, height))
        draw_title(figure, inert(title))
        width = (WIDTH - 2 * MARGIN - GAP) / 2
        for number, one in enumerate(shown):
            top = height - head - ROW * number
            if is_named:
                name = cut(inert(f"{one.scenario}, {one.strategy}"), width)
                figure.text(MARGIN / WIDTH, (top - 0.02) / height, name, size=TEXT_SIZE, weight="bold", va="top")
            bottom = top - NAME * is_named - LABEL - PANEL
            left, right = (
                figure.add_axes((x / WIDTH, bottom / height, width / WIDTH, PANEL / height))
                for x in (MARGIN, MARGIN + width + GAP)
            )
            costs, rates = [at.cost for at in one.figures], [at.hit_rate for at in one.figures]
            _draw(left, one.commits, list(map(float, costs)), "cost, USD", COST_COLOUR, list(map(dollars, costs)))
            highest = max(map(float, costs), default=0.0) or 1.0
            left.set_ylim(-0.4 * highest, 1.25 * highest)
            values = [float("nan") if rate is None else float(rate) for rate in rates]
            _draw(right, one.commits, values, "cache hit rate", RATE_COLOUR, list(map(percent, rates)))
            right.set_ylim(-0.4, 1.25)
    return standalone_svg(figure, title)


def scenario_histories(entries: Sequence[HistoryEntry]) -> list[ScenarioHistory]:
    """Of each scenario the calls as recorded, else the strategy that comes first in its last entry."""
    by_scenario: dict[str, list[HistoryEntry]] = {}
    for entry in entries:
        by_scenario.setdefault(entry.scenario, []).append(entry)
    histories = []
    for name, found in by_scenario.items():
        if last := found[-1].strategies:
            strategy = AS_RECORDED if AS_RECORDED in last else next(iter(last))
            own = [one for one in found if strategy in one.strategies][-40:]
            commits = [one.commit[:7] if one.commit else str(one.day or "?") for one in own]
            histories.append(ScenarioHistory(name, strategy, commits, [one.strategies[strategy] for one in own]))
    return histories


def history_title(histories: Sequence[ScenarioHistory]) -> str:
    """The answer in words: of one scenario its figures, of several how many became cheaper and more expensive."""
    if not histories:
        return "No costs have been accepted yet"
    if len(histories) == 1:
        one, first, last = histories[0], histories[0].figures[0], histories[0].figures[-1]
        name = f"{one.scenario}, {one.strategy}: {dollars(last.cost)}"
        rates = " → ".join(dict.fromkeys(percent(figures.hit_rate) for figures in (first, last)))
        if len(one.figures) == 1:
            return f"{name}, cache hit rate {rates} at {one.commits[0]}"
        than = "as at" if first.cost == last.cost else "than at" if first.cost else "with"
        return f"{name}, {change_text(change(last.cost, first.cost))} {than} {one.commits[0]}; cache hit rate {rates}"
    changes = [one.figures[-1].cost - one.figures[0].cost for one in histories]
    more, less = (sum(usd * sign > 0 for usd in changes) for sign in (1, -1))
    commits = len({name for one in histories for name in one.commits})
    return (
        f"{count_text(len(histories), 'scenario')} over {count_text(commits, 'commit')}: "
        f"{more} cost more than at first, {less} less"
    )


def _draw(
    axes: Axes, commits: Sequence[str], values: Sequence[float], label: str, colour: str, words: Sequence[str]
) -> None:
    """One line with a dot a commit, its figures at the dots and no scale beside it."""
    places = range(len(values))
    axes.plot(places, values, color=colour, linewidth=1.6, marker="o", markersize=4.5, clip_on=False)
    axes.set_title(label, loc="left", size=SMALL_SIZE, color=MUTED, pad=4)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.spines["bottom"].set_color(RULE)
    beside = EDGE * max(len(values) - 1, 1)
    axes.set_xlim(-beside, max(len(values) - 1, 1) + beside)
    # the commits whose figures are written: all of few; else the first, the last and the largest steps, apart
    shown = list(range(len(values)))
    if len(values) > LABELLED:
        shown, apart = [0, len(values) - 1], -(-len(values) // LABELLED)
        for at in sorted(range(1, len(values) - 1), key=lambda at: (-abs(values[at] - values[at - 1]), at)):
            if values[at] != values[at - 1] and all(abs(at - one) >= apart for one in shown):
                shown.append(at)
        shown.sort()
    axes.set_xticks(shown, [inert(commits[at]) for at in shown])
    axes.tick_params(axis="x", length=0)
    for at in shown:
        if values[at] == values[at]:  # not unknown
            highest = max(values[max(0, at - 1)], values[min(at + 1, len(values) - 1)])
            # of the range of a panel's values: what differs by less lies level
            is_top = values[at] >= highest - 0.1 * (max(values) - min(values))
            offset = (0, ABOVE if is_top else BELOW)
            axes.annotate(words[at], (at, values[at]), offset, textcoords="offset points", ha="center", size=SMALL_SIZE)
