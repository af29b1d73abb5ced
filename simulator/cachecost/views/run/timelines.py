"""The prompt timelines of a run: one for all strategies whose calls look the same, the first and the best open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from cachecost.analysis.comparison.summary import Summary
from cachecost.ledger.findings import Explanation
from cachecost.ledger.results import Ledger
from cachecost.views.run.line_groups import group_name
from cachecost.views.timeline.columns import MOST, columns_of, most_columns, most_spots, rewritten_by_call
from cachecost.views.timeline.paths import paths_of
from cachecost.views.timeline.picture import TimelineScale, TimelineView, timeline_view, usage_sentence

Rewritten = Mapping[str, Mapping[int, Decimal]]
"""USD by strategy and number of the call."""
SHOWN = 6
"""Pictures that have a place of their own; further ones are folded away together."""


def run_timelines(summary: Summary, explanations: Sequence[Explanation] = ()) -> list[TimelineView]:
    """The first and the best strategy open, then the others in their order; `explanations` tell what was rewritten."""
    ledgers = [ledger for ledger in summary.comparison.ledgers if ledger.rows]
    shown = [line.name for line in (summary.first, summary.best) if line is not None]
    order = sorted(ledgers, key=lambda ledger: (_place(ledger.strategy, shown), ledgers.index(ledger)))
    longest = max((row.usage.total_input for ledger in ledgers for row in ledger.rows), default=0)
    rewritten = {one.strategy: rewritten_by_call(one) for one in explanations}
    groups = _alike(order, longest)
    others = len(groups) - len(set(shown))
    anchors = {line.name: f"strip-{number + 1}" for number, line in enumerate(summary.lines)}
    return [
        _timeline(group, anchors[group[0].strategy], longest, group[0].strategy in shown, others, rewritten)
        for group in groups
    ]


def anchors_of(timelines: Sequence[TimelineView]) -> dict[str, str]:
    """Where the timeline of each strategy is."""
    return {name: view.anchor for view in timelines for name in (view.members or (view.name,))}


def _place(name: str, shown: Sequence[str]) -> int:
    return shown.index(name) if name in shown else len(shown)


def _alike(ledgers: Sequence[Ledger], longest: int) -> list[list[Ledger]]:
    """The strategies in groups whose columns are the same to the eye; where breakpoints stand makes no difference."""
    groups: dict[tuple[object, ...], list[Ledger]] = {}
    for ledger in ledgers:
        paths = paths_of(columns_of(ledger, MOST), longest)
        groups.setdefault((len(ledger.rows), *paths.states, paths.refused), []).append(ledger)
    return list(groups.values())


def _timeline(
    group: Sequence[Ledger], anchor: str, longest: int, is_open: bool, others: int, rewritten: Rewritten
) -> TimelineView:
    ledger = group[0]
    scale = TimelineScale(longest) if is_open else TimelineScale(longest, most_columns(others), most_spots(others))
    calls = columns_of(ledger, max(len(ledger.rows), 1), rewritten.get(ledger.strategy, {}))
    cost = ledger.cost.total if ledger.is_priced else None
    says = usage_sentence(len(ledger.rows), ledger.usage, cost)
    names = [one.strategy for one in group]
    view = timeline_view(group_name(names), anchor, says, calls, scale, is_open=is_open)
    return replace(view, members=names)
