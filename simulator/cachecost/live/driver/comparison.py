"""Predicted against billed, call by call: the cache is simulated with the actual send times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.analysis.fidelity.checker import FidelityChecker
from cachecost.base.times import day_of
from cachecost.conversations.calls import RecordedCall
from cachecost.ledger.results import ZERO, Judgement
from cachecost.live.driver.journal import RunState
from cachecost.live.driver.model import AnsweredCall
from cachecost.live.driver.money import CallPricing
from cachecost.live.driver.planning import HOST, LiveCall, Plan, PlannedStrategy
from cachecost.live.log import moment
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class CallComparison:
    """One answered call. Token counts of its prediction come from other calls' bills, then from a counter."""

    label: str
    sent: AnsweredCall
    predicted: Usage | None
    predicted_usd: Decimal | None
    billed_usd: Decimal
    exact: bool
    reason: str


@dataclass(frozen=True, slots=True)
class StrategyOutcome:
    """What the calls of a strategy cost, as far as they were sent."""

    planned: PlannedStrategy
    calls: tuple[CallComparison, ...]
    notes: tuple[str, ...]

    @property
    def exact(self) -> int:
        return sum(call.exact for call in self.calls)

    @property
    def predicted_usd(self) -> Decimal:
        return sum((call.predicted_usd or ZERO for call in self.calls), ZERO)

    @property
    def billed_usd(self) -> Decimal:
        return sum((call.billed_usd for call in self.calls), ZERO)

    @property
    def usage(self) -> Usage:
        return sum((call.sent.usage for call in self.calls), Usage())


def compare(plan: Plan, state: RunState) -> list[StrategyOutcome]:
    """Every strategy's calls against their bills."""
    return [_outcome(plan, planned, state) for planned in plan.strategies]


def _outcome(plan: Plan, planned: PlannedStrategy, state: RunState) -> StrategyOutcome:
    terms = plan.terms
    steps = {step.label: step for step in planned.steps}
    labels, calls = _collect_calls(planned.name, steps, state)
    checker = FidelityChecker(
        terms.each_on_its_day().with_assumptions(planned.rules).rules, terms.prices, terms.counter, HOST
    )
    judged, _ = checker.check_calls(planned.name, calls)
    by_line = {judgement.line: judgement for judgement in judged}
    pricing = CallPricing(terms.prices, HOST)
    compared = tuple(
        _compare_call(steps[label], state.done[label], state.dollars[label], by_line.get(call.line), pricing)
        for label, call in zip(labels, calls, strict=True)
        if label
    )
    return StrategyOutcome(planned, compared, tuple(_notes(steps, state)))


def _collect_calls(name: str, steps: Mapping[str, LiveCall], state: RunState) -> tuple[list[str], list[RecordedCall]]:
    """The calls that were answered, at least in part, as a recording holds them, by start time; and their labels, which
    are "" for those whose answer was not complete."""
    done = [(label, sent.start, sent.first_token_s, sent.usage) for label, sent in state.done.items()]
    begun = [(label, part.start, part.first_token_s, None) for label, part in state.begun]
    rows = sorted((row for row in [*done, *begun] if row[0] in steps), key=lambda row: (row[1], row[3] is None))
    calls = [
        RecordedCall(
            steps[label].request,
            start,
            timestamp=moment(start),
            workspace=name,
            first_token_s=first,
            billed=usage,
            line=number,
        )
        for number, (label, start, first, usage) in enumerate(rows, 1)
    ]
    return [label if usage is not None else "" for label, _, _, usage in rows], calls


def _compare_call(
    step: LiveCall, sent: AnsweredCall, billed: Decimal, judged: Judgement | None, pricing: CallPricing
) -> CallComparison:
    if judged is None:
        return CallComparison(step.label, sent, None, None, billed, False, "not judged")
    predicted = replace(judged.predicted, output_tokens=sent.usage.output_tokens)
    dollars = pricing.cost(step.body, predicted, day_of(sent.start))
    return CallComparison(step.label, sent, predicted, dollars, billed, judged.exact, judged.reason)


def _notes(steps: Mapping[str, LiveCall], state: RunState) -> list[str]:
    notes = [f"{label}: {sent.doubt}" for label, sent in state.done.items() if label in steps and sent.doubt]
    lost = {label: times for label, times in state.unknown_calls.items() if label in steps}
    if lost:
        rows = ", ".join(f"{label} ({times})" if times > 1 else label for label, times in sorted(lost.items()))
        notes.append(f"Attempts whose bill is unknown, and that may have written to the cache: {rows}.")
    return notes
