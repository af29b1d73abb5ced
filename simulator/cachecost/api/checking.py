"""`check`: scenarios against their budgets and baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from cachecost.api.comparing import compare
from cachecost.api.html import HtmlTable, paragraph
from cachecost.api.projection import DAYS, Monthly
from cachecost.base.errors import Fault, InputError
from cachecost.base.formatting import count_text, percent

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cachecost.budgets.check import BudgetResult
    from cachecost.budgets.verdicts import State, Verdict

COLUMNS = ("scenario", "strategy", "budget", "limit", "actual", "verdict", "message")
SIGNS: dict[str, str] = {"pass": "✓", "not_comparable": "?", "fail": "✗"}


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult:
    """The verdict on every budget, in the order of the scenario files."""

    result: BudgetResult

    @property
    def budgets(self) -> list[Verdict]:
        """The verdicts: scenario, strategy, budget, limit, actual, verdict and message."""
        return self.result.budgets

    @property
    def verdict(self) -> State:
        """The overall verdict: "fail", "not_comparable" or "pass"."""
        return self.result.verdict

    @property
    def failures(self) -> list[Verdict]:
        """The budgets that failed."""
        return [one for one in self.budgets if one.verdict == "fail"]

    def frame(self) -> pd.DataFrame:
        """One row per budget: `scenario`, `strategy`, `budget` (its key), `limit` and `actual` (Decimal: USD, or a
        share like 0.05; `actual` is None if unknown), `verdict`, `message`."""
        import pandas as pd

        rows = [{name: getattr(one, name) for name in COLUMNS} for one in self.budgets]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def plot(self) -> Figure:
        """Each figure as a share of its limit; failed budgets are highlighted."""
        from cachecost.api.charts import ChartBar, bars
        from cachecost.views.charts.palette import CLASS_COLOURS, LINE_COLOURS

        entries = [
            ChartBar(
                f"{one.strategy} · {one.budget}",
                max(one.actual / one.limit, Decimal(0)),
                percent(one.actual / one.limit),
                "of the limit",
                colour=CLASS_COLOURS["input"] if one.verdict == "fail" else LINE_COLOURS[0],
            )
            for one in self.budgets
            if one.limit and one.actual is not None
        ]
        return bars(self._answer(), entries, ("limit", Decimal(1)))

    def monthly(self, sessions_per_day: Decimal | float, days: int = DAYS) -> dict[str, Monthly]:
        """By scenario: USD per month of each strategy. Runs the scenarios again."""
        found = {name: compare(path, sets={"variants": []}) for name, path in self.result.files.items()}
        return {name: result.monthly(sessions_per_day, days) for name, result in found.items()}

    def _answer(self) -> str:
        if self.failures:
            return f"{count_text(len(self.failures), 'budget')} of {len(self.budgets):,} failed"
        return f"{count_text(len(self.budgets), 'budget')}: {self.verdict.replace('_', ' ')}"

    def __repr__(self) -> str:
        return f"<CheckResult {self._answer()}>"

    def _repr_html_(self) -> str:
        table = HtmlTable(("", "scenario", "budget", "what"), prose=("scenario", "budget", "what"))
        for one in sorted(self.budgets, key=lambda one: tuple(SIGNS).index(one.verdict), reverse=True):
            table.add(SIGNS[one.verdict], one.scenario, one.budget, one.message, strong=one.verdict == "fail")
        return paragraph(self._answer(), strong=True) + table.html()


def check(scenarios: str | Path | Sequence[str | Path], *, reports: str | Path = "reports") -> CheckResult:
    """Check one or more scenarios against their budgets, and their baselines in `reports`. Writes nothing.

    Raises InputError, CannotEvaluate.
    """
    from cachecost.budgets.check import CheckOptions, check_scenarios
    from cachecost.live.agent_runs.recorder import AgentRecorder

    given = [scenarios] if isinstance(scenarios, str | Path) else scenarios
    paths = tuple(Path(path) for path in given)
    if missing := [path for path in paths if not path.is_file()]:
        raise InputError([Fault(str(path), "expected a file; there is none") for path in missing])
    with AgentRecorder(compares=True) as recorder:
        return CheckResult(check_scenarios(paths, CheckOptions(Path(reports), record=recorder.record)))
