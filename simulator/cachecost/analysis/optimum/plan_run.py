"""A plan as it ran, and what it costs if one of its calls changes: only calls that find other entries run again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from decimal import Decimal
from heapq import heappop, heappush
from typing import Any, cast

from msgspec.structs import astuple

from cachecost.analysis.optimum.plan_evaluator import PlanCache, PlanEvaluator, PlanStep
from cachecost.caches.breakpoints import BEFORE_TIME, Entry, Key
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO

Snapshot = tuple[Any, ...] | None
"""The fields of an entry; None: nothing is there that a later call can find."""


class _WatchedEntries(dict[Key, Entry]):
    """Entries, and the keys that were asked for or changed since `seen` was last emptied."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[Key] = set()

    def get(self, key: Key, default: Any = None) -> Any:
        self.seen.add(key)
        return super().get(key, default)

    def pop(self, key: Key, default: Any = None) -> Any:
        self.seen.add(key)
        return super().pop(key, default)

    def __setitem__(self, key: Key, entry: Entry) -> None:
        self.seen.add(key)
        super().__setitem__(key, entry)


class _WatchedCache(PlanCache):
    """A cache whose entries are watched. `found` is what the last call found cached before the recording began."""

    def __init__(self, warm: WarmPrefixes) -> None:
        super().__init__(warm)
        self.watched = self._entries = _WatchedEntries()
        self.found: BreakpointPrefix | None = None

    def start_warm(self, prompt: Prompt, rules: ModelRules, start: float) -> None:
        self.found = self.warm_prefixes.find(prompt)
        super().start_warm(prompt, rules, start)


class PlanRun:
    """A run of a plan: the result of each step in `done`, and its `usd`, answers included."""

    def __init__(self, evaluator: PlanEvaluator, steps: Sequence[PlanStep]) -> None:
        self.evaluator = evaluator
        self.steps = steps
        self._cache = _WatchedCache(evaluator.warm.copy())
        self._starts_after = _least_after([step.sent.start for step in steps])
        self.seen: list[frozenset[Key]] = []
        self.found: list[BreakpointPrefix | None] = []
        """What each step found cached before the recording began."""
        self._readers: dict[Key, list[int]] = {}
        self._changes: dict[Key, tuple[list[int], list[Snapshot]]] = {}
        self.done = [self._run_step(number, step) for number, step in enumerate(steps)]
        self.usd = sum((one.usd for one in self.done), ZERO)

    def _run_step(self, number: int, step: PlanStep) -> Any:
        entries = self._cache.watched
        entries.seen.clear()
        done = self.evaluator.run_step(self._cache, step)
        for key in entries.seen:
            self._readers.setdefault(key, []).append(number)
            self._note(key, number, dict.get(entries, key))
        self.seen.append(frozenset(entries.seen))
        self.found.append(self._cache.found)
        return done

    def _note(self, key: Key, number: int, entry: Entry | None) -> None:
        numbers, snapshots = self._changes.setdefault(key, ([], []))
        now = astuple(entry) if entry is not None else None
        if now != (snapshots[-1] if snapshots else None):
            numbers.append(number)
            snapshots.append(now)

    def before(self, key: Key, number: int) -> Snapshot:
        """The entry as the steps before the `number`-th left it."""
        numbers, snapshots = self._changes.get(key, ([], []))
        at = bisect_left(numbers, number)
        return snapshots[at - 1] if at else None

    def next_reader(self, key: Key, number: int) -> int | None:
        """The first step after the `number`-th that looks at an entry."""
        readers = self._readers.get(key, [])
        at = bisect_right(readers, number)
        return readers[at] if at < len(readers) else None

    def seen_after(self, snapshot: Snapshot, number: int) -> Snapshot:
        """An entry as far as it matters to the steps after the `number`-th: equal ones serve them equally."""
        if snapshot is None:
            return None
        start = self._starts_after[number]
        minimum, ttl, ttl_s, started, touched, readable_at = snapshot
        if start - touched >= ttl_s:
            return None
        if readable_at <= start and started < start:
            return minimum, ttl, ttl_s, BEFORE_TIME, touched, BEFORE_TIME
        return snapshot

    def cost_with(self, number: int, step: PlanStep | None) -> Decimal:
        """USD of the plan with another `number`-th step; None: without it. The same as if all calls ran again."""
        if self._is_apart(number, step):
            changed = [step] if step is not None else []
            return self.evaluator.cost([*self.steps[:number], *changed, *self.steps[number + 1 :]])
        return _ChangedRun(self, number, step).usd()

    def _is_apart(self, number: int, step: PlanStep | None) -> bool:
        """Whether later calls depend on more than the entries they look at: on draws, or on who starts warm."""
        if any(one.sent.rules.assumptions.is_drawn for one in self.steps):
            return True
        return step is None and self.found[number] is not None


