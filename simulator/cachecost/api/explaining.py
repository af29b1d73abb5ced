"""`explain`, `lint` and `optimize`: the avoidable cost by cause, static checks, and the cheapest legal plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from warnings import warn

from typing_extensions import Unpack

from cachecost.account.causes import causes
from cachecost.analysis.lint.finding import LintFinding
from cachecost.analysis.lint.linter import MARGIN
from cachecost.api.html import Answered, HtmlTable, paragraph
from cachecost.api.keywords import ModelOptions, RuleOptions, named_keywords
from cachecost.api.setup import (
    Source,
    StrategyLike,
    calls_in,
    comparison_setup,
    conversations_in,
    day_from,
    only_supported,
    read_source,
    setup_of,
    spec_of,
    workload_of,
)
from cachecost.base.errors import InputError
from cachecost.base.formatting import change, count_text, dollars, margin_text, percent, tokens
from cachecost.base.frames import MoneyColumn, frame_of
from cachecost.conversations.input_files import input_path
from cachecost.ledger.findings import Explanation, Finding
from cachecost.providers.hosts import AUTO_HOST
from cachecost.providers.usage import ZERO
from cachecost.simulation.engine import AS_RECORDED
from cachecost.tokens.factory import AUTO

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from cachecost.analysis.optimum.optimum import Optimum
    from cachecost.analysis.whatif.content_plan import ContentPlan

FINDING_FIELDS = (
    "code cause call since_call layer block tokens cost_usd paid_again_usd message excerpt behind fix diagnostics "
    "session session_call project agent timestamp file line alternative"
)
MOST_CALLS = 6


@dataclass(frozen=True, slots=True, repr=False)
class ExplainResult(Answered, Explanation):
    """The cost of the calls and their `findings`, whose dollars add up exactly to `avoidable` (USD)."""

    def by_cause(self) -> dict[str, Decimal]:
        """USD of each cause, most expensive first."""
        sums: dict[str, Decimal] = {}
        for finding in self.findings:
            sums[str(finding.cause)] = sums.get(str(finding.cause), ZERO) + finding.cost
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per finding: `code`, `cause`, `call` (from 1), `since_call` (the call it is compared with), `layer`,
        `block` (path in the request), `tokens` that cost more than a read, `cost_usd` that its fix nets,
        `paid_again_usd`, `message`, `excerpt`, `behind` (it shows once others are fixed), `fix`; of the call `session`,
        `session_call` (its number there), `project`, `agent`, `timestamp`, `file`, `line`."""
        from cachecost.views.explain.text import explanation_object

        return frame_of(explanation_object(self)["findings"], money, FINDING_FIELDS.split())

    def plot(self) -> Figure:
        """Avoidable USD, one bar per cause."""
        from cachecost.api.charts import ChartBar, bars

        share = {cause: percent(usd / self.cost) for cause, usd in self.by_cause().items()} if self.cost else {}
        entries = [
            ChartBar(
                causes()[cause].name,
                usd,
                dollars(usd),
                f"{share.get(cause, '')}  {count_text(len(self._findings_of(cause)), 'time')}",
            )
            for cause, usd in self.by_cause().items()
        ]
        return bars(self._answer(), entries)

    def _findings_of(self, cause: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.cause == cause]

    def _answer(self) -> str:
        share = f" ({percent(self.avoidable / self.cost)})" if self.cost else ""
        return f"{dollars(self.cost)} in {count_text(self.calls, 'call')} · {dollars(self.avoidable)} avoidable{share}"

    def _repr_html_(self) -> str:
        table = HtmlTable(("cause", "times", "tokens", "cost", "calls", "what to do"), prose=("calls", "what to do"))
        for cause, usd in self.by_cause().items():
            found = self._findings_of(cause)
            numbers = [str(one.call) for one in found]
            calls = ", ".join(numbers[:MOST_CALLS]) + (" …" if len(numbers) > MOST_CALLS else "")
            size = tokens(sum(one.tokens for one in found))
            table.add(causes()[cause].name, f"{len(found):,}", size, dollars(usd), calls, found[0].fix)
        body = table.html() if self.findings else paragraph("No avoidable cost was found.")
        margin = margin_text(self.error_margin, self.avoidable * Decimal(str(self.error_margin)))
        sure = (f"tokens: {self.token_source} {margin}".rstrip(), *self.flips)
        return paragraph(self._answer(), strong=True) + body + "".join(map(paragraph, sure))


