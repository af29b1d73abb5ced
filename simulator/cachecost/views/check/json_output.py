"""The object of `check --json` (docs/reference/output-formats.md); every other format is a function of it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, localcontext
from shlex import quote
from typing import TYPE_CHECKING, Any

from cachecost.base.formatting import exact, exact_or_none
from cachecost.budgets.verdicts import exact_share
from cachecost.views.tables.output import pick

if TYPE_CHECKING:
    from cachecost.budgets.check import BudgetResult, StrategyCost
    from cachecost.budgets.prompt_changes import PromptChange
    from cachecost.budgets.source_lines import SourceLine
    from cachecost.budgets.verdicts import CostChange

DAYS_A_MONTH = 30
NO_VOLUMES: Mapping[str, int] = {}
NO_LINES: Mapping[tuple[str, ...], Any] = {}


def check_object(
    result: BudgetResult,
    sessions_per_day: int | None = None,
    volumes: Mapping[str, int] = NO_VOLUMES,
    lines: Mapping[tuple[str, ...], SourceLine] = NO_LINES,
) -> dict[str, Any]:
    """A check as JSON: decimals as text, null where a figure cannot be known. `volumes` are sessions a day by scenario,
    and win over `sessions_per_day`; `lines` are the source lines of changes, by the texts to search them by."""
    # commands that accept the scenarios whose broken budget a new baseline fixes
    incomplete = {(cost.scenario, cost.strategy) for cost in result.costs if cost.errors}
    broken = [one for one in result.budgets if one.verdict != "pass" and one.budget == "max_regression"]
    complete = [one.scenario for one in broken if (one.scenario, one.strategy) not in incomplete]
    sets = "".join(f" --set {quote(text)}" for text in result.sets)
    files = [result.files[name] for name in complete if name in result.files]
    daily = [volumes.get(cost.scenario, sessions_per_day) for cost in result.costs]
    check: dict[str, Any] = {
        "format": 1,
        "verdict": result.verdict,
        "budgets": [
            {
                **pick(one, "scenario", "strategy", "budget"),
                "limit": exact(one.limit),
                "actual": _rounded(one.actual),
                **pick(one, "verdict", "message"),
                "file": one.place and one.place.file,
                "line": one.place and one.place.line,
                "column": one.place and one.place.column,
                "changes": [_change(change, lines.get(change.search)) for change in one.changes],
            }
            for one in result.budgets
        ],
        "strategies": [
            {
                **pick(cost, "scenario", "strategy", "calls", "errors"),
                "cost_usd": exact(cost.cost),
                "baseline_usd": exact_or_none(cost.before),
                "error_margin": cost.error_margin,
            }
            for cost in result.costs
        ],
        "accept": list(dict.fromkeys(f"cachecost check --update {file}{sets}" for file in files)),
        "sessions": list(map(_session, result.costs, daily)),
        "prompt_changes": [
            {
                **pick(one, "scenario", "strategy"),
                "cost_usd": exact(one.cost),
                "changes": [_prompt_change(change, lines.get(change.search)) for change in one.changes],
                "rest": {"cost_usd": exact(one.rest), "answers_usd": exact(one.answers)},
            }
            for one in result.comparisons
        ],
    }
    if sessions_per_day is not None or volumes:
        both = zip(result.costs, daily, strict=True)
        check["project"] = [_projection(cost, sessions) for cost, sessions in both if sessions is not None]
    return check


def _change(change: CostChange, line: SourceLine | None) -> dict[str, Any]:
    return {
        "call": change.call,
        "last": change.last or change.call,
        "calls": change.calls,
        "cost_usd": exact(change.cost),
        **pick(change, "what", "effect"),
        "code": change.code or None,
        "layer": change.layer or None,
        "block": change.block or None,
        "file": line and line.file,
        "line": line and line.line,
    }


def _session(cost: StrategyCost, sessions_per_day: int | None) -> dict[str, Any]:
    volume, before = cost.volume, cost.before
    rates = cost.reads.rate, cost.reads_before.rate if cost.reads_before else None
    day, day_before = (None if one is None else volume.per_day(one, sessions_per_day) for one in (cost.cost, before))
    found: dict[str, Any] | None = None
    if sessions_per_day is not None and day is not None:
        found = {"sessions_per_day": str(sessions_per_day), "from": "option", "days": None}
    elif volume.days is not None and day is not None:
        share = _rounded(exact_share(volume.sessions, volume.days))
        found = {"sessions_per_day": share, "from": "recording", "days": volume.days}
    return {
        **pick(cost, "scenario", "strategy"),
        "sessions": volume.sessions,
        "cost_usd": _rounded(exact_share(cost.cost, volume.sessions)),
        "baseline_usd": None if before is None else _rounded(exact_share(before, volume.sessions)),
        "input_tokens": cost.reads.input,
        "cache_read_input_tokens": cost.reads.read,
        "output_tokens": cost.output_tokens,
        "hit_rate": _rounded(rates[0]),
        "baseline_hit_rate": _rounded(rates[1]),
        "usd_per_day": _rounded(day),
        "baseline_usd_per_day": _rounded(day_before),
        "usd_per_month": _rounded(day and day * DAYS_A_MONTH),
        "baseline_usd_per_month": _rounded(day_before and day_before * DAYS_A_MONTH),
        "volume": found,
    }


def _rounded(amount: Decimal | None) -> str | None:
    """An average or a share may have any number of digits; 28 are written."""
    with localcontext(prec=28):
        return None if amount is None else exact(+amount)


def _prompt_change(change: PromptChange, line: SourceLine | None) -> dict[str, Any]:
    return {
        **pick(change, "layer", "path"),
        "name": change.name or None,
        **pick(change, "kind", "call", "calls"),
        "rewritten": list(change.rewritten),
        **pick(change, "refused", "character"),
        "before": change.before_excerpt,
        "after": change.after_excerpt,
        **pick(change, "tokens_before", "tokens_after"),
        "cost_usd": exact(change.cost),
        **pick(change, "varies", "more"),
        "file": line and line.file,
        "line": line and line.line,
        "column": line and line.column,
    }


def _projection(cost: StrategyCost, sessions: int) -> dict[str, Any]:
    """Dollars of 30 days; tokens may be counted wrong by the error margin."""
    session = exact_share(cost.cost, cost.volume.sessions)
    month, error_margin = session * sessions * DAYS_A_MONTH, Decimal(str(cost.error_margin))
    return {
        **pick(cost, "scenario", "strategy"),
        "sessions_per_day": sessions,
        "days": DAYS_A_MONTH,
        "usd_per_month": _rounded(month),
        "low_usd": _rounded(month * (1 - error_margin)),
        "high_usd": _rounded(month * (1 + error_margin)),
    }
