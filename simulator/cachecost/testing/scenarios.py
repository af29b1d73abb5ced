"""Scenarios as tests: a file of tests each, an item a budget, with the message of `check` where one fails."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cachecost.base.atomic_files import is_yaml
from cachecost.base.errors import CannotEvaluate, InputError
from cachecost.base.extras import NotInstalled
from cachecost.base.formatting import count_text
from cachecost.base.structs import replace
from cachecost.budgets.determinism import NAME as DETERMINISTIC
from cachecost.configuration.discovery import found_files
from cachecost.configuration.project_settings import read_settings, reports_folder, scenario_defaults_of, scenario_files
from cachecost.scenario import load
from cachecost.scenario.loading import FileDefaults
from cachecost.scenario.models import AS_RECORDED, Scenario
from cachecost.views.check.json_output import check_object
from cachecost.views.check.text import text_lines

if TYPE_CHECKING:
    from cachecost.budgets.check import BudgetResult
    from cachecost.budgets.verdicts import Verdict


NO_BUDGET = "runs"


@dataclass(frozen=True, slots=True)
class Guard:
    """One limit of a scenario; `limit` "" is a scenario without any, which only has to run."""

    limit: str
    strategy: str | None

    @property
    def name(self) -> str:
        """As the test is called."""
        if not self.limit:
            return NO_BUDGET
        return self.limit if self.strategy is None else f"{self.strategy}: {self.limit}"

    def is_about(self, limit: str, strategy: str) -> bool:
        """Whether a verdict on `limit` of `strategy` is one on this."""
        return limit == self.limit and self.strategy in (None, strategy)


def guards(scenario: Scenario) -> list[Guard]:
    """Every limit once, in the file's order."""
    found = [Guard(limit, one.strategy) for one in scenario.budget for limit in one.limits]
    if scenario.conversation.command is not None and scenario.conversation.runs > 1:
        found.append(Guard(DETERMINISTIC, AS_RECORDED))
    return list(dict.fromkeys(found)) or [Guard("", None)]


def failure(result: BudgetResult, verdicts: Sequence[Verdict], path: str) -> str:
    """What `check` says if one of these verdicts is not a pass, else "". `path` is the scenario's, for people."""
    broken = [one for one in verdicts if one.verdict != "pass"]
    if not broken:
        return ""
    shortened_result = replace(result, budgets=broken, costs=[], files=dict.fromkeys(result.files, path))
    return "\n".join(text_lines(check_object(shortened_result)))


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """Which scenarios are tested, against the baselines in which folder, and whether these are written first."""

    scenarios: tuple[Path, ...]
    reports: Path
    update: bool
    today: date
    header: str
    defaults: FileDefaults


def read_options(config: pytest.Config, usual: str, usual_reports: str) -> ScenarioOptions:
    """What the options ask for. A folder that is given is looked for from where pytest was called, the `usual` ones
    beside the project's configuration, unless its settings file names others. Raises UsageError.
    """
    path_option = config.getoption("cachecost")
    try:
        settings = read_settings(found_files(config.rootpath))
        listed = tuple(path.resolve() for path in scenario_files(settings))
        defaults = scenario_defaults_of(settings, os.environ)
        usual_place = reports_folder(settings) or config.rootpath / usual_reports
    except InputError as error:
        raise pytest.UsageError(str(error)) from None
    named = listed if path_option == usual else ()
    folder = config.rootpath / usual if path_option == usual else config.invocation_params.dir / path_option
    reports = config.getoption("cachecost_reports")
    place = config.invocation_params.dir / reports if reports else usual_place
    is_scenario = is_yaml(folder) and folder.is_file()
    files = sorted(folder.glob("*.yaml")) if folder.is_dir() else [folder] * is_scenario
    found = named or tuple(path.resolve() for path in files)
    if not found:
        raise pytest.UsageError(
            f"--cachecost={path_option}: expected a scenario or a folder of them; there is none "
            f"(another path after --cachecost? write --cachecost={usual})"
        )
    where = f"{_short_path(settings.path)} (scenarios)" if named and settings.path else _short_path(folder)
    update = bool(config.getoption("cachecost_update"))
    words = f"{count_text(len(found), 'scenario')} in {where}, baselines in {_short_path(place)}"
    today = date.today()  # noqa: DTZ011 - the user's own day, as `check --update` takes it
    header = f"cachecost: {words}{', rewritten' if update else ''}"
    return ScenarioOptions(found, place, update, today, header, defaults)


def _short_path(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


class ScenarioFile(pytest.File):
    """The budgets of a scenario; it is simulated once, when the first of them is tested. Its maker sets `asked`."""

    asked: ScenarioOptions

    def collect(self) -> Iterator[pytest.Item]:
        """An item a budget, in the file's order; one for a scenario without any."""
        try:
            scenario = load(Path(_short_path(self.path)), defaults=self.asked.defaults)
        except InputError as error:
            raise self.CollectError(str(error)) from None
        for guard in guards(scenario):
            yield BudgetItem.from_parent(self, name=guard.name, guard=guard)

    def check_result(self) -> BudgetResult:
        """The verdict on every budget of the scenario; it is simulated once."""
        from cachecost.budgets.check import CheckOptions, check_scenarios
        from cachecost.live.agent_runs.recorder import AgentRecorder

        if not hasattr(self, "_checked"):
            asked = self.asked
            with AgentRecorder(compares=True) as recorder:
                options = CheckOptions(
                    asked.reports, asked.update, asked.today, defaults=asked.defaults, record=recorder.record
                )
                self._checked = check_scenarios([self.path], options)
        return self._checked


class BudgetBroken(Exception):
    """A budget does not hold, or could not be judged; the text is the verdicts' sentences."""


class BudgetItem(pytest.Item):
    """One budget of a scenario."""

    def __init__(self, *, guard: Guard, **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.guard = guard

    def runtest(self) -> None:
        """Fails with the sentences of the verdict if the budget is exceeded or could not be judged."""
        parent = self.parent
        assert isinstance(parent, ScenarioFile)
        result = parent.check_result()
        mine = [one for one in result.budgets if self.guard.is_about(one.budget, one.strategy)]
        for one in mine:
            self.user_properties.append((f"{one.strategy}: {one.budget}", one.message))
        if words := failure(result, mine, _short_path(self.path)):
            raise BudgetBroken(words)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        """Sentences; a stack trace only for an internal error."""
        error = excinfo.value
        if isinstance(error, (BudgetBroken, InputError, CannotEvaluate, NotInstalled)):
            return str(error)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.path.stem}: {self.name}"
