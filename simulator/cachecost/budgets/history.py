"""The history of a project's costs: a line of JSON for every scenario and commit whose costs were accepted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import exact, exact_or_none
from cachecost.base.limits import json_value
from cachecost.base.yaml_text import show_value
from cachecost.budgets.check import BudgetResult

FILE_NAME = "history.jsonl"


@dataclass(frozen=True, slots=True)
class HistoryFigures:
    """A strategy at a commit: USD of the scenario, cache hit rate (None: no input) and number of calls."""

    cost: Decimal
    hit_rate: Decimal | None
    calls: int


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """The figures of a scenario's strategies at `commit` (None: the project has no git), accepted on `day`."""

    scenario: str
    commit: str | None
    day: date | None
    strategies: dict[str, HistoryFigures]

    def __str__(self) -> str:
        figures = {
            name: {"cost_usd": exact(one.cost), "hit_rate": exact_or_none(one.hit_rate), "calls": one.calls}
            for name, one in self.strategies.items()
        }
        day = self.day.isoformat() if self.day else None
        row = {"scenario": self.scenario, "commit": self.commit, "date": day, "strategies": figures}
        return json.dumps(row, ensure_ascii=False)


def entries_of(result: BudgetResult, commit: str | None, day: date | None) -> list[HistoryEntry]:
    """Today's figures, an entry a scenario; strategies with calls that have no cost are left out."""
    by_scenario: dict[str, dict[str, HistoryFigures]] = {}
    for cost in result.costs:
        if not cost.errors:
            rate = cost.reads.rate
            by_scenario.setdefault(cost.scenario, {})[cost.strategy] = HistoryFigures(
                cost.cost, None if rate is None else rate.quantize(Decimal("0.000001")), cost.calls
            )
    return [HistoryEntry(name, commit, day, figures) for name, figures in by_scenario.items()]


def add_entries(before: Sequence[HistoryEntry], new: Iterable[HistoryEntry]) -> list[HistoryEntry]:
    """`before` and those of `new` that say something else than the last entry of their scenario and commit."""
    entries = list(before)
    for entry in new:
        latest = [one for one in entries if (one.scenario, one.commit) == (entry.scenario, entry.commit)]
        if not latest or latest[-1].strategies != entry.strategies:
            entries.append(entry)
    return entries


def history_text(entries: Iterable[HistoryEntry]) -> str:
    return "".join(f"{entry}\n" for entry in entries)


def parse_history(text: str, file: str) -> list[HistoryEntry]:
    """The entries of a file. Raises InputError with every line that is none."""
    entries, faults = [], []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json_value(line)
            day = None if row["date"] is None else date.fromisoformat(row["date"])
            figures = {}
            for name, one in row["strategies"].items():
                rate = None if one["hit_rate"] is None else _finite(one["hit_rate"])
                figures[name] = HistoryFigures(_finite(one["cost_usd"]), rate, int(one["calls"]))
            if not isinstance(row["scenario"], str) or not isinstance(row["commit"], str | None):
                raise ValueError("expected text")
            entries.append(HistoryEntry(row["scenario"], row["commit"], day, figures))
        except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation):
            like = '{"scenario": "chat", "commit": null, "date": "2026-03-07", "strategies": {}}'
            faults.append(Fault(file, f"expected a line like {like}; got {show_value(line)}", number))
    if faults:
        raise InputError(faults)
    return entries


def _finite(text: Any) -> Decimal:
    """A decimal written as text. Raises ValueError."""
    if not isinstance(text, str) or not (amount := Decimal(text)).is_finite():
        raise ValueError("expected a decimal")
    return amount
