"""The budgets of a scenario, and the message of a failed test of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cachecost.budgets.determinism import NAME as DETERMINISTIC
from cachecost.scenario.models import AS_RECORDED, Scenario
from cachecost.views.check.json_output import check_object
from cachecost.views.check.text import text_lines

if TYPE_CHECKING:
    from cachecost.budgets.check import BudgetResult, Verdict

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
