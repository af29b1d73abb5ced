"""`validate`: predicted against billed, call by call; `check`: scenarios against their budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from typing_extensions import Unpack

from cachecost.api.html import DAYS, Answered, HtmlTable, Monthly, paragraph
from cachecost.api.keywords import RuleOptions, named_keywords
from cachecost.api.setup import LogSource, check_choice, check_files, compare, path_of, setup_of
from cachecost.base.formatting import count_text, dollars, percent
from cachecost.base.frames import MoneyColumn, frame_of
from cachecost.base.structs import replace
from cachecost.ledger.results import AssumptionSupport, Fidelity
from cachecost.tokens.factory import TEXT_COUNTERS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cachecost.budgets.check import BudgetResult
    from cachecost.budgets.verdicts import State, Verdict
    from cachecost.views.fidelity.scores import Score


SIGNS: dict[str, str] = {"pass": "✓", "not_comparable": "?", "fail": "✗"}


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult(Answered):
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

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per budget: `scenario`, `strategy`, `budget` (its key), `limit` and `actual` (USD, or a share like
        0.05; `actual` is NaN if unknown), `verdict`, `message`; `file`, `line` and `column` of the budget, and the
        `changes` that have moved its figure."""
        from cachecost.views.check.json_output import check_object

        columns = "scenario strategy budget limit actual verdict message file line column changes"
        return frame_of(check_object(self.result)["budgets"], money, columns.split())

    def plot(self) -> Figure:
        """Each figure as a share of its limit; failed budgets are highlighted."""
        from cachecost.api.charts import ChartBar, bars
        from cachecost.views.charts.palette import CLASS_COLOURS, LINE_COLOURS

        entries = []
        for one in self.budgets:
            if one.limit and one.actual is not None:
                share = one.actual / one.limit
                colour = CLASS_COLOURS["input"] if one.verdict == "fail" else LINE_COLOURS[0]
                bar = max(share, Decimal(0))
                name = f"{one.strategy} · {one.budget}"
                entries.append(ChartBar(name, bar, percent(share), "of the limit", colour=colour))
        return bars(self._answer(), entries, ("limit", Decimal(1)))

    def monthly(self, sessions_per_day: Decimal | float, days: int = DAYS) -> dict[str, Monthly]:
        """By scenario: USD per month of each strategy. Runs the scenarios again."""
        found = {name: compare(path, sets={"variants": []}) for name, path in self.result.files.items()}
        return {name: result.monthly(sessions_per_day, days) for name, result in found.items()}

    def _answer(self) -> str:
        if self.failures:
            return f"{count_text(len(self.failures), 'budget')} of {len(self.budgets):,} failed"
        return f"{count_text(len(self.budgets), 'budget')}: {self.verdict.replace('_', ' ')}"

    def _repr_html_(self) -> str:
        table = HtmlTable(("", "scenario", "budget", "what"), prose=("scenario", "budget", "what"))
        for one in sorted(self.budgets, key=lambda one: tuple(SIGNS).index(one.verdict), reverse=True):
            table.add(SIGNS[one.verdict], one.scenario, one.budget, one.message, strong=one.verdict == "fail")
        return paragraph(self._answer(), strong=True) + table.html()


@named_keywords()
def check(scenarios: str | Path | Sequence[str | Path], *, reports: str | Path = "reports") -> CheckResult:
    """Check one or more scenarios against their budgets, and their baselines in `reports`. Writes nothing.

    Raises InputError, CannotEvaluate.
    """
    from cachecost.budgets.check import CheckOptions, check_scenarios
    from cachecost.live.agent_runs.recorder import AgentRecorder

    given = [scenarios] if isinstance(scenarios, str | Path) else scenarios
    paths = tuple(Path(path) for path in given)
    check_files(paths)
    with AgentRecorder(compares=True) as recorder:
        return CheckResult(check_scenarios(paths, CheckOptions(Path(reports), record=recorder.record)))


