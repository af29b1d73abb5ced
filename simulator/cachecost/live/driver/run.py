"""A live run: sends what the journal lacks, with the plan's pauses, records it, and compares it with the prediction.

The cache is simulated with the actual send times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import httpx2

from cachecost.analysis.fidelity.checker import FidelityChecker
from cachecost.base.atomic_files import open_replacement
from cachecost.base.formatting import count_text, dollars, duration, exact
from cachecost.base.structs import replace
from cachecost.base.times import day_of
from cachecost.conversations.calls import Call
from cachecost.live.clock import Clock, moment
from cachecost.live.driver.budget import AnsweredCall, CallFailed, CallPricing, DollarBudget, OverBilled, OverBudget
from cachecost.live.driver.planning import HOST, LiveCall, Plan, PlannedStrategy
from cachecost.live.driver.sending import (
    TIMEOUT_S,
    BudgetedSender,
    Journal,
    PartialAnswer,
    RetryPolicy,
    RunState,
    recorded_body,
    recorded_fields,
    sender_to,
)
from cachecost.live.request_log import CallLog, call_line
from cachecost.providers.usage import ZERO, Usage
from cachecost.views.tables.output import pick
from cachecost.views.tables.table import print_table


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


def compare_strategy(plan: Plan, planned: PlannedStrategy, state: RunState) -> StrategyOutcome:
    terms, name = plan.terms, planned.name
    steps = {step.label: step for step in planned.steps}
    done = [(label, sent.start, sent.first_token_s, sent.usage) for label, sent in state.done.items()]
    begun = [(label, part.start, part.first_token_s, None) for label, part in state.begun]
    rows = sorted((row for row in [*done, *begun] if row[0] in steps), key=lambda row: (row[1], row[3] is None))
    calls = []  # as a recording holds them, also those whose answer was not complete
    for number, (label, start, first, usage) in enumerate(rows, 1):
        call = Call(steps[label].request, start, timestamp=moment(start), workspace=name, billed=usage, line=number)
        calls.append(replace(call, first_token_s=first))
    rules = terms.each_on_its_day().with_assumptions(planned.rules).rules
    judged, _ = FidelityChecker(rules, terms.prices, terms.counter, HOST).check_calls(name, calls)
    by_line = {judgement.line: judgement for judgement in judged}
    pricing = CallPricing(terms.prices, HOST)
    compared = []
    for number, (label, _, _, usage) in enumerate(rows, 1):
        if usage is None:
            continue
        sent, billed = state.done[label], state.dollars[label]
        if (judgement := by_line.get(number)) is None:
            compared.append(CallComparison(label, sent, None, None, billed, False, "not judged"))
            continue
        predicted = replace(judgement.predicted, output_tokens=usage.output_tokens)
        dollars = pricing.cost(steps[label].body, predicted, day_of(sent.start))
        compared.append(CallComparison(label, sent, predicted, dollars, billed, judgement.exact, judgement.reason))
    notes = [f"{label}: {sent.doubt}" for label, sent in state.done.items() if label in steps and sent.doubt]
    lost = {label: times for label, times in state.unknown_calls.items() if label in steps}
    if lost:
        attempts = ", ".join(f"{label} ({times})" if times > 1 else label for label, times in sorted(lost.items()))
        notes.append(f"Attempts whose bill is unknown, and that may have written to the cache: {attempts}.")
    return StrategyOutcome(planned, tuple(compared), tuple(notes))


@dataclass(slots=True)
class RunEnd:
    """How a run ended: why it stopped early ("": it did not), and the calls that are not done."""

    why: str = ""
    undone: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


class PlanRunner:
    def __init__(self, run: LiveRun, sender: BudgetedSender, journal: Journal, report: ReportCall) -> None:
        self._plan, self._clock = run.plan, run.clock
        self._sender, self._journal, self._report = sender, journal, report
        self._room = asyncio.Semaphore(run.parallel)
        self._stopped = asyncio.Event()
        self._ended = RunEnd()

    async def go(self) -> RunEnd:
        async with asyncio.TaskGroup() as group:
            for planned in self._plan.strategies:
                group.create_task(self._strategy(planned))
        done = self._journal.state.done
        self._ended.undone = [step.label for step in self._plan.steps if not step.refused and step.label not in done]
        return self._ended

    async def _strategy(self, planned: PlannedStrategy) -> None:
        async with self._room:
            last: tuple[float, float] | None = None
            for steps in planned.groups:
                done, sent = self._journal.state.done, [step for step in steps if not step.refused]
                todo = [step for step in sent if step.label not in done]
                if todo and last is not None:
                    await self._pause(last[1] + steps[0].offset - last[0] - self._clock.now())
                if self._stopped.is_set():
                    return
                starts = [] if todo else [done[step.label].start for step in sent]
                at = max(starts) if starts else self._clock.now()
                await asyncio.gather(*map(self._send, todo))
                last = (steps[0].offset, at)

    async def _pause(self, seconds: float) -> None:
        """Wait, but at most until the run is stopped."""
        if seconds <= 0:
            return
        waits = [asyncio.ensure_future(self._clock.sleep(seconds)), asyncio.ensure_future(self._stopped.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _send(self, step: LiveCall) -> None:
        if self._stopped.is_set():
            return
        try:
            try:
                self._report(step, await self._sender.send(step.body, step.label), self._sender.budget)
            except CallFailed as error:
                words = " ".join(str(part) for part in (error.status, error.kind) if part)
                why = f"{words}: {error}" if words else str(error)
                self._journal.on_failed(step.label, error)
                self._ended.failed[step.label] = why
                # statuses that concern one body only: later calls may succeed
                if error.status not in (400, 413, 422):
                    self._stop(f"stopped after {step.label} failed: {why}")
        except (OverBudget, OverBilled) as error:
            self._stop(f"stopped {'before' if isinstance(error, OverBudget) else 'after'} {step.label}: {error}")
        except OSError as error:
            self._stop(f"stopped at {step.label}: {unwritten(error)}")

    def _stop(self, why: str) -> None:
        """Stop the run; only the first reason counts."""
        if not self._stopped.is_set():
            self._ended.why = why
            self._stopped.set()


def unwritten(error: OSError) -> str:
    """What could not be written, and why: the files of a run are on a disk that may be full."""
    return f"{error.filename or 'a file'} cannot be written: {error.strerror or error}"


RECORDING = "recording.jsonl"
ReportCall = Callable[[LiveCall, AnsweredCall, DollarBudget], None]


@dataclass(frozen=True, slots=True)
class LiveRun:
    """How a plan is sent. `limit` is dollars for the run as a whole, its resumptions included."""

    plan: Plan
    key: str
    limit: Decimal
    clock: Clock
    base_url: str | None = None
    parallel: int = 1
    retries: int = 4
    betas: tuple[str, ...] = ()
    timeout_s: float = TIMEOUT_S
    transport: httpx2.AsyncBaseTransport | None = None


@dataclass(frozen=True, slots=True)
class LiveResult:
    """The result of a run. `unknown` is the upper bound, in USD, of attempts whose bill is unknown."""

    plan: Plan
    ended: RunEnd
    outcomes: tuple[StrategyOutcome, ...]
    billed: Decimal
    unknown: Decimal
    limit: Decimal
    journal: Path
    recording: Path


async def drive(run: LiveRun, journal: Journal, report: ReportCall) -> LiveResult:
    """Send what the journal lacks, and compare. Raises InputError if the recording is not a request log."""
    plan, recording = run.plan, journal.path.with_name(RECORDING)
    pricing = CallPricing(plan.terms.prices, HOST)
    budget = DollarBudget(run.limit, journal.state.billed_usd, journal.state.unknown)
    retries = RetryPolicy(run.retries, plan.run)
    rewrite(recording, plan, journal.state)
    with CallLog(recording) as journal.log:
        async with sender_to(
            run.key,
            run.base_url,
            pricing,
            budget,
            run.clock,
            retries,
            journal,
            run.transport,
            run.betas,
            run.timeout_s,
            journal.state.cached_tokens,
        ) as sender:
            ended = await PlanRunner(run, sender, journal, report).go()
    try:
        rewrite(recording, plan, journal.state)
    except OSError as error:  # the lines stay in the order of the answers
        ended.why = ended.why or f"the calls are not in order of time: {unwritten(error)}"
    outcomes = tuple(compare_strategy(plan, planned, journal.state) for planned in plan.strategies)
    return LiveResult(plan, ended, outcomes, budget.billed, budget.unknown, run.limit, journal.path, recording)


def rewrite(path: Path, plan: Plan, state: RunState) -> None:
    """Write the recording anew from the journal, in order of time; if interrupted, the old one remains."""
    steps = {step.label: step for step in plan.steps}
    rows: list[tuple[float, str, AnsweredCall | PartialAnswer]] = [
        *((sent.start, label, sent) for label, sent in state.done.items() if label in steps),
        *((part.start, label, part) for label, part in state.begun if label in steps),
    ]
    with open_replacement(path, 0o600) as stream:
        for _, label, sent in sorted(rows, key=lambda row: row[:2]):
            stream.write(call_line(recorded_fields(label, sent), recorded_body(steps[label].body)))


CALL_COLUMNS = ("call", "predicted read", "written", "uncached", "billed read", "written", "uncached", "cost", "")


def takes(plan: Plan, parallel: int) -> float:
    """Seconds of pauses in a run with `parallel` strategies at once; the time of answers comes on top."""
    ends = [0.0] * max(1, parallel)
    for planned in plan.strategies:
        ends.sort()
        ends[0] += planned.seconds
    return max(ends)


def totals(plan: Plan) -> tuple[Decimal, Decimal]:
    """(predicted, at most) dollars of all strategies."""
    strategies = plan.strategies
    return sum((one.predicted_usd for one in strategies), ZERO), sum((one.worst_usd for one in strategies), ZERO)


def plan_sentences(plan: Plan, limit: Decimal, pace: float, output: int) -> Iterator[str]:
    predicted, worst = totals(plan)
    generation = plan.terms.rules.rules("anthropic", plan.terms.model or "").generation
    error_margin = plan.terms.counter(generation).error_margin
    yield f"Token counts are estimates (±{error_margin:.1%}). The API counts each call before it is sent."
    if worst <= limit:
        yield f"Within budget: at most {dollars(worst)} of {dollars(limit)} without cache hits, retries not included."
    elif predicted <= limit:
        yield f"Within budget as predicted ({dollars(predicted)} of {dollars(limit)}); with few hits it stops early."
    else:
        yield f"Over budget: {dollars(predicted)} predicted, {dollars(limit)} allowed. It will stop early."
    yield f"Answers are limited to {output} tokens, so output costs differ from the scenario's."
    if pace != 1:
        yield (
            f"Pauses are scaled by {pace:g}, TTLs are not: entries may survive pauses that would expire them. "
            "The comparison uses the actual send times."
        )
    if plan.scenario.as_of:
        yield f"The scenario is dated {plan.scenario.as_of}; live calls use the rules and prices of today."
    if plan.scenario.variants:
        yield "Only the base scenario is sent, not its variants."
    every_note = dict.fromkeys(note for planned in plan.strategies for note in planned.notes)
    names = {note: [one.name for one in plan.strategies if note in one.notes] for note in every_note}
    for note, strategies in names.items():
        yield note if len(strategies) == len(plan.strategies) else f"{', '.join(strategies)}: {note}"
    for planned in plan.strategies:
        refused = [step for step in planned.steps if step.refused]
        if refused:
            calls = count_text(len(refused), "call")
            yield f"{planned.name}: {calls} not sent because the API would refuse: {refused[0].refused}"


def print_plan(plan: Plan, limit: Decimal, parallel: int) -> None:
    found = [(one.name, one.steps, one.predicted_usd, one.worst_usd, one.seconds) for one in plan.strategies]
    whole = ("all", plan.steps, *totals(plan), takes(plan, parallel))
    rows = [
        (name, f"{len(steps)}", dollars(predicted), dollars(worst), duration(seconds))
        for name, steps, predicted, worst, seconds in (*found, whole)
    ]
    click.echo(f"{plan.scenario.name}   what would be sent, within {dollars(limit)}\n")
    print_table("", ("strategy", "calls", "predicted", "at most", "takes"), rows)


def plan_json(plan: Plan, limit: Decimal, parallel: int) -> dict[str, Any]:
    predicted, worst = totals(plan)
    return {
        "format": 1,
        "scenario": plan.scenario.name,
        "run": plan.run,
        "max_usd": exact(limit),
        "predicted_usd": exact(predicted),
        "worst_usd": exact(worst),
        "seconds": takes(plan, parallel),
        "strategies": [
            {
                "name": one.name,
                "calls": len(one.steps),
                "refused": sum(step.refused is not None for step in one.steps),
                "predicted_usd": exact(one.predicted_usd),
                "worst_usd": exact(one.worst_usd),
                "seconds": one.seconds,
                "notes": list(one.notes),
            }
            for one in plan.strategies
        ],
    }


def print_driven(driven: LiveResult) -> None:
    rows: list[tuple[str, ...]] = []
    for call in (call for outcome in driven.outcomes for call in outcome.calls):
        predicted = _cells(call.predicted) if call.predicted else ("–", "–", "–")
        cost, reason = dollars(call.billed_usd), "" if call.exact else call.reason
        rows.append((call.label, *predicted, *_cells(call.sent.usage), cost, reason))
    click.echo("\ncall by call")
    print_table("", CALL_COLUMNS, rows)
    click.echo("\npredicted against billed")
    totals_rows: list[tuple[str, ...]] = []
    for one in driven.outcomes:
        calls = f"{len(one.calls)} of {sum(not step.refused for step in one.planned.steps)}"
        usd = (dollars(one.predicted_usd), dollars(one.billed_usd))
        totals_rows.append((one.planned.name, calls, f"{one.exact}", *usd))
    print_table("", ("strategy", "calls", "exact", "predicted", "billed"), totals_rows)


def _cells(usage: Usage) -> tuple[str, str, str]:
    return f"{usage.read:,}", f"{usage.write:,}", f"{usage.input_tokens:,}"


def sentences(driven: LiveResult) -> Iterator[str]:
    unknown = f"; {dollars(driven.unknown)} reserved for attempts whose bill is unknown" if driven.unknown else ""
    yield f"{dollars(driven.billed)} of {dollars(driven.limit)} billed{unknown}"
    for outcome in driven.outcomes:
        yield from (f"{outcome.planned.name}: {note}" for note in outcome.notes)
    yield from (f"{label} failed: {why}" for label, why in driven.ended.failed.items())
    if driven.ended.why:
        yield driven.ended.why
    if undone := driven.ended.undone:
        named = ", ".join(undone[:5]) + (" …" if len(undone) > 5 else "")
        yield f"{count_text(len(undone), 'call')} not sent: {named}; continue with --resume {driven.journal}"
    yield f"journal {driven.journal}, recording {driven.recording}"


def driven_json(driven: LiveResult) -> dict[str, Any]:
    return {
        "format": 1,
        "scenario": driven.plan.scenario.name,
        "run": driven.plan.run,
        "max_usd": exact(driven.limit),
        "billed_usd": exact(driven.billed),
        "unknown_usd": exact(driven.unknown),
        "stopped": driven.ended.why or None,
        **pick(driven.ended, "undone", "failed"),
        "journal": str(driven.journal),
        "recording": str(driven.recording),
        "strategies": [
            {
                "name": outcome.planned.name,
                "calls": len(outcome.planned.steps),
                "done": len(outcome.calls),
                "refused": sum(step.refused is not None for step in outcome.planned.steps),
                "exact": outcome.exact,
                "predicted_usd": exact(outcome.predicted_usd),
                "billed_usd": exact(outcome.billed_usd),
                "usage": outcome.usage.wire(),
                "notes": [*outcome.planned.notes, *outcome.notes],
                "rows": [
                    {
                        "call": call.label,
                        "timestamp": moment(call.sent.start),
                        "first_token_s": call.sent.first_token_s,
                        "predicted": call.predicted.wire() if call.predicted else None,
                        "billed": call.sent.usage.wire(),
                        "predicted_usd": exact(call.predicted_usd) if call.predicted_usd is not None else None,
                        "billed_usd": exact(call.billed_usd),
                        **pick(call, "exact", "reason"),
                    }
                    for call in outcome.calls
                ],
            }
            for outcome in driven.outcomes
        ],
    }
