"""Sends a plan with its pauses, until all calls are done or the next exceeds the budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from cachecost.live.clock import Clock
from cachecost.live.driver.journal import Journal
from cachecost.live.driver.model import AnsweredCall, CallFailed, OverBudget
from cachecost.live.driver.money import OverBilled
from cachecost.live.driver.planning import LiveCall, Plan, PlannedStrategy
from cachecost.live.driver.sender import BudgetedSender

ABOUT_THE_CALL = frozenset({400, 413, 422})
"""Statuses that concern one body only: later calls may succeed."""
Say = Callable[[LiveCall, AnsweredCall], None]


@dataclass(slots=True)
class RunEnd:
    """How a run ended: why it stopped early ("": it did not), and the calls that are not done."""

    why: str = ""
    undone: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


class PlanRunner:
    """Sends the calls that the journal lacks."""

    def __init__(
        self, plan: Plan, sender: BudgetedSender, journal: Journal, clock: Clock, parallel: int, say: Say
    ) -> None:
        self._plan = plan
        self._sender = sender
        self._journal = journal
        self._clock = clock
        self._say = say
        self._room = asyncio.Semaphore(parallel)
        self._stopped = asyncio.Event()
        self._ended = RunEnd()

    async def go(self) -> RunEnd:
        """Send all remaining calls."""
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
                todo = self._todo(steps)
                if todo and last is not None:
                    await self._pause(last[1] + steps[0].offset - last[0] - self._clock.now())
                if self._stopped.is_set():
                    return
                begun = self._start_of_sent(steps)
                at = self._clock.now() if begun is None else begun
                await asyncio.gather(*map(self._call, todo))
                last = (steps[0].offset, at)

    def _todo(self, steps: list[LiveCall]) -> list[LiveCall]:
        return [step for step in steps if not step.refused and step.label not in self._journal.state.done]

    def _start_of_sent(self, steps: list[LiveCall]) -> float | None:
        """When a group was sent; None unless all of it is done."""
        sent = [self._journal.state.done.get(step.label) for step in steps if not step.refused]
        return max((one.start for one in sent if one), default=None) if all(sent) else None

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

    async def _call(self, step: LiveCall) -> None:
        if self._stopped.is_set():
            return
        try:
            await self._send(step)
        except OSError as error:
            self._stop(f"stopped at {step.label}: {unwritten(error)}")

    async def _send(self, step: LiveCall) -> None:
        try:
            self._say(step, await self._sender.send(step.body, step.label))
        except OverBudget as error:
            self._stop(f"stopped before {step.label}: {error}")
        except OverBilled as error:
            self._stop(f"stopped after {step.label}: {error}")
        except CallFailed as error:
            self._fail(step, error)

    def _fail(self, step: LiveCall, error: CallFailed) -> None:
        self._journal.add_failed(step.label, error)
        self._ended.failed[step.label] = _words(error)
        if error.status not in ABOUT_THE_CALL:
            self._stop(f"stopped after {step.label} failed: {_words(error)}")

    def _stop(self, why: str) -> None:
        """Stop the run; only the first reason counts."""
        if not self._stopped.is_set():
            self._ended.why = why
            self._stopped.set()


def unwritten(error: OSError) -> str:
    """What could not be written, and why: the files of a run are on a disk that may be full."""
    return f"{error.filename or 'a file'} cannot be written: {error.strerror or error}"


def _words(error: CallFailed) -> str:
    words = " ".join(str(part) for part in (error.status, error.kind) if part)
    return f"{words}: {error}" if words else str(error)
