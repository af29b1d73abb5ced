"""Budgets: what strategies may cost, what they cost at the last accepted state, and the verdict.

A verdict is about one budget of one strategy. Dollars are compared exactly: equal to the limit passes.
Under other prices, rules, model or day a baseline says nothing about the prompts, and so does a figure
that leaves out refused calls: both are *not comparable*, which is no pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import count
from typing import Any, Literal

from cachecost.baseline import Baseline, differences, figures_of
from cachecost.ledger import ZERO, Ledger, RunResult
from cachecost.scenario.models import Budget, Scenario
from cachecost.views.numbers import counted, dollars, exact, exact_dollars, percent

State = Literal["pass", "fail", "not_comparable"]
EXIT_CODES: Mapping[State, int] = {"pass": 0, "not_comparable": 3, "fail": 1}
RANKS: Sequence[State] = ("fail", "not_comparable", "pass")
"""What broke is told first."""
EXACT_DIGITS = 200
"""Enough for any sum of dollars: nothing is rounded before it is compared."""
MARKS: Mapping[State, str] = {"pass": "✓", "not_comparable": "?", "fail": "✗"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one budget. `limit` and `actual` are exact decimals (dollars, or a share such as
    0.05), `actual` None where it cannot be known; `message` is one sentence."""

    scenario: str
    strategy: str
    budget: str
    limit: Decimal
    actual: Decimal | None
    verdict: State
    message: str


def check(scenario: Scenario, result: RunResult, baseline: Baseline | None) -> list[Verdict]:
    """The verdict on each budget of `scenario`, for the strategy it names, else for each; in the file's order.

    Judged are the figures of the scenario as written; its variants are other questions.
    """
    return [verdict for budget in scenario.budget for verdict in _verdicts(budget, result, baseline)]


def _verdicts(budget: Budget, result: RunResult, baseline: Baseline | None) -> Iterator[Verdict]:
    ledgers = [ledger for ledger in result.main.ledgers if budget.strategy in (None, ledger.strategy)]
    if not ledgers:
        raise ValueError(f"budget.strategy={budget.strategy!r}: the result has no such strategy")
    for ledger in ledgers:
        judged = _Judged(result, ledger)
        if budget.max_cost_usd is not None:
            yield judged.cost(budget.max_cost_usd)
        if budget.max_regression is not None:
            yield judged.regression(budget.max_regression, baseline)


@dataclass(frozen=True, slots=True)
class _Judged:
    """One strategy's figures, held against limits."""

    result: RunResult
    ledger: Ledger

    def cost(self, limit: Decimal) -> Verdict:
        total = self.ledger.cost.total
        if why := self._incomplete():
            return self._verdict("max_cost_usd", limit, None, "not_comparable", why)
        told = (exact_dollars if dollars(total) == dollars(limit) else dollars)(total)
        if total <= limit:
            message = f"costs {told}; the limit is {exact_dollars(limit)}."
            return self._verdict("max_cost_usd", limit, total, "pass", message)
        message = f"costs {told}, {dollars(total - limit)} more than the limit of {exact_dollars(limit)}."
        return self._verdict("max_cost_usd", limit, total, "fail", message)

    def regression(self, limit: Decimal, baseline: Baseline | None) -> Verdict:
        name = "max_regression"
        total = self.ledger.cost.total
        before = self._before(baseline)
        if isinstance(before, str):
            return self._verdict(name, limit, None, "not_comparable", before)
        with localcontext(prec=EXACT_DIGITS):
            broken = total - before > before * limit
            change = total / before - 1 if before else (None if total else ZERO)
        message = f"costs {_against(total, before, change, limit)}; the limit is {exact(limit * 100)} %."
        return self._verdict(name, limit, change, "fail" if broken else "pass", message)

    def _incomplete(self) -> str:
        """Why the sum of these calls is not what the conversation costs; "" if it is."""
        rows, errors = self.ledger.rows, self.ledger.errors
        if not rows:
            return "makes no call, so it has no cost."
        if not errors:
            return ""
        first = next(row.error for row in rows if row.error is not None)
        return f"has {errors:,} of {counted(len(rows), 'call')} without a cost, so its dollars say nothing: {first}"

    def _before(self, baseline: Baseline | None) -> Decimal | str:
        """What this strategy cost at the baseline, or why that says nothing about it now."""
        if baseline is None:
            return "has no baseline to be compared with."
        before = baseline.strategies.get(self.ledger.strategy)
        if before is None:
            return "is not in the baseline."
        now = figures_of(self.ledger)
        changed = differences(baseline, self.result)
        if before.tokens != now.tokens:
            changed.append(f"tokens by {before.tokens}, now by {now.tokens}")
        if changed:
            return f"is not comparable with its baseline, whatever became of the prompts: {'; '.join(changed)}."
        incomplete = self._incomplete() if before.errors != now.errors or not now.calls else ""
        return incomplete or before.cost_usd

    def _verdict(self, budget: str, limit: Decimal, actual: Decimal | None, state: State, message: str) -> Verdict:
        name = self.ledger.strategy
        return Verdict(self.result.scenario, name, budget, limit, actual, state, f"{name} {message}")