class _ChangedEntries(dict[Key, Entry | None]):
    """The entries that a changed plan looked at in this step, and those that differ from the plan's."""

    def __init__(self, run: PlanRun) -> None:
        super().__init__()
        self._run = run
        self.number = 0
        self.seen: set[Key] = set()

    def get(self, key: Key, default: Any = None) -> Any:
        self.seen.add(key)
        if key not in self:
            before = self._run.before(key, self.number)
            super().__setitem__(key, Entry(*before) if before is not None else None)
        return super().get(key)

    def pop(self, key: Key, default: Any = None) -> Any:
        self.seen.add(key)
        super().__setitem__(key, None)

    def __setitem__(self, key: Key, entry: Entry | None) -> None:
        self.seen.add(key)
        super().__setitem__(key, entry)


class _ChangedCache(PlanCache):
    """A cache of a changed plan. What starts warm is what started warm in the plan."""

    def __init__(self, run: PlanRun) -> None:
        super().__init__(WarmPrefixes())
        self._run = run
        self.changed = _ChangedEntries(run)
        self._entries = cast("dict[Key, Entry]", self.changed)

    def start_warm(self, prompt: Prompt, rules: ModelRules, start: float) -> None:
        self.start_with(self._run.found[self.changed.number], prompt, rules, start)


class _ChangedRun:
    """Runs a changed step, then each later one that looks at an entry which differs."""

    def __init__(self, run: PlanRun, number: int, step: PlanStep | None) -> None:
        self._run = run
        self._at, self._step = number, step
        self._cache = _ChangedCache(run)
        self._waiting = [number]

    def usd(self) -> Decimal:
        usd, last = self._run.usd, -1
        while self._waiting:
            number = heappop(self._waiting)
            if number != last:
                usd += self._run_step(number) - self._run.done[number].usd
                last = number
        return usd

    def _run_step(self, number: int) -> Decimal:
        """USD of a step as it is now."""
        entries = self._cache.changed
        entries.number = number
        entries.seen.clear()
        step = self._step if number == self._at else self._run.steps[number]
        usd = self._run.evaluator.run_step(self._cache, step).usd if step is not None else ZERO
        for key in entries.seen | self._run.seen[number]:
            self._compare(key, number)
        return usd

    def _compare(self, key: Key, number: int) -> None:
        """Forget an entry that is as the plan left it; else the next step that looks at it runs again."""
        entries, run = self._cache.changed, self._run
        if key in entries:
            entry = dict.get(entries, key)
            now = astuple(entry) if entry is not None else None
        else:
            now = run.before(key, number)
        if run.seen_after(now, number) == run.seen_after(run.before(key, number + 1), number):
            dict.pop(entries, key, None)
            return
        dict.__setitem__(entries, key, Entry(*now) if now is not None else None)
        following = run.next_reader(key, number)
        if following is not None:
            heappush(self._waiting, following)


def _least_after(starts: Sequence[float]) -> list[float]:
    """The earliest start of the steps after each one."""
    least, found = float("inf"), list[float]()
    for start in reversed(starts):
        found.append(least)
        least = min(least, start)
    return found[::-1]