@named_keywords(ModelOptions)
def explain(
    source: Source, strategy: StrategyLike | None = None, *, assumptions: bool = False, **options: Unpack[ModelOptions]
) -> ExplainResult:
    """The avoidable cost of a recording: each cause, where it occurs, and its dollars, which add up exactly.

    A log is taken as it was sent, or as `strategy` would send it; a conversation needs a strategy. Where a log has
    bills they are explained: `necessary` + `avoidable` + `not_explained_usd` = `billed`. `assumptions` repeats the
    analysis under the other assumptions about open rules. Calls to explicit cache objects are left out, with a warning.
    Raises InputError, CannotEvaluate.
    """
    from cachecost.analysis.bill.explanation import explain_recording
    from cachecost.analysis.bill.found_sessions import prices_under
    from cachecost.analysis.explain.explaining import explain_workload

    explanation = _explain_sessions(source, options) if strategy is None else None
    if explanation is None:
        if strategy is None:
            workload = only_supported(workload_of(source, **options), "explain")
            explanation = explain_recording(workload, prices_under(workload.setup), assumptions)
        else:
            explanation = explain_workload(workload_of(source, spec_of(strategy), **options), assumptions)
    return ExplainResult(**{field.name: getattr(explanation, field.name) for field in fields(explanation)})


def _explain_sessions(source: Source, options: ModelOptions) -> Explanation | None:
    """The explanation of an agent's session file; None for any other source, or with another model or counter."""
    from cachecost.analysis.bill.explanation import explain_account
    from cachecost.analysis.bill.found_sessions import account_of_found
    from cachecost.sessions.reading import SessionReading

    if not isinstance(source, str | Path) or not input_path(source).is_file() or options.get("model"):
        return None
    found = SessionReading(None).read_all([input_path(source)])
    if not found.sessions:
        return None
    if found.skipped:
        raise InputError(found.skipped)
    rules = {name: value for name, value in options.items() if name in RuleOptions.__annotations__}
    return explain_account(account_of_found(found, setup_of(**cast("RuleOptions", rules))))


