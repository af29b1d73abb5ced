"""The costs of an optimum: its plan, every strategy against it, and the lower bounds."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from cachecost.analysis.optimum.optimum import Optimum
from cachecost.base.formatting import change, dollar_column, percent_column
from cachecost.views.tables.table import Column, Table

MOST_ROWS = 8
KNOWN = {"none", "automatic", "system-only", "progressive", "base", "claude-code"}
PLAN, LOWER_BOUND = "this plan", "lower bound for these prompts"


def plan_table(optimum: Optimum) -> Table:
    """The plan, every strategy that could run, the cheapest first, then the lower bounds."""
    costs = [(preset.name, preset.usd) for preset in optimum.presets if not preset.refused]
    return _cost_table(optimum, costs)


def short_plan_table(optimum: Optimum) -> Table:
    """The same for the terminal: strategies of the same cost share a row, and only the cheapest rows are shown."""
    costs = [
        ((names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more of the same cost"), usd)
        for number, (names, usd) in enumerate(cheapest_groups(optimum))
        if number < MOST_ROWS or set(names) & KNOWN
    ]
    return _cost_table(optimum, costs)


def cheapest_groups(optimum: Optimum) -> list[tuple[list[str], Decimal]]:
    """Strategies by their cost, the cheapest first; of those of the same cost the best known one comes first."""
    groups: dict[Decimal, list[str]] = {}
    for preset in sorted((preset for preset in optimum.presets if not preset.refused), key=lambda preset: preset.usd):
        groups.setdefault(preset.usd, []).append(preset.name)
    return [(sorted(names, key=lambda name: name.partition("@")[0] not in KNOWN), usd) for usd, names in groups.items()]


def _cost_table(optimum: Optimum, costs: Sequence[tuple[str, Decimal]]) -> Table:
    recorded = [] if optimum.recorded_usd is None else [(optimum.first, optimum.recorded_usd)]
    rows = [(PLAN, optimum.usd), *sorted([*costs, *recorded], key=lambda row: row[1])]
    bounds = [(LOWER_BOUND, optimum.lower_bound_usd)]
    if optimum.with_pings and optimum.lower_bound.usd != optimum.lower_bound_usd:
        bounds.append((f"{LOWER_BOUND}, without keep-alives", optimum.lower_bound.usd))
    blank = [""] * len(bounds)
    above = percent_column([change(usd, optimum.lower_bound_usd) for _, usd in rows], signed=True)
    shares = [change(optimum.usd, usd) for _, usd in rows]
    saved = percent_column([-share if share else None for share in shares])
    columns = [
        Column("name", "strategy", [name for name, _ in (*rows, *bounds)], right=False),
        Column("cost", "cost", dollar_column([usd for _, usd in (*rows, *bounds)])),
        Column("over", "above lower bound", [*above, *blank]),
        Column("saved", "saved by this plan", [*saved, *blank]),
    ]
    return Table(columns, "Dollars for these calls", strong=frozenset({0}))
