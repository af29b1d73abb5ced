"""A prompt timeline with its words: what it shows in a sentence, its scales, tooltips, table and legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.base.formatting import count_text, dollar_column, dollars, percent, tokens
from cachecost.ledger.results import CallTimeline
from cachecost.ledger.rows import CallRow, LayerTokens
from cachecost.prompts.blocks import Layer
from cachecost.providers.usage import ZERO, Usage
from cachecost.views.tables.table import Table, build_table
from cachecost.views.timeline.columns import FEWEST_UNITS, MOST, CallColumn, Paths, draw_paths, in_groups, thin

STATES = {"read": "read", "write_1h": "written 1h", "write_5m": "written 5m", "input": "uncached"}
"""The words of the page of `cachecost view`, in the order in which they lie in a prompt."""
KEY = {
    "rewritten": ("rewritten", "dollars rewritten"),
    "breakpoints": ("tick", "breakpoint"),
    "layers": ("edge", "end of tools, of system"),
    "loops": ("loop", "tool loop"),
    "questions": ("asked", "question"),
    "turns": ("turn", "human turn"),
    "refused": ("refused", "refused call"),
}
"""By the path of a picture: the class of its swatch in the legend, and its word."""


@dataclass(frozen=True, slots=True)
class HoverSpot:
    """A part of the picture that can be pointed at: where it starts, how many columns it takes, its tooltip."""

    at: int
    width: int
    says: str


def spots(columns: Sequence[CallColumn], most: int) -> list[HoverSpot]:
    """At most `most` spots; one that covers several columns shows their sums."""
    step = -(-len(columns) // most) if columns else 1
    groups = enumerate(in_groups(columns, step))
    return [HoverSpot(number * step, len(group), _tooltip(group)) for number, group in groups]


def call_table(columns: Sequence[CallColumn], most: int) -> Table:
    """The same figures as a table, a row a spot; without the classes of tokens that do not occur."""
    step = -(-len(columns) // most) if columns else 1
    states = {name: word for name, word in STATES.items() if _sum(columns, name)}
    headers = ["call", "for", *states.values(), "output", "cost", "new blocks, or why there is no usage"]
    groups = list(in_groups(columns, step))
    costs = dollar_column([_usd(group) for group in groups])
    rows = []
    for group, cost in zip(groups, costs, strict=True):
        row, figures = group[0].row, [*(tokens(_sum(group, name)) for name in (*states, "output")), cost]
        if len(group) > 1:
            rows.append([_range(group).partition(" ")[2], count_text(len(group), "call"), *figures, ""])
        else:
            what = f"question {row.inquiry}" if row.inquiry is not None else row.purpose
            rows.append([f"{row.call:,}", what, *figures, row.error or _kinds(group[0].timeline)])
    return build_table("Tokens by outcome, call by call", headers, rows, words=2)


def _tooltip(group: Sequence[CallColumn]) -> str:
    if len(group) > 1:
        words = list(dict.fromkeys(column.words for column in group if column.words))
        return "\n".join([f"{_range(group)} · {_cost(group)}", _prompt(group), *words])
    row, timeline = group[0].row, group[0].timeline
    what = f"question {row.inquiry}" if row.inquiry is not None else ""
    turn = f"turn {row.turn}" if row.turn else ""
    purpose = row.purpose if row.purpose not in ("main", "inquiry") else ""
    head = " · ".join(filter(None, [f"call {row.call}", turn, what, purpose, group[0].place, _cost(group)]))
    if row.error is not None:
        return f"{head}\n{row.error}"
    layers = []
    for layer in Layer:
        found = row.by_layer.get(layer, LayerTokens())
        if found != LayerTokens():
            parts = [f"{tokens(getattr(found, name))} {word}" for name, word in STATES.items() if getattr(found, name)]
            layers.append(f"{layer}: {', '.join(parts)}{_dollars(row, row.cost_by_layer[layer])}")
    lines = [head, *(layers or [_prompt(group)])]
    lines.append(f"output {tokens(row.usage.output_tokens)}{_dollars(row, row.cost.output)}")
    lines += [f"not read: {_kinds(timeline)}"] if timeline.fresh else []
    if timeline.breakpoints:
        lines.append(f"breakpoints at {', '.join(f'{tokens(one.tokens)} ({one.ttl})' for one in timeline.breakpoints)}")
    return "\n".join([*lines, group[0].words or (row.cause or "").replace("_", " ")]).rstrip()


def _dollars(row: CallRow, amount: Decimal) -> str:
    return f" · {dollars(amount)}" if row.is_priced else ""


def _prompt(group: Sequence[CallColumn]) -> str:
    """ "prompt 41k: 8.6k read, 33k written 5m"."""
    parts = [f"{tokens(_sum(group, name))} {word}" for name, word in STATES.items() if _sum(group, name)]
    whole = f"prompt {tokens(sum(_sum(group, name) for name in STATES))}"
    return f"{whole}: {', '.join(parts)}" if parts else whole


def _cost(group: Sequence[CallColumn]) -> str:
    """ "$0.21, of which $0.19 rewritten"."""
    again = sum((column.rewritten for column in group), ZERO)
    return f"{dollars(_usd(group))}, of which {dollars(again)} rewritten" if again else dollars(_usd(group))


def _usd(group: Sequence[CallColumn]) -> Decimal | None:
    is_known = all(column.row.is_priced for column in group)
    return sum((column.row.cost.total for column in group), ZERO) if is_known else None


def _kinds(timeline: CallTimeline) -> str:
    return ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in timeline.fresh)


def _range(group: Sequence[CallColumn]) -> str:
    first, last = group[0].row.call, group[-1].row.call
    return f"calls {first:,} to {last:,}" if last != first else f"call {first:,}"


def _sum(group: Sequence[CallColumn], name: str) -> int:
    field = "input_tokens" if name == "input" else "output_tokens" if name == "output" else name
    return sum(getattr(column.row.usage, field) for column in group)


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
    columns, thinned = thin(calls, scale.columns), ""
    if len(columns) < len(calls):
        each = columns[0].stands_for
        thinned = f"{len(calls):,} calls: each column is the one of {each} that paid most for what was not read."
    return TimelineView(
        name,
        anchor,
        says,
        draw_paths(columns, scale.longest),
        f"{tokens(scale.longest)} tokens",
        spots(columns, scale.spots),
        table or call_table(columns, scale.spots),
        thinned,
        is_open,
        axis,
    )


def longest_prompt(calls: Sequence[CallColumn]) -> int:
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
    found = {name for view in views for name, _ in view.paths.states}
    states = [(name, word) for name, word in names.items() if name in found]
    return states + [item for path, item in KEY.items() if any(getattr(view.paths, path) for view in views)]
