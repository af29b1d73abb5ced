"""A plan as it ran, and what it costs if some of its calls change: only calls that find other entries run again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from decimal import Decimal
from heapq import heapify, heappop, heappush
from math import floor
from typing import Any, cast

from msgspec.structs import astuple

from cachecost.analysis.optimum.plan_evaluator import BareCall, PlanCache, PlanEvaluator, PlanStep, StepResult
from cachecost.analysis.optimum.planner import Choices, PlanEntries, PlannedCall, Planner
from cachecost.analysis.optimum.ttls import READABLE, HeldBlock
from cachecost.caches.breakpoints import BEFORE_TIME, CacheEntry
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO

EntryKey = Any
"""A key of the cache, or a prefix where the entry is one that a planner knows of."""
Snapshot = tuple[Any, ...] | None
"""The fields of an entry; None: nothing is there that a later call can find."""
Changes = Mapping[float, PlannedCall | None]
"""Other calls of a plan by their numbers, which lie between two where a call is added; None: it is not made."""
STEP = 1 / 1024
"""From the number of a call to that of the first one that is added after it, and on to the next."""


class _WatchedEntries(dict[EntryKey, Any]):
    """Entries, and the keys that were asked for or changed since `seen` was last emptied."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[EntryKey] = set()

    def get(self, key: EntryKey, default: Any = None) -> Any:
        self.seen.add(key)
        return super().get(key, default)

    def pop(self, key: EntryKey, default: Any = None) -> Any:
        self.seen.add(key)
        return super().pop(key, default)

    def __setitem__(self, key: EntryKey, entry: Any) -> None:
        self.seen.add(key)
        super().__setitem__(key, entry)


class _ChangedPlanEntries(_WatchedEntries):
    """The entries that a changed plan looked at in its `number`-th call, and those that differ from the plan's."""

    def __init__(self, run: PlanRun) -> None:
        super().__init__()
        self._run = run
        self.number = 0.0

    def get(self, key: EntryKey, default: Any = None) -> Any:
        if key not in self:
            self[key] = _restore(self._run.before(key, self.number))
        return super().get(key)

    def pop(self, key: EntryKey, default: Any = None) -> Any:
        self[key] = None


class _WatchedCache(PlanCache):
    """A cache whose entries are watched. `found` is what the last call found cached before the recording began."""

    def __init__(self, warm: WarmPrefixes, entries: _WatchedEntries) -> None:
        super().__init__(warm)
        self._entries = entries
        self.found: BreakpointPrefix | None = None

    def start_warm(self, prompt: Prompt, rules: ModelRules, start: float) -> None:
        self.found = self.find_warm(prompt)
        super().start_warm(prompt, rules, start)


class _ChangedCache(PlanCache):
    """A cache of a changed plan. What starts warm is what started warm in the plan."""

    def __init__(self, run: PlanRun, entries: _ChangedPlanEntries) -> None:
        super().__init__(WarmPrefixes())
        self._run = run
        self._entries = entries

    def find_warm(self, prompt: Prompt) -> BreakpointPrefix | None:
        return self._run.found_by(cast("_ChangedPlanEntries", self._entries).number)

    def start_warm(self, prompt: Prompt, rules: ModelRules, start: float) -> None:
        self.start_with(self.find_warm(prompt), prompt, rules, start)


