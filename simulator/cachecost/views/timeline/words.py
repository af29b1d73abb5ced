"""The tooltips of a prompt timeline, and the table behind the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from cachecost.base.formatting import count_text, dollar_column, dollars, tokens
from cachecost.ledger.results import ZERO, CallRow, LayerTokens
from cachecost.ledger.timelines import BreakpointAt, CallTimeline
from cachecost.prompts.blocks import Layer
from cachecost.views.tables.table import Table, build_table
from cachecost.views.timeline.columns import CallColumn, in_groups

STATES = {"read": "read", "write_1h": "written 1h", "write_5m": "written 5m", "input": "uncached"}
"""The words of the page of `cachecost view`, in the order in which they lie in a prompt."""


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
    return [HoverSpot(number * step, len(group), _says(group)) for number, group in groups]


def call_table(columns: Sequence[CallColumn], most: int) -> Table:
    """The same figures as a table, a row a spot; without the classes of tokens that do not occur."""
    step = -(-len(columns) // most) if columns else 1
    states = {name: word for name, word in STATES.items() if _sum(columns, name)}
    headers = ["call", "for", *states.values(), "output", "cost", "new blocks, or why there is no usage"]
    groups = list(in_groups(columns, step))
    costs = dollar_column([_usd(group) for group in groups])
    rows = [_cells(group, [*states, "output"], cost) for group, cost in zip(groups, costs, strict=True)]
    return build_table("Tokens by outcome, call by call", headers, rows, words=2)


def _says(group: Sequence[CallColumn]) -> str:
    if len(group) > 1:
        return _sums_say(group)
    row, timeline = group[0].row, group[0].timeline
    lines = [" · ".join(filter(None, [_who(row), group[0].place, _cost(group)]))]
    if row.error is not None:
        return f"{lines[0]}\n{row.error}"
    lines += [_layer(layer, row) for layer in Layer if _any(row, layer)] or [_prompt(group)]
    lines.append(f"output {tokens(row.usage.output_tokens)}{_dollars(row, row.cost.output)}")
    lines += [f"not read: {_kinds(timeline)}"] if timeline.fresh else []
    lines += [f"breakpoints at {_breakpoints(timeline.breakpoints)}"] if timeline.breakpoints else []
    return "\n".join([*lines, group[0].words or (row.cause or "").replace("_", " ")]).rstrip()


def _who(row: CallRow) -> str:
    what = f"question {row.inquiry}" if row.inquiry is not None else ""
    turn = f"turn {row.turn}" if row.turn else ""
    purpose = row.purpose if row.purpose not in ("main", "inquiry") else ""
    return " · ".join(filter(None, [f"call {row.call}", turn, what, purpose]))


def _any(row: CallRow, layer: Layer) -> bool:
    return layer in row.by_layer and row.by_layer[layer] != LayerTokens()


def _layer(layer: Layer, row: CallRow) -> str:
    found = row.by_layer[layer]
    parts = [f"{tokens(getattr(found, name))} {word}" for name, word in STATES.items() if getattr(found, name)]
    return f"{layer}: {', '.join(parts)}{_dollars(row, row.cost_by_layer[layer])}"


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
    """USD of all its calls; unknown where those of one are."""
    is_known = all(column.row.is_priced for column in group)
    return sum((column.row.cost.total for column in group), ZERO) if is_known else None


def _breakpoints(breakpoints: Sequence[BreakpointAt]) -> str:
    return ", ".join(f"{tokens(breakpoint.tokens)} ({breakpoint.ttl})" for breakpoint in breakpoints)


def _kinds(timeline: CallTimeline) -> str:
    return ", ".join(f"{count} {kind}" if count > 1 else kind for kind, count in timeline.fresh)


def _sums_say(group: Sequence[CallColumn]) -> str:
    words = list(dict.fromkeys(column.words for column in group if column.words))
    return "\n".join([f"{_range(group)} · {_cost(group)}", _prompt(group), *words])


def _range(group: Sequence[CallColumn]) -> str:
    first, last = group[0].row.call, group[-1].row.call
    return f"calls {first:,} to {last:,}" if last != first else f"call {first:,}"


def _sum(group: Sequence[CallColumn], name: str) -> int:
    field = "input_tokens" if name == "input" else "output_tokens" if name == "output" else name
    return sum(getattr(column.row.usage, field) for column in group)


def _cells(group: Sequence[CallColumn], classes: Sequence[str], cost: str) -> list[str]:
    counts = [tokens(_sum(group, name)) for name in classes]
    if len(group) > 1:
        return [_range(group).partition(" ")[2], count_text(len(group), "call"), *counts, cost, ""]
    row, timeline = group[0].row, group[0].timeline
    what = f"question {row.inquiry}" if row.inquiry is not None else row.purpose
    return [f"{row.call:,}", what, *counts, cost, row.error or _kinds(timeline)]