class LintResult(list[LintFinding]):
    """The findings, most severe first."""

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per finding: `code`, `name`, `severity` (error, warning, note), `path` in the `request` (its number),
        `call` (the first with this finding; NA outside a log), `calls` (their number), `message`, `why`, `fix`,
        `source` (of the rule), `tokens` concerned (NA: unknown), `offset` and `excerpt` in the text; `session`, `file`
        and `line` of that call; `bill` ("confirmed" where its bill shows it), and `explains_as`, the code under which
        `explain` prices it."""
        from cachecost.views.lint import FIELDS, lint_object

        return frame_of(lint_object(self, len(self))["findings"], money, FIELDS)

    def plot(self) -> Figure:
        """The number of findings, one bar per code."""
        from cachecost.api.charts import ChartBar, bars
        from cachecost.views.charts.palette import CLASS_COLOURS

        classes = {"error": "input", "warning": "write_5m", "note": "output"}
        counts = Counter((one.code, one.name, one.severity) for one in self)
        entries = [
            ChartBar(f"{code}  {name}", Decimal(found), str(found), severity, colour=CLASS_COLOURS[classes[severity]])
            for (code, name, severity), found in counts.items()
        ]
        return bars(self._answer(), entries)

    def _answer(self) -> str:
        counts = Counter(one.severity for one in self)
        shown = [count_text(counts[kind], kind) for kind in ("error", "warning", "note") if counts[kind]]
        return ", ".join(shown) or "No findings"

    def _repr_html_(self) -> str:
        table = HtmlTable(("code", "where", "tokens", "what", "what to do"), prose=("where", "what", "what to do"))
        for one in self:
            table.add(one.code, one.path, tokens(one.tokens), one.message, one.fix, strong=one.severity == "error")
        return paragraph(self._answer(), strong=True) + (table.html() if self else "")


@named_keywords()
def lint(
    request: Mapping[str, Any] | Source,
    next_request: Mapping[str, Any] | None = None,
    *,
    host: str = AUTO_HOST,
    as_of: date | str | None = None,
    tokens: str = AUTO,
    margin: int = MARGIN,
) -> LintResult:
    """Check a Messages API body, two consecutive bodies, or the calls of a log.

    `as_of` picks the rules, `tokens` the token counter. `margin`: warn if fewer than this many further blocks would put
    the last breakpoint out of reach. Raises InputError for an invalid body, CannotEvaluate.
    """
    from cachecost.analysis.lint import RequestLoader, lint_log
    from cachecost.analysis.lint import lint as lint_bodies
    from cachecost.providers.rules import RuleBook

    day = day_from(as_of)
    if isinstance(request, Mapping):
        return LintResult(lint_bodies(request, next_request, host=host, as_of=day, tokens=tokens, margin=margin))
    recorded, loader = read_source(request), RequestLoader(RuleBook(as_of=day), host, tokens)
    return LintResult(lint_log(calls_in(recorded), recorded.name, loader, margin).findings)


PLAN = "this plan"
MOST_BARS, MOST_ROWS = 8, 12
DISTANT = 3
"""Strategies above this multiple of the lower bound are not drawn: their bars would dwarf all others."""


@dataclass(frozen=True, slots=True, repr=False)
class OptimizeResult:
    """The cheapest plan that was found (`optimum`), its cost, and the lower bound.

    The plan has breakpoints, TTLs and extra calls. Where caches find by themselves what was sent before, it has
    `changes` of the content, and the lower bound is that of the requests as it sends them.
    """

    optimum: Optimum | ContentPlan
    answer: str
    """What to do, and what it saves."""
    first: str
    """How the calls were sent: "as recorded", or the strategy of a conversation."""
    others: tuple[tuple[str, Decimal, int], ...]
    """The cost of the strategies that were compared (name, USD, refused calls)."""
    bound: str
    remarks: tuple[str, ...]

    @property
    def cost(self) -> Decimal:
        """USD of the plan."""
        return self.optimum.usd

    @property
    def lower_bound(self) -> Decimal:
        """The lower bound in USD: provably, no legal plan costs less."""
        return self.optimum.lower_bound_usd

    @property
    def is_optimal(self) -> bool:
        """Whether the plan is provably optimal."""
        return self.optimum.is_optimal

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row per strategy, cheapest first: `cost_usd`, `above_lower_bound` (ratio to the lower bound), `refused`
        (calls that the API would refuse; if there are any, its dollars have no meaning)."""
        rows = (
            {"strategy": name, "cost_usd": usd, "above_lower_bound": change(usd, self.lower_bound), "refused": refused}
            for name, usd, refused in self._costs()
        )
        return frame_of(rows, money, index="strategy")

    def plot(self) -> Figure:
        """USD of the plan, the recording and the best presets, and the lower bound."""
        from cachecost.api.charts import ChartBar, bars

        entries = []
        for name, usd in self._distinct():
            if usd <= DISTANT * self.lower_bound:
                above = f"{percent(change(usd, self.lower_bound), signed=True)} above the lower bound"
                entries.append(ChartBar(name, usd, dollars(usd), above, name == PLAN))
        return bars(f"{dollars(self.cost)}; {self.bound}", entries[:MOST_BARS], ("lower bound", self.lower_bound))

    def __repr__(self) -> str:
        return f"<OptimizeResult {self.answer}>"

    def _repr_html_(self) -> str:
        table = HtmlTable(("strategy", "cost", "above the lower bound"))
        for name, usd in self._distinct()[:MOST_ROWS]:
            over = percent(change(usd, self.lower_bound), signed=True)
            table.add(name, dollars(usd), over, strong=name == PLAN)
        table.add("lower bound", dollars(self.lower_bound), "")
        below = []
        if rest := self._distinct()[MOST_ROWS:]:
            number = "1 strategy" if len(rest) == 1 else f"{len(rest):,} strategies"
            below.append(f"{number} up to {dollars(rest[-1][1])} not shown; frame() has all")
        return paragraph(self.answer, strong=True) + table.html() + "".join(map(paragraph, (*below, *self.remarks)))

    def _costs(self) -> list[tuple[str, Decimal, int]]:
        return sorted([(PLAN, self.cost, 0), *self.others], key=lambda row: (row[2] > 0, row[1], row[0] != PLAN))

    def _distinct(self) -> list[tuple[str, Decimal]]:
        """Strategies of the same cost as one entry; strategies with refused calls are left out."""
        groups: dict[Decimal, list[str]] = {}
        own = [(name, usd) for name, usd, _ in self._costs() if name in (PLAN, self.first)]
        for name, usd, refused in self._costs():
            if not refused and (name, usd) not in own:
                groups.setdefault(usd, []).append(name)
        rows = [
            ((names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} others"), usd)
            for usd, names in groups.items()
        ] + own
        return sorted(rows, key=lambda row: (row[0] != PLAN, row[1]))


@named_keywords(ModelOptions)
def optimize(source: Source, *, pings: bool = True, **options: Unpack[ModelOptions]) -> OptimizeResult:
    """The cheapest legal breakpoints, TTLs and, with `pings`, extra calls, for the calls of a recording.

    The calls of a log are taken without their breakpoints, those of a conversation as "none" sends them. Where all
    caches find by themselves what was sent before (OpenAI, DeepSeek …), the plan has changes of the content. Else calls
    whose cache has no lookback breakpoints are left out, and a loss that a bill shows and nothing explains is held in
    every plan, with a warning. Raises InputError, CannotEvaluate.
    """
    from cachecost.analysis.bill.explanation import hold_losses
    from cachecost.analysis.optimum.optimum import optimum_of
    from cachecost.analysis.whatif.content_plan import plan_content
    from cachecost.simulation.workload import plan_workload
    from cachecost.views.optimum.content import bound_words, content_answer, token_words
    from cachecost.views.optimum.text import answer, facts

    recording, first = read_source(source), AS_RECORDED
    if calls_in(recording):
        workload = workload_of(recording, **options)
    else:
        first = "none"
        workload = plan_workload(first, conversations_in(recording), comparison_setup(recording, **options))
    if workload.finds_without_lookback:
        plan = plan_content(workload)
        saves = (f"{one.name}: {one.does}; saves {dollars(one.saving)}" for one in plan.changes)
        remarks = (*saves, f"tokens: {token_words(plan)}")
        return OptimizeResult(plan, content_answer(plan), first, ((first, plan.now, 0),), bound_words(plan), remarks)
    workload, held = hold_losses(only_supported(workload, "optimize"))
    if held:
        warn(f"calls whose bill shows a loss that nothing explains, held in every plan: {len(held):,}", stacklevel=3)
    found = optimum_of(workload.calls, workload.setup, pings, first=first)
    others = [(one.name, one.usd, one.refused) for one in found.presets]
    if found.recorded_usd is not None:
        others.append((first, found.recorded_usd, 0))
    bound = f"no legal plan costs less than {dollars(found.lower_bound_usd)}"
    remarks = tuple(f"{label}: {sentence}" for label, sentence in facts(found) if label in ("tokens", "rules"))
    return OptimizeResult(found, " ".join(answer(found)), first, tuple(others), bound, remarks)
