"""Work shared between this process and others of the same machine: loky, as it comes with joblib."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from importlib import import_module
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
AHEAD = 2
"""Items that a helper has: one in work, and one to go on with."""
IDLE_S = 300
LOOK_S = 0.5
"""How often a helper looks whether its parent still runs."""
_executors: list[Any] = []


def processes(jobs: int) -> int:
    """How many processes `jobs` are; −1 is one a core."""
    if jobs == 1:
        return 1
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))


def begin(jobs: int, module: str) -> None:
    """Start one helper already: it imports `module`, and all that this needs, while this process reads the scenario.

    The others wait to be needed.
    """
    if processes(jobs) > 1:
        _helpers(1).submit(_import_module, module)


def share_work(work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """`work` of each item, done here and in `jobs` − 1 helpers, in the order they finish.

    This process works as well: it is there, and has imported everything. Raises BrokenProcessPool for a helper that
    was killed.
    """
    if jobs == 1:
        yield from map(work, items)
        return
    helpers = _Helpers(_helpers(jobs - 1), work, items)
    try:
        helpers.begin(AHEAD * (jobs - 1))
        while own := helpers.take():
            yield work(own[0])
            yield from helpers.ready()
        yield from helpers.rest()
    except BaseException:
        kill_helpers()
        raise


def kill_helpers() -> None:
    """Kill what helpers there are: a process that is about to end leaves none behind."""
    while _executors:
        _executors.pop().shutdown(wait=True, kill_workers=True)


def _helpers(count: int) -> Any:
    loky: Any = import_module("joblib.externals.loky")
    executor = loky.get_reusable_executor(
        max_workers=count, timeout=IDLE_S, initializer=end_with, initargs=(os.getpid(),), reuse=True
    )
    if executor not in _executors:
        _executors.append(executor)
    return executor


def end_with(parent: int) -> None:
    """In a helper: end when the process that started it has ended, also where that was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_S)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _import_module(module: str) -> None:
    """In a helper that has nothing to do yet; there is nothing to send back."""
    import_module(module)


class _Helpers(Generic[Item, Result]):
    """Processes that take items from the same queue as this one, each as soon as it is idle."""

    def __init__(self, executor: Any, work: Callable[[Item], Result], items: Iterable[Item]) -> None:
        self.executor = executor
        self._work = work
        self._items = iter(items)
        self._lock = Lock()
        self._done: SimpleQueue[Future[Result]] = SimpleQueue()
        self._pending = 0

    def begin(self, count: int) -> None:
        for _ in range(count):
            self._give()

    def take(self) -> tuple[Item] | None:
        with self._lock:
            return next(((item,) for item in self._items), None)

    def ready(self) -> Iterator[Result]:
        while not self._done.empty():
            yield self._receive()

    def rest(self) -> Iterator[Result]:
        while self._pending:
            yield self._receive()

    def _receive(self) -> Result:
        result = self._done.get().result()
        with self._lock:
            self._pending -= 1
        return result

    def _give(self) -> None:
        if item := self.take():
            future = self.executor.submit(self._work, item[0])
            with self._lock:
                self._pending += 1
            future.add_done_callback(self._next)

    def _next(self, future: Future[Result]) -> None:
        """In a thread of the executor: the next item is given before this one is handed over, so none is missed."""
        try:
            if not future.cancelled() and future.exception() is None:
                self._give()
        finally:
            self._done.put(future)
