"""A live run: sends what the journal lacks, records it, and compares it with the prediction."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2

from cachecost.base.atomic_files import open_replacement
from cachecost.live.clock import Clock
from cachecost.live.driver.comparison import StrategyOutcome, compare
from cachecost.live.driver.journal import Journal, RunState
from cachecost.live.driver.model import AnsweredCall
from cachecost.live.driver.money import CallPricing, DollarBudget
from cachecost.live.driver.plan_runner import PlanRunner, RunEnd, unwritten
from cachecost.live.driver.planning import HOST, LiveCall, Plan
from cachecost.live.driver.retries import RetryPolicy
from cachecost.live.driver.sender import TIMEOUT_S, AttemptObserver, sender_to
from cachecost.live.driver.wire import AttemptFailed, PartialAnswer
from cachecost.live.log import CallLog, call_line, moment

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
    with CallLog(recording) as log:
        async with sender_to(
            run.key,
            run.base_url,
            pricing,
            budget,
            run.clock,
            retries,
            JournalingObserver(journal, log),
            run.transport,
            run.betas,
            run.timeout_s,
            journal.state.cached_tokens,
        ) as sender:
            say = lambda step, sent: report(step, sent, budget)  # noqa: E731 - the run knows no budget
            ended = await PlanRunner(plan, sender, journal, run.clock, run.parallel, say).go()
    _rewrite_at_end(recording, plan, journal.state, ended)
    outcomes = tuple(compare(plan, journal.state))
    return LiveResult(plan, ended, outcomes, budget.billed, budget.unknown, run.limit, journal.path, recording)


class JournalingObserver(AttemptObserver):
    """Writes the journal first, then the recording. Each strategy is a workspace and a session of its own."""

    def __init__(self, journal: Journal, log: CallLog) -> None:
        self._journal = journal
        self._log = log

    def on_reserved(self, label: str, retry: int, dollars: Decimal) -> None:
        self._journal.add_reserved(label, retry, dollars)

    def on_answered(
        self, label: str, retry: int, sent: AnsweredCall, dollars: Decimal, body: Mapping[str, Any]
    ) -> None:
        self._journal.add_answered(label, retry, sent, dollars, body)
        self._log.append(_fields(label, sent), _bytes(body))

    def on_released(self, label: str, retry: int, fault: AttemptFailed) -> None:
        self._journal.add_released(label, retry, fault)

    def on_lost(self, label: str, retry: int, fault: AttemptFailed, dollars: Decimal, body: Mapping[str, Any]) -> None:
        self._journal.add_lost(label, retry, fault, dollars, body)
        if fault.begun:
            self._log.append(_fields(label, fault.begun), _bytes(body))


def _rewrite_at_end(path: Path, plan: Plan, state: RunState, ended: RunEnd) -> None:
    """As `rewrite`. Where there is no room for it, the lines stay in the order of the answers, and `ended` says so."""
    try:
        rewrite(path, plan, state)
    except OSError as error:
        ended.why = ended.why or f"the calls are not in order of time: {unwritten(error)}"


def rewrite(path: Path, plan: Plan, state: RunState) -> None:
    """Write the recording anew from the journal, in order of time; if interrupted, the old one remains."""
    steps = {step.label: step for step in plan.steps}
    rows: list[tuple[float, str, AnsweredCall | PartialAnswer]] = [
        *((sent.start, label, sent) for label, sent in state.done.items() if label in steps),
        *((part.start, label, part) for label, part in state.begun if label in steps),
    ]
    with open_replacement(path, 0o600) as stream:
        for _, label, sent in sorted(rows, key=lambda row: row[:2]):
            stream.write(call_line(_fields(label, sent), _bytes(steps[label].body)))


def _fields(label: str, sent: AnsweredCall | PartialAnswer) -> dict[str, Any]:
    """A call's fields. An answer that was cut off has no usage: it affects the cache and is not compared."""
    name = label.rpartition("/")[0]
    record = {
        "call": label,
        "timestamp": moment(sent.start),
        "first_token_s": round(sent.first_token_s, 6),
        "workspace": name,
        "session": name,
    }
    if isinstance(sent, PartialAnswer):
        return record
    return {**record, "usage": sent.usage.wire(), "response": {**sent.response, "usage": sent.usage.wire()}}


def _bytes(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
