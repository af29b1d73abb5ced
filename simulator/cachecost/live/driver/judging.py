"""Predicted against billed, call by call: the cache simulated with the times at which calls were really sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

from cachecost.analysis.fidelity.checker import Judge
from cachecost.base.times import day_of
from cachecost.conversations.readers.request_log.reader import LoggedCall
from cachecost.ledger.results import ZERO, Judgement
from cachecost.live.driver.journal import Story
from cachecost.live.driver.model import Sent
from cachecost.live.driver.money import Pricing
from cachecost.live.driver.planning import HOST, Plan, Planned, Step
from cachecost.live.log import moment
from cachecost.providers.usage import Usage


@dataclass(frozen=True, slots=True)
class Compared:
    """One answered call. Its prediction is sized by other calls' bills, then by counts; None: it has none."""

    label: str
    sent: Sent
    predicted: Usage | None
    predicted_usd: Decimal | None
    billed_usd: Decimal
    exact: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a strategy's calls cost, as far as they were sent."""

    planned: Planned
    calls: tuple[Compared, ...]
    notes: tuple[str, ...]

    @property
    def exact(self) -> int:
        return sum(call.exact for call in self.calls)

    @property
    def predicted(self) -> Decimal:
        return sum((call.predicted_usd or ZERO for call in self.calls), ZERO)

    @property
    def billed(self) -> Decimal:
        return sum((call.billed_usd for call in self.calls), ZERO)

    @property
    def usage(self) -> Usage:
        return sum((call.sent.usage for call in self.calls), Usage())


def compare(plan: Plan, story: Story) -> list[Outcome]:
    """Every strategy's calls against their bills."""
    return [_outcome(plan, planned, story) for planned in plan.strategies]


def _outcome(plan: Plan, planned: Planned, story: Story) -> Outcome:
    terms = plan.terms
    steps = {step.label: step for step in planned.steps}
    labels, calls = _logged(planned.name, steps, story)
    judge = Judge(terms.each_on_its_day().with_assumptions(planned.rules).rules, terms.prices, terms.counter, HOST)
    judged, _ = judge.judge(planned.name, calls)
    by_line = {judgement.line: judgement for judgement in judged}
    pricing = Pricing(terms.prices, HOST)
    compared = tuple(
        _compared(steps[label], story.done[label], story.dollars[label], by_line.get(call.line), pricing)
        for label, call in zip(labels, calls, strict=True)
        if call.billed is not None
    )
    return Outcome(planned, compared, tuple(_notes(steps, story)))


def _logged(name: str, steps: Mapping[str, Step], story: Story) -> tuple[list[str], list[LoggedCall]]:
    """The calls that were answered, wholly or in part, as a recording would tell them, in the order they started."""
    done = [(label, sent.start, sent.first_token_s, sent.usage) for label, sent in story.done.items()]
    begun = [(label, part.start, part.first_token_s, None) for label, part in story.begun]
    told = sorted((row for row in [*done, *begun] if row[0] in steps), key=lambda row: (row[1], row[3] is None))
    calls = [
        LoggedCall(number, start, moment(start), steps[label].request, usage, first, workspace=name)
        for number, (label, start, first, usage) in enumerate(told, 1)
    ]
    return [row[0] for row in told], calls


def _compared(step: Step, sent: Sent, billed: Decimal, judged: Judgement | None, pricing: Pricing) -> Compared:
    if judged is None:
        return Compared(step.label, sent, None, None, billed, False, "not judged")
    predicted = replace(judged.predicted, output_tokens=sent.usage.output_tokens)
    dollars = pricing.cost(step.body, predicted, day_of(sent.start))
    return Compared(step.label, sent, predicted, dollars, billed, judged.exact, judged.reason)


def _notes(steps: Mapping[str, Step], story: Story) -> list[str]:
    lost = {label: times for label, times in story.unknown_calls.items() if label in steps}
    if not lost:
        return []
    told = ", ".join(f"{label} ({times})" if times > 1 else label for label, times in sorted(lost.items()))
    return [f"Attempts that nobody knows the bill of, and that may have written to the cache: {told}."]
