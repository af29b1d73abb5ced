"""The object of `check --json` (docs/reference/output-formats.md); every other format is a function of it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

from cachecost.base.formatting import exact

if TYPE_CHECKING:
    from cachecost.budgets.check import BudgetResult, StrategyCost
    from cachecost.budgets.verdicts import CostChange, Verdict

FORMAT = 1
DAYS_A_MONTH = 30
DIGITS = 28
NO_VOLUMES: Mapping[str, int] = {}
FIXED_BY_BASELINE = "max_regression"
"""The budget that a new baseline fixes."""


def check_object(
    result: BudgetResult, sessions_per_day: int | None = None, volumes: Mapping[str, int] = NO_VOLUMES
) -> dict[str, Any]:
    """A check as JSON: decimals as text, null where a figure cannot be known.

    `volumes` are sessions a day by scenario; they win over `sessions_per_day`.
    """
    check: dict[str, Any] = {
        "format": FORMAT,
        "verdict": result.verdict,
        "budgets": [_budget(verdict) for verdict in result.budgets],
        "strategies": [_strategy(cost) for cost in result.costs],
        "accept": list(dict.fromkeys(_accept_commands(result))),
    }
    if sessions_per_day is not None or volumes:
        daily = ((cost, volumes.get(cost.scenario, sessions_per_day)) for cost in result.costs)
        check["project"] = [_projection(cost, sessions) for cost, sessions in daily if sessions is not None]
    return check


def _accept_commands(result: BudgetResult) -> list[str]:
    """The commands that accept today's costs, where all calls have one."""
    incomplete = {(cost.scenario, cost.strategy) for cost in result.costs if cost.errors}
    broken = [
        one
        for one in result.budgets
        if one.verdict != "pass" and one.budget == FIXED_BY_BASELINE and (one.scenario, one.strategy) not in incomplete
    ]
    return [f"cachecost check --update {result.files[one.scenario]}" for one in broken if one.scenario in result.files]


def _budget(verdict: Verdict) -> dict[str, Any]:
    place = verdict.place
    return {
        "scenario": verdict.scenario,
        "strategy": verdict.strategy,
        "budget": verdict.budget,
        "limit": exact(verdict.limit),
        "actual": None if verdict.actual is None else _exact_rounded(verdict.actual),
        "verdict": verdict.verdict,
        "message": verdict.message,
        "file": place.file if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "changes": [_change(change) for change in verdict.changes],
    }


def _exact_rounded(actual: Decimal) -> str:
    """An average or a share may have any number of digits; 28 are written."""
    with localcontext(prec=DIGITS):
        return exact(+actual)


def _change(change: CostChange) -> dict[str, Any]:
    return {
        "call": change.call,
        "last": change.last or change.call,
        "calls": change.calls,
        "cost_usd": exact(change.cost),
        "what": change.what,
        "effect": change.effect,
        "code": change.code or None,
        "layer": change.layer or None,
        "block": change.block or None,
    }


def _strategy(cost: StrategyCost) -> dict[str, Any]:
    return {
        "scenario": cost.scenario,
        "strategy": cost.strategy,
        "calls": cost.calls,
        "errors": cost.errors,
        "cost_usd": exact(cost.cost),
        "baseline_usd": None if cost.before is None else exact(cost.before),
        "error_margin": cost.error_margin,
    }


def _projection(cost: StrategyCost, sessions: int) -> dict[str, Any]:
    """Dollars of 30 days: what the scenario plays is one session, and tokens may be counted wrong by the band."""
    month, error_margin = cost.cost * sessions * DAYS_A_MONTH, Decimal(str(cost.error_margin))
    return {
        "scenario": cost.scenario,
        "strategy": cost.strategy,
        "sessions_per_day": sessions,
        "days": DAYS_A_MONTH,
        "usd_per_month": exact(month),
        "low_usd": exact(month * (1 - error_margin)),
        "high_usd": exact(month * (1 + error_margin)),
    }
