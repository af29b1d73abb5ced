"""Scenarios held to their budgets and baselines: the same for the command, the library and the pytest plugin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.budgets.accepting import baseline_of
from cachecost.budgets.baseline import FILE_NAME, Baseline, read_baseline, write_baseline
from cachecost.budgets.comparable import differences
from cachecost.budgets.judging import judged
from cachecost.budgets.playing import Played, played
from cachecost.budgets.verdicts import Change, State, Verdict, exit_code, overall
from cachecost.replay.setup import Progress, no_progress
from cachecost.scenario import Scenario, load

__all__ = ["BudgetResult", "Change", "StrategyCost", "Verdict", "check_scenarios"]

REPORTS = Path("reports")
ProgressOf = Callable[[str], AbstractContextManager[Progress]]
"""Makes, for a scenario's name, the context in which its progress is shown."""


def silent(scenario: str) -> AbstractContextManager[Progress]:
    """No progress is shown."""
    return nullcontext(no_progress)


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """What a strategy comes to, and what it came to in the baseline (None: there is none to compare with).

    `band` is the relative error of the token counts behind it.
    """

    scenario: str
    strategy: str
    calls: int
    cost: Decimal
    before: Decimal | None
    band: float
    errors: int = 0
    """Calls without a cost: refused by the API, or of a model nobody knows."""


@dataclass(frozen=True, slots=True)
class BudgetResult:
    """What became of every budget, in the order of the scenarios and of their files.

    `costs` are those of all strategies, `updated` the baselines that were written, `files` the scenarios by name.
    """

    budgets: list[Verdict]
    costs: list[StrategyCost] = field(default_factory=list)
    updated: list[Path] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> State:
        """One word for all: a broken budget outweighs one that could not be judged."""
        return overall(self.budgets)

    @property
    def exit_code(self) -> int:
        """0 fine, 1 a budget is broken, 3 one could not be judged and none is broken."""
        return exit_code(self.budgets)


def check_scenarios(
    paths: Sequence[Path],
    reports: Path = REPORTS,
    update: bool = False,
    progress: ProgressOf = silent,
    today: date | None = None,
) -> BudgetResult:
    """Hold the scenarios at `paths` to their budgets, and to their baselines under `reports`.

    With `update` today's costs become the baselines first, accepted on `today`. Raises InputError with the faults of
    all files, CannotEvaluate.
    """
    scenarios = _loaded(paths)
    result = BudgetResult([], files={scenario.name: str(path) for path, scenario in scenarios})
    for path, scenario in scenarios:
        with progress(scenario.name) as told:
            _check(path, scenario, reports / scenario.name / FILE_NAME, today if update else None, update, told, result)
    return result


def _check(
    path: Path,
    scenario: Scenario,
    place: Path,
    today: date | None,
    update: bool,
    told: Progress,
    result: BudgetResult,
) -> None:
    """One scenario; what is found is added to `result`."""
    baseline = None if update else read_baseline(place)
    plays = list(played(scenario, path.parent, told))
    now = baseline_of(scenario, plays, today)
    if update:
        if write_baseline(place, now):
            result.updated.append(place)
        baseline = read_baseline(place)
    result.budgets.extend(judged(scenario, plays, now, baseline))
    result.costs.extend(_cost(scenario.name, one, now, baseline) for one in plays)


def _cost(scenario: str, one: Played, now: Baseline, baseline: Baseline | None) -> StrategyCost:
    total, name = one.ledger.cost.total, one.strategy
    known = baseline is not None and name in baseline.strategies and not differences(baseline, now, name)
    before = baseline.strategies[name].cost_usd if known and baseline else None
    return StrategyCost(scenario, name, len(one.rows), total, before, one.ledger.band, one.ledger.errors)


def _loaded(paths: Sequence[Path]) -> list[tuple[Path, Scenario]]:
    """All scenarios, each with a name of its own. Raises InputError with the faults of all."""
    loaded: list[tuple[Path, Scenario]] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            loaded.append((path, load(path)))
        except InputError as error:
            faults += error.faults
    first: dict[str, Path] = {}
    for path, scenario in loaded:
        if first.setdefault(scenario.name, path) != path:
            expected = f"expected a name of its own, for its baseline; got '{scenario.name}', as {first[scenario.name]}"
            faults.append(replace(scenario.fault(("name",), expected), file=str(path)))
    if faults:
        raise InputError(faults)
    return loaded
