"""A prompt timeline with its words: what it shows in a sentence, its scales, tooltips and table, and its legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.base.formatting import count_text, dollars, percent, tokens
from cachecost.providers.usage import Usage
from cachecost.views.tables.table import Table
from cachecost.views.timeline.columns import MOST, CallColumn, thin
from cachecost.views.timeline.paths import FEWEST_UNITS, Paths, paths_of
from cachecost.views.timeline.words import STATES, HoverSpot, call_table, spots

BREAKPOINT, LAYER_ENDS, LOOP, QUESTION, TURN, REFUSED, REWRITTEN = (
    ("tick", "breakpoint"),
    ("edge", "end of tools, of system"),
    ("loop", "tool loop"),
    ("asked", "question"),
    ("turn", "human turn"),
    ("refused", "refused call"),
    ("rewritten", "dollars rewritten"),
)
"""Kinds of a legend: the class of the swatch, and its word."""


@dataclass(frozen=True, slots=True)
class TimelineScale:
    """What timelines share that are looked at together: tokens of the highest column, and columns and spots of each."""

    longest: int
    columns: int = MOST
    spots: int = MOST


@dataclass(frozen=True, slots=True)
class TimelineView:
    """The picture of some calls with its words."""

    name: str
    anchor: str
    says: str
    paths: Paths
    scale: str
    """What the highest column of the scale stands for."""
    spots: list[HoverSpot]
    table: Table
    thinned: str = ""
    is_open: bool = True
    axis: Sequence[str] = ("first call", "last call")
    members: Sequence[str] = ()
    """Names whose pictures are this one, where they are several."""

    @property
    def filled(self) -> int:
        """Percent of its width that columns take: a few are no walls."""
        return round(100 * len(self.spots) / self.paths.width) if len(self.spots) < FEWEST_UNITS else 100

    @property
    def scale_top(self) -> int:
        """Percent of its height above the prompts."""
        return round(100 * -self.paths.top / (self.paths.bottom - self.paths.top))

    @property
    def lane(self) -> str:
        """What the highest column of the lane of rewritten dollars stands for; "" without a lane."""
        return f"{dollars(self.paths.most_rewritten)} rewritten" if self.paths.rewritten else ""


def timeline_view(
    name: str,
    anchor: str,
    says: str,
    calls: Sequence[CallColumn],
    scale: TimelineScale,
    *,
    is_open: bool = True,
    table: Table | None = None,
    axis: Sequence[str] = ("first call", "last call"),
) -> TimelineView:
    """The timeline of these calls; `table` stands behind it, by default tokens call by call."""
    columns = thin(calls, scale.columns)
    return TimelineView(
        name,
        anchor,
        says,
        paths_of(columns, scale.longest),
        f"{tokens(scale.longest)} tokens",
        spots(columns, scale.spots),
        table or call_table(columns, scale.spots),
        _thinned(calls, columns),
        is_open,
        axis,
    )


def longest_prompt(calls: Sequence[CallColumn]) -> int:
    """Tokens of the longest prompt."""
    return max((column.row.usage.total_input for column in calls), default=0)


def usage_sentence(calls: int, usage: Usage, cost: Decimal | None) -> str:
    """What calls are made of: "62 calls, 3.93M tokens: 95% read, 4.7% written, 0.003% uncached · $2.07"."""
    whole = usage.total_input
    if not whole:
        return f"{count_text(calls, 'call')}, none with a usage"
    counts = {"read": usage.read, "written": usage.write_5m + usage.write_1h, "uncached": usage.input_tokens}
    shares = [f"{percent(Decimal(count) / whole)} {word}" for word, count in counts.items() if count]
    words = f"{count_text(calls, 'call')}, {tokens(whole)} tokens: {', '.join(shares)}"
    return words if cost is None else f"{words} · {dollars(cost)}"


def timeline_key(views: Sequence[TimelineView], ttls: tuple[str, str] = ("5m", "1h")) -> list[tuple[str, str]]:
    """The legend of these pictures: class and word of what occurs in them. `ttls` are the host's."""
    names = {**STATES, "write_5m": f"written {ttls[0]}", "write_1h": f"written {ttls[1]}"}
    return list(dict.fromkeys(item for item in _key(views, names)))


def _key(views: Sequence[TimelineView], names: dict[str, str]) -> Iterator[tuple[str, str]]:
    found = {name for view in views for name, _ in view.paths.states}
    yield from ((name, word) for name, word in names.items() if name in found)
    for view_part, item in (
        ("rewritten", REWRITTEN),
        ("breakpoints", BREAKPOINT),
        ("layers", LAYER_ENDS),
        ("loops", LOOP),
        ("questions", QUESTION),
        ("turns", TURN),
        ("refused", REFUSED),
    ):
        if any(getattr(view.paths, view_part) for view in views):
            yield item


def _thinned(calls: Sequence[CallColumn], columns: Sequence[CallColumn]) -> str:
    if len(columns) == len(calls):
        return ""
    each = columns[0].stands_for
    return f"{len(calls):,} calls: each column is the one of {each} that paid most for what was not read."
