"""A run from its journal to its outcome: opened, sent, closed, recorded and compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import httpx2

from cachecost.live.clock import Clock
from cachecost.live.driver.journal import Journal
from cachecost.live.driver.judging import Outcome, compare
from cachecost.live.driver.model import Sent
from cachecost.live.driver.money import Budget, Pricing
from cachecost.live.driver.opening import TIMEOUT_S, sender_to
from cachecost.live.driver.planning import HOST, Plan, Step
from cachecost.live.driver.recording import Recorded, rewrite
from cachecost.live.driver.retrying import Retries
from cachecost.live.driver.running import Ended, Run
from cachecost.live.log import CallLog

RECORDING = "recording.jsonl"
Told = Callable[[Step, Sent, Budget], None]


@dataclass(frozen=True, slots=True)
class Drive:
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
class Driven:
    """What became of a run. `unknown` are the worst cases, in USD, of attempts that nobody knows the bill of."""

    plan: Plan
    ended: Ended
    outcomes: tuple[Outcome, ...]
    billed: Decimal
    unknown: Decimal
    limit: Decimal
    journal: Path
    recording: Path


async def drive(given: Drive, journal: Journal, told: Told) -> Driven:
    """Send what the journal does not call done, and compare. Raises InputError for a recording that is none."""
    plan, recording = given.plan, journal.path.with_name(RECORDING)
    pricing = Pricing(plan.terms.prices, HOST)
    budget = Budget(given.limit, journal.story.billed, journal.story.unknown)
    retries = Retries(given.retries, plan.run)
    rewrite(recording, plan, journal.story)
    with CallLog(recording) as log:
        async with sender_to(
            given.key,
            given.base_url,
            pricing,
            budget,
            given.clock,
            retries,
            Recorded(journal, log),
            given.transport,
            given.betas,
            given.timeout_s,
        ) as sender:
            say = lambda step, sent: told(step, sent, budget)  # noqa: E731 - the run knows no budget
            ended = await Run(plan, sender, journal, given.clock, given.parallel, say).go()
    rewrite(recording, plan, journal.story)
    outcomes = tuple(compare(plan, journal.story))
    return Driven(plan, ended, outcomes, budget.billed, budget.unknown, given.limit, journal.path, recording)
