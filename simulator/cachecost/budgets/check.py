"""Checks scenarios against their budgets and baselines, for the command, the library and the pytest plugin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path

from cachecost.base.errors import Fault, InputError
from cachecost.budgets.accepted_calls import SentCalls, read_accepted_calls, write_accepted
from cachecost.budgets.baseline import FILE_NAME, Baseline, read_baseline
from cachecost.budgets.comparable import differences
from cachecost.budgets.determinism import check_determinism
from cachecost.budgets.limits import check_budgets
from cachecost.budgets.new_baseline import baseline_of
from cachecost.budgets.strategy_replays import ReplayedStrategy, replay_strategies
from cachecost.budgets.verdicts import State, Verdict, exit_code, overall
from cachecost.scenario import Scenario, load
from cachecost.scenario.file_defaults import NO_DEFAULTS, FileDefaults
from cachecost.scenario.recorded import Record, RecordedScenario, without_command
from cachecost.simulation.setup import Progress, no_progress

__all__ = ["BudgetResult", "StrategyCost", "Verdict", "check_scenarios"]

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
    error_margin: float
    errors: int = 0
    """Calls without a cost: refused by the API, or of an unknown model."""


@dataclass(frozen=True, slots=True)
class BudgetResult:
    """The verdict on every budget, in the order of the scenarios and of their files.

    `costs` are those of all strategies, `updated` the baselines that were written, `files` the scenarios by name.
    """

    budgets: list[Verdict]
    costs: list[StrategyCost] = field(default_factory=list)
    updated: list[Path] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    sent: dict[str, SentCalls] = field(default_factory=dict)
    """What the commands of scenarios sent, by the name of the scenario."""

    @property
    def verdict(self) -> State:
        """One word for all: a broken budget outweighs one that could not be checked."""
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
    defaults: FileDefaults = NO_DEFAULTS,
    record: Record = without_command,
) -> BudgetResult:
    """Check the scenarios at `paths` against their budgets, and against their baselines under `reports`.

    `defaults` stand where a scenario states nothing. With `update` today's costs become the baselines first, accepted
    on `today`. `record` runs the commands of those that have one, all before the first is checked. Raises InputError
    with the faults of all files, CannotEvaluate.
    """
    scenarios = [(path, record(path, scenario)) for path, scenario in _load_scenarios(paths, defaults)]
    result = BudgetResult([], files={one.scenario.name: str(path) for path, one in scenarios})
    for path, recorded in scenarios:
        name = recorded.scenario.name
        with progress(name) as report_progress:
            _check(path, recorded, reports / name, today if update else None, update, report_progress, result)
    return result


def _check(
    path: Path,
    recorded: RecordedScenario,
    folder: Path,
    today: date | None,
    update: bool,
    report_progress: Progress,
    result: BudgetResult,
) -> None:
    """One scenario; what is found is added to `result`."""
    scenario, place = recorded.scenario, folder / FILE_NAME
    baseline = None if update else read_baseline(place)
    replays = list(replay_strategies(scenario, path.parent, report_progress))
    now = baseline_of(scenario, replays, today)
    if update:
        result.updated.extend(write_accepted(folder, now, recorded))
        baseline = read_baseline(place)
    result.budgets.extend(check_budgets(scenario, replays, now, baseline))
    result.costs.extend(_cost(scenario.name, one, now, baseline) for one in replays)
    result.budgets.extend(check_determinism(recorded, path.parent))
    if recorded.runs:
        result.sent[scenario.name] = SentCalls(read_accepted_calls(folder), recorded.kept_calls)


def _cost(scenario: str, one: ReplayedStrategy, now: Baseline, baseline: Baseline | None) -> StrategyCost:
    total, name = one.ledger.cost.total, one.strategy
    known = baseline is not None and name in baseline.strategies and not differences(baseline, now, name)
    before = baseline.strategies[name].cost_usd if known and baseline else None
    return StrategyCost(scenario, name, len(one.rows), total, before, one.ledger.error_margin, one.ledger.errors)


def _load_scenarios(paths: Sequence[Path], defaults: FileDefaults) -> list[tuple[Path, Scenario]]:
    """All scenarios, each with a name of its own. Raises InputError with the faults of all."""
    loaded: list[tuple[Path, Scenario]] = []
    faults: list[Fault] = []
    for path in paths:
        try:
            loaded.append((path, load(path, defaults=defaults)))
        except InputError as error:
            faults += error.faults
    first: dict[str, Path] = {}
    for path, scenario in loaded:
        if first.setdefault(scenario.name, path) != path:
            same = f"got '{scenario.name}', as in {first[scenario.name]}"
            expected = f"expected a unique name, as the baseline is stored under it; {same}"
            faults.append(replace(scenario.fault(("name",), expected), file=str(path)))
    if faults:
        raise InputError(list(dict.fromkeys(faults)))
    return loaded