HEADS = ("calls", "hits exact", "cold starts exact", "unknown", "tokens off, median", "95th", "predicted", "billed")


@dataclass(frozen=True, slots=True, repr=False)
class ValidationResult(Answered):
    """Each compared call (`fidelity.judgements`), and what could not be compared (`fidelity.not_judged`)."""

    fidelity: Fidelity

    @property
    def score(self) -> Score:
        """The score of all calls whose requests are known, else of the steps of transcripts: the numbers of predictable
        hits and cold starts, and of exact ones; errors as shares of the billed input tokens; input dollars (Decimal).
        """
        from cachecost.views.fidelity.scores import Score

        return Score("all", self.fidelity.main)

    @property
    def assumptions(self) -> list[AssumptionSupport]:
        """The number of exact calls under each assumption, if `assumptions` was True."""
        return self.fidelity.readings

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per call: `source`, `call`, `line`, `model`; `kind` (hit, cold, unknown, range), `exact`; the usage
        that was `predicted.…` and `billed.…`; `reason` and `cause` if it is not exact; `session`, `project`, `agent`,
        `timestamp`; `range.…` where hits are not certain; `predicted_usd` and `billed_usd` of the input; `token_error`
        (share of the billed input tokens)."""
        from cachecost.views.fidelity.text import judgement_row

        calls = self.fidelity.judgements
        return frame_of(({**judgement_row(one), "token_error": one.token_error} for one in calls), money)

    def plot(self) -> Figure:
        """One point per call: the billed length of its prompt, and the error of the predicted length."""
        from cachecost.api.charts import as_chart
        from cachecost.views.fidelity.page import residual_figure

        return as_chart(residual_figure(self.fidelity, self._answer()))

    def _answer(self) -> str:
        score = self.score
        hits = f"{score.exact_hits:,} of {score.hits:,} predictable hits exact"
        return f"{hits}; prompt lengths {percent(score.median)} off at the median, {percent(score.p95)} at the 95th"

    def _repr_html_(self) -> str:
        from cachecost.views.fidelity.scores import GROUPS, scores

        table = HtmlTable(("model", *HEADS))
        for each in (self.score, *scores(self.fidelity, GROUPS["model"])):
            exact = (f"{each.exact_hits:,} of {each.hits:,}", f"{each.exact_cold:,} of {each.cold:,}")
            errors = (percent(each.median), percent(each.p95))
            usd = (dollars(each.predicted_usd), dollars(each.billed_usd))
            cells = (each.name, f"{each.calls:,}", *exact, f"{each.unknown:,}", *errors, *usd)
            table.add(*cells, strong=each.name == "all")
        left = len(self.fidelity.not_judged)
        words = [f"tokens: {self.fidelity.token_source}", *([f"{left:,} calls could not be compared"] if left else [])]
        return table.html() + "".join(map(paragraph, words))


@named_keywords(RuleOptions)
def validate(
    *logs: LogSource,
    assumptions: bool = False,
    calibrated: bool = True,
    tokens: Literal["ctok", "tiktoken"] | None = None,
    **options: Unpack[RuleOptions],
) -> ValidationResult:
    """Predict each call of `logs`, and compare it with its bill. Each file is a cache of its own.

    Token counts are calibrated on the bills of other calls, never on the call's own; without `calibrated`, on no bill.
    `assumptions` counts the exact calls under each assumption about open rules. `tokens` is the token counter: ctok
    (the default, if installed) or tiktoken. Raises InputError, CannotEvaluate.
    """
    from cachecost.analysis.fidelity.validation import Validation

    if tokens is not None:
        check_choice("tokens", tokens, TEXT_COUNTERS)
    paths = [path_of(log) for log in logs]
    check_files(paths)
    validation = Validation(paths, setup_of(**options), tokens, calibrated)
    fidelity = validation.fidelity()
    return ValidationResult(replace(fidelity, readings=list(validation.readings())) if assumptions else fidelity)