class PlanRun:
    """A run of calls, whose breakpoints are given or chosen: the result of each in `done`, and their `usd` with
    answers."""

    def __init__(self, evaluator: PlanEvaluator, calls: Sequence[PlannedCall], choices: Choices | None = None) -> None:
        self.evaluator = evaluator
        self.calls = calls
        self.choices = choices
        self._starts_from = _least_from([_sent(call).start for call in calls])
        self.seen: list[frozenset[EntryKey]] = []
        self._found: list[BreakpointPrefix | None] = []
        self._readers: dict[EntryKey, list[int]] = {}
        self._changes: dict[EntryKey, tuple[list[int], list[Snapshot]]] = {}
        self.done = self._run()
        self.usd = sum((one.usd for one in self.done), ZERO)

    @property
    def steps(self) -> list[PlanStep]:
        """The plan."""
        return [one.step for one in self.done]

    def _run(self) -> list[StepResult]:
        entries, done = _WatchedEntries(), list[StepResult]()
        cache = _WatchedCache(self.evaluator.warm.copy(), entries)
        runner = Runner(self, cache, entries)
        for number, call in enumerate(self.calls):
            entries.seen.clear()
            done.append(runner.run_step(call))
            for key in entries.seen:
                self._readers.setdefault(key, []).append(number)
                self._note(key, number, snapshot_of(dict.get(entries, key)))
            self.seen.append(frozenset(entries.seen))
            self._found.append(cache.found)
        return done

    def _note(self, key: EntryKey, number: int, now: Snapshot) -> None:
        numbers, snapshots = self._changes.setdefault(key, ([], []))
        if now != (snapshots[-1] if snapshots else None):
            numbers.append(number)
            snapshots.append(now)

    def before(self, key: EntryKey, number: float) -> Snapshot:
        """The entry as the calls before this number left it."""
        return self._after(key, number, bisect_left)

    def after(self, key: EntryKey, number: float) -> Snapshot:
        """The entry as the calls up to this number left it."""
        return self._after(key, number, bisect_right)

    def _after(self, key: EntryKey, number: float, bisect: Any) -> Snapshot:
        if key not in self._changes:
            return None
        numbers, snapshots = self._changes[key]
        at = bisect(numbers, number)
        return snapshots[at - 1] if at else None

    def next_reader(self, key: EntryKey, number: float) -> int | None:
        """The first call after this number that looks at an entry."""
        readers = self._readers.get(key, [])
        at = bisect_right(readers, number)
        return readers[at] if at < len(readers) else None

    def found_by(self, number: float) -> BreakpointPrefix | None:
        """What a call found cached before the recording began. Those that are added find nothing."""
        return self._found[int(number)] if number.is_integer() else None

    def start_after(self, number: float) -> float:
        """The earliest start of the calls after this number."""
        return self._starts_from[floor(number) + 1]

    def changes_to(self, calls: Sequence[PlannedCall]) -> Changes:
        """The changes to calls that have more among them, or other breakpoints."""
        changes: dict[float, PlannedCall | None] = {}
        at, added = 0, 0
        for call in calls:
            if at < len(self.calls) and _sent(self.calls[at]) is _sent(call):
                if self.calls[at] != call:
                    changes[float(at)] = call
                at, added = at + 1, 0
            else:
                added += 1
                changes[at - 1 + added * STEP] = call
        return changes

    def cost_with(self, changes: Changes) -> Decimal:
        """USD of the plan with other calls. The same as if all calls ran again."""
        if self._is_apart(changes):
            return PlanRun(self.evaluator, self._with(changes), self.choices).usd
        return _ChangedRun(self, changes).usd()

    def _with(self, changes: Changes) -> list[PlannedCall]:
        numbered: dict[float, PlannedCall | None] = {float(number): call for number, call in enumerate(self.calls)}
        numbered.update(changes)
        return [call for _, call in sorted(numbered.items(), key=lambda one: one[0]) if call is not None]

    def _is_apart(self, changes: Changes) -> bool:
        """Whether later calls depend on more than the entries they look at: on draws, or on who starts warm."""
        if any(_sent(call).rules.assumptions.is_drawn for call in self.calls):
            return True
        return any(
            self.found_by(number) is not None if call is None else self._takes(number, _sent(call))
            for number, call in changes.items()
        )

    def _takes(self, number: float, sent: BareCall) -> bool:
        """Whether a call that is added here is the first to send what was cached before the recording began."""
        if number.is_integer():
            return False
        warm = self.evaluator.warm.copy()
        for call, found in zip(self.calls[: max(0, floor(number) + 1)], self._found, strict=False):
            if found is not None:
                warm.take(_sent(call).prompt)
        return warm.find(sent.prompt) is not None


