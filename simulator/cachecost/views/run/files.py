"""The parts of a report: its files, text bars, groups of strategies that look the same, and timelines."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from itertools import pairwise

from rich.text import Text

from cachecost.analysis.comparison.summary import StrategyLine, Summary, ranked, variant_name
from cachecost.base.formatting import UNKNOWN, change, count_text, dollar_range, percent, quote
from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import Ledger
from cachecost.providers.usage import ZERO
from cachecost.views.charts.palette import CLASS_COLOURS
from cachecost.views.run.tables import strategies_by_variant
from cachecost.views.tables.table import Table
from cachecost.views.timeline.columns import MOST, columns_of, most_columns, most_spots, paths_of, rewritten_by_call
from cachecost.views.timeline.picture import TimelineScale, TimelineView, timeline_view, usage_sentence

EIGHTHS = " ▏▎▍▌▋▊▉"
FULL = "█"


def dollar_bar(line: StrategyLine, largest: Decimal, width: int) -> Text:
    """The line's dollars as a part of `width` cells, to an eighth of a cell; something for every cent above zero."""
    if not line.total or not largest:
        return Text()
    eighths = max(1, int((line.total / largest * width * 8).to_integral_value(ROUND_HALF_UP)))
    text = Text(FULL * (eighths // 8) + EIGHTHS[eighths % 8].strip())
    cells = len(text)
    ends, so_far = [0], ZERO
    for name in CLASS_COLOURS:
        so_far += line.cost.by_class()[name]
        ends.append(int((so_far / line.cost.total * cells).to_integral_value(ROUND_HALF_UP)))
    for colour, (start, end) in zip(CLASS_COLOURS.values(), list(pairwise(ends)), strict=True):
        text.stylize(colour, start, end)
    return text


def legend(classes: Sequence[str], names: dict[str, str]) -> Text:
    """The token classes in their colours, to head a column of bars."""
    return Text(" ").join(Text(names[name], style=CLASS_COLOURS[name]) for name in classes)


REPORT = "report.md"
PAGE = "index.html"
DOLLARS = "dollars.svg"
CUMULATIVE = "cumulative.svg"
QUESTION = "question.svg"
PROVIDERS = "providers.svg"
README_PICTURE = "chart.png"
CALLS = "calls.csv"
RESULT = "result.json"

OURS = (REPORT, PAGE, DOLLARS, CUMULATIVE, QUESTION, PROVIDERS, README_PICTURE, CALLS, RESULT)
"""The files a run may write; anything else in its folder (a baseline …) is left alone."""


MOST_NAMED = 12
"""Lines or bars of one chart."""
Amount = Callable[[StrategyLine], Decimal | None]


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

    def money(self, amount: Amount, places: int | None) -> str:
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


def providers_title(summaries: Sequence[Summary]) -> str:
    """ "One question in each variant: “answer tool, auto” costs less than “structured output, no tools” in 9 of 20"."""
    main = summaries[0]
    first, best = main.first, main.best
    what = "One question" if main.has_questions else "The session"
    if first is None or best is None or first in main.best_lines:
        return f"{what} in each of {count_text(len(summaries), 'variant')}"
    pairs = [(summary.line(best.name), summary.line(first.name)) for summary in summaries]
    amounts = [
        (one.question, other.question) if main.has_questions else (one.total, other.total)
        for one, other in pairs
        if one is not None and other is not None
    ]
    known = [(one, other) for one, other in amounts if one is not None and other is not None]
    cheaper = sum(one < other for one, other in known)
    names = f"{quote(best.name)} costs less than {quote(first.name)}"
    return f"{what}: {names} in {cheaper:,} of {count_text(len(known), 'variant')}"


def provider_name(summary: Summary, main: Summary) -> str:
    """The name of a variant; the scenario as written has its host's."""
    comparison = summary.comparison
    return f"{comparison.host}, as written" if summary is main else variant_name(comparison)


TITLE = "Cost of one question in each variant"


def question_variants(summaries: Sequence[Summary]) -> Table | None:
    """A cell for each strategy and variant, the cheapest of a variant bold; None without variants or questions.

    Many variants are rows, few are columns.
    """
    if len(summaries) < 2 or not summaries[0].has_questions:
        return None
    best = []
    for summary in summaries:
        costs = {line.name: line.question for line in ranked(summary.lines) if line.question is not None}
        least = min(costs.values(), default=ZERO)
        best.append({name for name, cost in costs.items() if cost == least})
    return strategies_by_variant(TITLE, summaries, _cell, best)


def _cell(summary: Summary, name: str) -> str:
    line, first = summary.line(name), summary.first
    if line is None or not line.questions:
        return UNKNOWN
    against = None if first is None or first is line else change(line.question, first.question)
    return line.question_money if against is None else f"{line.question_money} ({percent(against, signed=True)})"


SHOWN = 6
"""Pictures that have a place of their own; further ones are folded away together."""


def run_timelines(summary: Summary, explanations: Sequence[Explanation] = ()) -> list[TimelineView]:
    """The first and the best strategy open, then the others in their order; `explanations` tell what was rewritten."""
    ledgers = [ledger for ledger in summary.comparison.ledgers if ledger.rows]
    shown = [line.name for line in (summary.first, summary.best) if line is not None]
    order = sorted(ledgers, key=lambda one: shown.index(one.strategy) if one.strategy in shown else len(shown))
    longest = max((row.usage.total_input for ledger in ledgers for row in ledger.rows), default=0)
    rewritten = {one.strategy: rewritten_by_call(one) for one in explanations}
    groups: dict[tuple[object, ...], list[Ledger]] = {}  # those whose columns are the same to the eye
    for ledger in order:
        paths = paths_of(columns_of(ledger, MOST), longest)
        groups.setdefault((len(ledger.rows), *paths.states, paths.refused), []).append(ledger)
    others = len(groups) - len(set(shown))
    anchors = {line.name: f"strip-{number + 1}" for number, line in enumerate(summary.lines)}
    views = []
    for group in groups.values():
        ledger, names = group[0], [one.strategy for one in group]
        is_open = ledger.strategy in shown
        scale = TimelineScale(longest) if is_open else TimelineScale(longest, most_columns(others), most_spots(others))
        calls = columns_of(ledger, max(len(ledger.rows), 1), rewritten.get(ledger.strategy, {}))
        says = usage_sentence(len(ledger.rows), ledger.usage, ledger.cost.total if ledger.is_priced else None)
        view = timeline_view(group_name(names), anchors[ledger.strategy], says, calls, scale, is_open=is_open)
        views.append(replace(view, members=names))
    return views
