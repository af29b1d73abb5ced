"""The entries that each call may find (rule 9): written by an earlier call, within reach of the call's lookback.

Entries are numbers here, so that the same answer serves many models, TTLs and seeds.

Work shared between this process and others of the same machine: loky, as it comes with joblib.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from importlib import import_module
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

from cachecost.base.structs import value
from cachecost.prompts.blocks import Prefix
from cachecost.providers.rules import ModelRules

NONE = -1
"""No entry."""
Numbers = tuple[int, ...]


class EntryIndex:
    """Numbers cache entries from 0, in the order they are first written.

    An entry is a marked prefix, and its TTL where the cache keeps one entry per TTL ("" elsewhere).
    """

    def __init__(self) -> None:
        self.prefixes: list[Prefix] = []
        self._ttls: list[str] = []
        self._numbers: defaultdict[str, dict[Prefix, int]] = defaultdict(dict)

    def number(self, prefix: Prefix, ttl: str = "") -> int:
        """The number of an entry; the next free one if the entry is new."""
        numbers = self._numbers[ttl]
        number = numbers.get(prefix)
        if number is None:
            number = numbers[prefix] = len(self.prefixes)
            self.prefixes.append(prefix)
            self._ttls.append(ttl)
        return number

    def parent(self, number: int, most: int) -> int:
        """The deepest entry of the same TTL above this one, at most `most` positions away; else NONE."""
        prefix, numbers = self.prefixes[number], self._numbers[self._ttls[number]]
        node = prefix.parent
        while node is not None and prefix.position - node.position <= most:
            found = numbers.get(node)
            if found is not None:
                return found
            node = node.parent
        return NONE


@value
class EntryTree:
    """Everything that candidates depend on. Models have different prefixes, but mostly equal trees."""

    writes: list[Numbers]
    """For each call, the entries that its breakpoints write, in prompt order."""
    rules: list[tuple[int, bool]]
    """For each call, how many positions it looks back, and whether a run of blocks counts as one position."""
    depths: list[int]
    positions: list[int]
    parents: list[int]

    def find_candidates(self) -> list[Numbers]:
        """For each call, the entries that it may find, in the order it looks."""
        known, found = 0, []
        for writes, (most, collapses) in zip(self.writes, self.rules, strict=True):
            at = self.positions if collapses else self.depths
            found.append(self._look_back(writes, known, most, at))
            known = max(known, max(writes, default=NONE) + 1)
        return found

    def _look_back(self, writes: Numbers, known: int, most: int, at: Sequence[int]) -> Numbers:
        """From the last breakpoint on, every entry in its window that an earlier call wrote (number below `known`)."""
        seen: dict[int, None] = {}
        for breakpoint in reversed(writes):
            entry, last = breakpoint, at[breakpoint] - most
            while entry != NONE and at[entry] > last:
                if entry < known:
                    seen[entry] = None
                entry = self.parents[entry]
        return tuple(seen)


def build_tree(
    entries: EntryIndex, writes: list[Numbers], rules: Sequence[ModelRules], rule_numbers: Sequence[int]
) -> EntryTree:
    """The tree of all entries. `rule_numbers` has, for each call, the index of its rules in `rules`."""
    back = [(one.lookback_positions, one.collapses_runs) for one in rules]
    most = max((positions for positions, _ in back), default=0)
    return EntryTree(
        writes,
        [back[number] for number in rule_numbers],
        [prefix.depth for prefix in entries.prefixes],
        [prefix.position for prefix in entries.prefixes],
        [entries.parent(number, most) for number in range(len(entries.prefixes))],
    )


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
        """The next item, taken off the heap; None if there is none."""
        with self._lock:
            return next(((item,) for item in self._items), None)

    def ready(self) -> Iterator[Result]:
        """What helpers have done by now."""
        while not self._done.empty():
            yield self._receive()

    def rest(self) -> Iterator[Result]:
        """What helpers still do; waits for it."""
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
