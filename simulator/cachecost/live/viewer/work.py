"""Work in threads that keep nobody waiting: it ends when its client has left, or after some time."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, RLock, Thread
from time import monotonic
from typing import TypeVar

from starlette.types import Receive

from cachecost.base.atomic_files import WorkStopped, checked_by, current_work_check
from cachecost.live.loopback import client_left

Made = TypeVar("Made")


class TooLong(WorkStopped):
    """The work takes longer than a page waits; the text says what to do instead."""


class WorkLimit:
    """Ends the work for an answer when its client has left, or after `seconds` (None: never)."""

    def __init__(self, seconds: float | None, now: Callable[[], float] = monotonic) -> None:
        self._now, self._seconds = now, seconds
        self._end = float("inf") if seconds is None else now() + seconds
        self._has_left = Event()

    def stop(self) -> None:
        self._has_left.set()

    def check(self) -> None:
        """Raises WorkStopped where the work is to end."""
        if self._has_left.is_set():
            raise WorkStopped("the client has left")
        if self._now() >= self._end:
            raise TooLong(f"a replay of this takes longer than the {self._seconds:g} s that a page waits")


@contextmanager
def held(lock: Lock | RLock) -> Iterator[None]:
    """The lock, unless the work is to end before it is free."""
    check = current_work_check()
    # how soon who waits for a lock sees that nobody waits for the answer
    while not lock.acquire(timeout=0.25 if check else -1):
        if check:
            check()
    try:
        yield
    finally:
        lock.release()


async def run_for_client(work: Callable[[], Made], receive: Receive, limit: WorkLimit) -> Made:
    """As `run_in_thread`, within the limit and for as long as the client is there."""

    def limited() -> Made:
        with checked_by(limit.check):
            return work()

    leaving = asyncio.ensure_future(client_left(receive))
    leaving.add_done_callback(lambda _: limit.stop())
    try:
        return await run_in_thread(limited)
    finally:
        leaving.cancel()


async def run_in_thread(work: Callable[[], Made]) -> Made:
    """What `work` returns. Its thread does not keep the process from ending: Ctrl-C waits for no replay."""
    loop = asyncio.get_running_loop()
    made: asyncio.Future[Made] = loop.create_future()
    context = contextvars.copy_context()

    def finish(outcome: Callable[[], None]) -> None:
        if not made.done():
            outcome()

    def run() -> None:
        try:
            found = context.run(work)
        except BaseException as error:
            failed = error
            _tell(loop, lambda: finish(lambda: made.set_exception(failed)))
        else:
            _tell(loop, lambda: finish(lambda: made.set_result(found)))

    Thread(target=run, daemon=True).start()
    return await made


def _tell(loop: asyncio.AbstractEventLoop, outcome: Callable[[], None]) -> None:
    """Hand the outcome to the loop, unless that has ended."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(outcome)