def _against(total: Decimal, before: Decimal, change: Decimal | None, limit: Decimal) -> str:
    """ "$26.02, 8 % more than the baseline ($24.10)"."""
    told, before_told = _dollars_apart(total, before)
    if change is None:
        return f"{told}, and nothing in the baseline"
    if not change:
        return f"{told}, as in the baseline"
    word = "more" if change > 0 else "less"
    return f"{told}, {_percent_apart(abs(change), limit)} {word} than the baseline ({before_told})"


def _dollars_apart(one: Decimal, other: Decimal) -> tuple[str, str]:
    """Both amounts, to the last digit where rounding would make them look equal."""
    write = exact_dollars if one != other and dollars(one) == dollars(other) else dollars
    return write(one), write(other)


def _percent_apart(share: Decimal, limit: Decimal) -> str:
    """`share` as percent, with as many places as it takes to stand on its side of `limit`."""
    if share == limit or percent(share) != percent(limit):
        return percent(share)
    with localcontext(prec=EXACT_DIGITS):
        rounded = ((share * 100).quantize(Decimal(1).scaleb(-places)) for places in count(1))
        return f"{next(told for told in rounded if (told - limit * 100) * (share - limit) > 0)} %"


def overall(verdicts: Iterable[Verdict]) -> State:
    """One word for all: a broken budget outweighs one that could not be judged."""
    states = {verdict.verdict for verdict in verdicts}
    if "fail" in states:
        return "fail"
    return "not_comparable" if "not_comparable" in states else "pass"


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0 fine, 1 a budget is broken, 3 one could not be evaluated and none is broken (contract)."""
    return EXIT_CODES[overall(verdicts)]


def verdict_json(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """`check --json`: decimals as text, null where a figure cannot be known."""
    return {"format": 1, "verdict": overall(verdicts), "budgets": [_row(verdict) for verdict in verdicts]}


def _row(verdict: Verdict) -> dict[str, Any]:
    return {
        "scenario": verdict.scenario,
        "strategy": verdict.strategy,
        "budget": verdict.budget,
        "limit": exact(verdict.limit),
        "actual": None if verdict.actual is None else exact(verdict.actual),
        "verdict": verdict.verdict,
        "message": verdict.message,
    }


def text_lines(verdicts: Sequence[Verdict], paths: Mapping[str, str] | None = None) -> list[str]:
    """A line a verdict, what broke first, those of a scenario that hold together in one; then, for scenarios in
    `paths` that a new baseline would mend, the command that accepts them."""
    if not verdicts:
        return ["No budget is set, so nothing was checked."]
    ranked = sorted(verdicts, key=lambda verdict: RANKS.index(verdict.verdict))
    lines = [_line(verdict) for verdict in ranked if verdict.verdict != "pass"]
    lines += _passed([verdict for verdict in ranked if verdict.verdict == "pass"])
    mended = {v.scenario: None for v in ranked if v.verdict != "pass" and v.budget == "max_regression"}
    files = [(paths or {})[scenario] for scenario in mended if scenario in (paths or {})]
    return [*lines, *(f"  accept it with: cachecost check --update {file}" for file in files)]


def _line(verdict: Verdict) -> str:
    return f"{MARKS[verdict.verdict]} {verdict.scenario}: {verdict.message}"


def _passed(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """A line for each scenario: what holds, or how much of it."""
    by_scenario: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_scenario.setdefault(verdict.scenario, []).append(verdict)
    for scenario, passed in by_scenario.items():
        yield _line(passed[0]) if len(passed) == 1 else f"{MARKS['pass']} {scenario}: {len(passed)} limits hold."