class Runner:
    """Makes the calls of a run against a cache. What a planner knows of stands among the cache's entries."""

    def __init__(self, run: PlanRun, cache: PlanCache, entries: _WatchedEntries) -> None:
        self._evaluator = run.evaluator
        self._cache = cache
        held = PlanEntries(cast("dict[Any, HeldBlock]", entries))
        self._planner = Planner(run.evaluator, run.choices, cache, held) if run.choices else None

    def run_step(self, call: PlannedCall) -> StepResult:
        if self._planner is not None:
            return self._planner.run_step(call)
        assert isinstance(call, PlanStep)
        return self._evaluator.run_step(self._cache, call)


class _ChangedRun:
    """Runs the changed calls, then each later one that looks at an entry which differs."""

    def __init__(self, run: PlanRun, changes: Changes) -> None:
        self._run = run
        self._new = changes
        self._entries = _ChangedPlanEntries(run)
        self._runner = Runner(run, _ChangedCache(run, self._entries), self._entries)
        self._waiting = list(changes)
        heapify(self._waiting)
        added = [(number, _sent(call).start) for number, call in changes.items() if call is not None]
        self._added = [(number, start) for number, start in added if not number.is_integer()]

    def usd(self) -> Decimal:
        usd, last = self._run.usd, -2.0
        while self._waiting:
            number = heappop(self._waiting)
            if number != last:
                usd += self._run_step(number)
                last = number
        return usd

    def _run_step(self, number: float) -> Decimal:
        """USD by which a call is more expensive now."""
        run, entries = self._run, self._entries
        entries.number = number
        entries.seen.clear()
        is_old = number.is_integer()
        call = self._new[number] if number in self._new else run.calls[int(number)]
        usd = self._runner.run_step(call).usd if call is not None else ZERO
        start = min([run.start_after(number), *(start for other, start in self._added if other > number)])
        for key in entries.seen | (run.seen[int(number)] if is_old else frozenset()):
            self._compare(key, number, start)
        return usd - run.done[int(number)].usd if is_old else usd

    def _compare(self, key: EntryKey, number: float, start: float) -> None:
        """Forget an entry that is as the plan left it; else the next call that looks at it runs again."""
        entries, run = self._entries, self._run
        now = snapshot_of(dict.get(entries, key)) if key in entries else run.before(key, number)
        if _useful(now, start) == _useful(run.after(key, number), start):
            dict.pop(entries, key, None)
            return
        dict.__setitem__(entries, key, _restore(now))
        following = run.next_reader(key, number)
        if following is not None:
            heappush(self._waiting, float(following))


def snapshot_of(entry: CacheEntry | HeldBlock | None) -> Snapshot:
    return astuple(entry) if isinstance(entry, CacheEntry) else entry


def _restore(snapshot: Snapshot) -> CacheEntry | HeldBlock | None:
    return snapshot if snapshot is None or isinstance(snapshot, HeldBlock) else CacheEntry(*snapshot)


def _useful(snapshot: Snapshot, start: float) -> Snapshot:
    """An entry as far as it matters from `start` on: equal ones serve the later calls equally."""
    if snapshot is None:
        return None
    if isinstance(snapshot, HeldBlock):
        return snapshot._replace(ready=READABLE, is_strict=False) if snapshot.ready < start else snapshot
    minimum, ttl, ttl_s, started, touched, readable_at = snapshot
    if start - touched >= ttl_s:
        return None
    if readable_at <= start and started < start:
        return minimum, ttl, ttl_s, BEFORE_TIME, touched, BEFORE_TIME
    return snapshot


def _sent(call: PlannedCall) -> BareCall:
    return call.sent if isinstance(call, PlanStep) else call


def _least_from(starts: Sequence[float]) -> list[float]:
    """The earliest start from each call on; then infinity."""
    found = [float("inf")]
    for start in reversed(starts):
        found.append(min(start, found[-1]))
    return found[::-1]
