"""`explain`: the avoidable cost, by cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, cast

from typing_extensions import Unpack

from cachecost.account.causes import causes
from cachecost.api.html import HtmlTable, paragraph
from cachecost.api.setup import (
    ModelOptions,
    RuleOptions,
    Source,
    StrategyLike,
    only_supported,
    setup_of,
    spec_of,
    workload_of,
)
from cachecost.base.errors import InputError
from cachecost.base.formatting import count_text, dollars, margin_text, percent, tokens
from cachecost.conversations.input_files import input_path
from cachecost.ledger.findings import Explanation, Finding
from cachecost.providers.usage import ZERO

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = ("code", "cause", "call", "since", "layer", "block", "tokens", "cost_usd", "message", "fix")
PLACE = ("session", "session_call", "project", "agent", "timestamp", "file", "line")
MOST_CALLS = 6
RULE_OPTIONS = ("as_of", "host", "rules", "prices")


@dataclass(frozen=True, slots=True, repr=False)
class ExplainResult(Explanation):
    """The cost of the calls and their `findings`, whose dollars add up exactly to `avoidable` (USD)."""

    def by_cause(self) -> dict[str, Decimal]:
        """USD of each cause, most expensive first."""
        sums: dict[str, Decimal] = {}
        for finding in self.findings:
            sums[str(finding.cause)] = sums.get(str(finding.cause), ZERO) + finding.cost
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def frame(self) -> pd.DataFrame:
        """One row per finding: `code`, `cause`, `call` (from 1), `since` (the call it is compared with), `layer`,
        `block` (path in the request), `tokens` that cost more than a read, `cost_usd` (Decimal), `message`, `fix`; of
        the call `session`, `session_call` (its number there), `project`, `agent`, `timestamp`, `file`, `line`."""
        import pandas as pd

        return pd.DataFrame([_row(finding) for finding in self.findings], columns=[*COLUMNS, *PLACE])

    def plot(self) -> Figure:
        """Avoidable USD, one bar per cause."""
        from cachecost.api.charts import ChartBar, bars

        share = {cause: percent(usd / self.cost) for cause, usd in self.by_cause().items()} if self.cost else {}
        entries = [
            ChartBar(causes()[cause].name, usd, dollars(usd), f"{share.get(cause, '')}  {self._calls(cause)}")
            for cause, usd in self.by_cause().items()
        ]
        return bars(self._answer(), entries)

    def _calls(self, cause: str) -> str:
        return count_text(len(self._of(cause)), "time")

    def _of(self, cause: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.cause == cause]

    def _answer(self) -> str:
        share = f" ({percent(self.avoidable / self.cost)})" if self.cost else ""
        return f"{dollars(self.cost)} in {count_text(self.calls, 'call')} · {dollars(self.avoidable)} avoidable{share}"

    def __repr__(self) -> str:
        return f"<ExplainResult {self._answer()}>"

    def _repr_html_(self) -> str:
        table = HtmlTable(("cause", "times", "tokens", "cost", "calls", "what to do"), prose=("calls", "what to do"))
        for cause, usd in self.by_cause().items():
            found = self._of(cause)
            size, calls = tokens(sum(one.tokens for one in found)), _calls(found)
            table.add(causes()[cause].name, f"{len(found):,}", size, dollars(usd), calls, found[0].fix)
        body = table.html() if self.findings else paragraph("No avoidable cost was found.")
        return paragraph(self._answer(), strong=True) + body + "".join(map(paragraph, self._sure()))

    def _sure(self) -> Iterator[str]:
        error_margin = margin_text(self.error_margin, self.avoidable * Decimal(str(self.error_margin)))
        yield f"tokens: {self.token_source} {error_margin}".rstrip()
        yield from self.flips


def explain(
    source: Source, strategy: StrategyLike | None = None, *, assumptions: bool = False, **options: Unpack[ModelOptions]
) -> ExplainResult:
    """The avoidable cost of a recording: each cause, where it occurs, and its dollars, which add up exactly.

    A log is taken as it was sent, or as `strategy` would send it; a conversation needs a strategy. Where a log has
    bills they are explained: `necessary` + `avoidable` + `not_explained_usd` = `billed`. `assumptions` repeats the
    analysis under the other assumptions about open rules. Calls whose cache has no lookback breakpoints are left out,
    with a warning. Raises InputError, CannotEvaluate.
    """
    from cachecost.analysis.bill.explanation import explain_recording
    from cachecost.analysis.bill.found_sessions import prices_under
    from cachecost.analysis.explain.explaining import explain_workload

    explanation = _of_sessions(source, options) if strategy is None else None
    if explanation is None:
        if strategy is None:
            workload = only_supported(workload_of(source, **options), "explain")
            explanation = explain_recording(workload, prices_under(workload.setup), assumptions)
        else:
            explanation = explain_workload(workload_of(source, spec_of(strategy), **options), assumptions)
    return ExplainResult(**{field.name: getattr(explanation, field.name) for field in fields(explanation)})


def _of_sessions(source: Source, options: ModelOptions) -> Explanation | None:
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
    rules = {name: value for name, value in options.items() if name in RULE_OPTIONS}
    return explain_account(account_of_found(found, setup_of(**cast("RuleOptions", rules))))


def _calls(found: list[Finding]) -> str:
    numbers = [str(one.call) for one in found]
    return ", ".join(numbers[:MOST_CALLS]) + (" …" if len(numbers) > MOST_CALLS else "")


def _row(one: Finding) -> dict[str, object]:
    row: dict[str, object] = {name: getattr(one, name) for name in (*COLUMNS, *PLACE) if name != "cost_usd"}
    return {**row, "cause": str(one.cause), "layer": str(one.layer), "cost_usd": one.cost}
