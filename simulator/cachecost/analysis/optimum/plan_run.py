"""A plan as it ran, and what it costs if some of its calls change: only calls that find other entries run again.

Local search: small changes to a plan, kept if the simulation is cheaper, within a limit.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from heapq import heapify, heappop, heappush
from math import floor
from typing import cast

from cachecost.analysis.optimum.plan_evaluator import (
    BareCall,
    Breakpoints,
    PlanCache,
    PlanEvaluator,
    PlanStep,
    StepResult,
    find_markable,
)
from cachecost.analysis.optimum.planner import Choices, Call, Planner
from cachecost.caches.breakpoints import Key
from cachecost.caches.expiry import CacheEntry, has_expired
from cachecost.caches.tracking import LOOK_UP, ChangedEntries, EntryHistory, TrackedEntries, are_alike
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.providers.usage import PER_TOKEN, ZERO

Changes = Mapping[float, Call | None]
"""Other calls of a plan by their numbers, which lie between two where a call is added; None: it is not made."""
STEP = 1 / 1024
"""From the number of a call to that of the first one that is added after it, and on to the next."""


class _WatchedCache(PlanCache):
    """A cache whose entries are watched. `found` is what the last call found cached before the recording began."""

    def __init__(self, warm: WarmPrefixes, entries: TrackedEntries) -> None:
        super().__init__(warm)
        self._entries = entries
        self.found: BreakpointPrefix | None = None

    def pop_warm(self, prompt: Prompt) -> BreakpointPrefix | None:
        self.found = super().pop_warm(prompt)
        return self.found


class _ChangedCache(PlanCache):
    """The cache of a changed plan at its `number`-th call. What starts warm is what started warm in the plan."""

    def __init__(self, run: PlanRun, entries: ChangedEntries) -> None:
        super().__init__(WarmPrefixes())
        self._run = run
        self._entries = entries
        self.number = 0.0

    def find_warm(self, prompt: Prompt) -> BreakpointPrefix | None:
        return self._run.found_by(self.number)

    pop_warm = find_warm


class PlanRun:
    """A run of calls, whose breakpoints are given or chosen: the result of each in `done`, and their `usd` with
    answers."""

    def __init__(self, evaluator: PlanEvaluator, calls: Sequence[Call], choices: Choices | None = None) -> None:
        self.evaluator = evaluator
        self.calls = calls
        self.choices = choices
        starts = [_sent(call).start for call in calls]
        found = [float("inf")]
        for start in reversed(starts):
            found.append(min(start, found[-1]))
        self._starts_from = found[::-1]
        self.seen: list[frozenset[Key]] = []
        self.history = EntryHistory()
        self._found: list[BreakpointPrefix | None] = []
        self._readers: dict[Key, list[int]] = {}
        self.done = self._run()
        self.usd = sum((one.usd for one in self.done), ZERO)

    @property
    def steps(self) -> list[PlanStep]:
        """The plan."""
        return [one.step for one in self.done]

    def _run(self) -> list[StepResult]:
        entries, done = TrackedEntries(), list[StepResult]()
        cache = _WatchedCache(self.evaluator.warm.copy(), entries)
        run_step = self.runner(cache)
        for number, call in enumerate(self.calls):
            entries.used = set()
            done.append(run_step(call))
            for key in entries.used:
                self._readers.setdefault(key, []).append(number)
                self.history.add(key, number, LOOK_UP(entries, key))
            self.seen.append(frozenset(entries.used))
            self._found.append(cache.found)
        return done

    def runner(self, cache: PlanCache) -> Callable[[Call], StepResult]:
        """Makes calls against a cache, whose breakpoints are given, or chosen."""
        if self.choices is not None:
            return Planner(self.evaluator, self.choices, cache).run_step
        return lambda call: self.evaluator.run_step(cache, cast("PlanStep", call))

    def next_reader(self, key: Key, number: float) -> int | None:
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

    def changes_to(self, calls: Sequence[Call]) -> Changes:
        """The changes to calls that have more among them, or other breakpoints."""
        changes: dict[float, Call | None] = {}
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
            numbered: dict[float, Call | None] = {float(number): call for number, call in enumerate(self.calls)}
            numbered.update(changes)
            return PlanRun(
                self.evaluator,
                [call for _, call in sorted(numbered.items(), key=lambda one: one[0]) if call is not None],
                self.choices,
            ).usd
        return _ChangedRun(self, changes).usd()

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
                warm.pop(_sent(call).prompt)
        return warm.find(sent.prompt) is not None


class _ChangedRun:
    """Runs the changed calls, then each later one that looks at an entry which differs."""

    def __init__(self, run: PlanRun, changes: Changes) -> None:
        self._run = run
        self._new = changes
        self._entries = ChangedEntries(run.history)
        self._cache = _ChangedCache(run, self._entries)
        self._make_call = run.runner(self._cache)
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
        self._cache.number = number
        entries.position, entries.used = number - STEP / 2, set()
        is_old = number.is_integer()
        call = self._new[number] if number in self._new else run.calls[int(number)]
        usd = self._make_call(call).usd if call is not None else ZERO
        start = min([run.start_after(number), *(start for other, start in self._added if other > number)])
        now = [(key, entries.look_up(key)) for key in entries.used | (run.seen[int(number)] if is_old else set())]
        entries.position = number
        for key, entry in now:
            self._settle(key, entry, start)
        return usd - run.done[int(number)].usd if is_old else usd

    def _settle(self, key: Key, entry: CacheEntry | None, start: float) -> None:
        """Forget an entry that is as the plan left it; else the next call that looks at it runs again."""
        number, before = self._entries.position, self._run.history.at(key, self._entries.position)
        is_as_before = are_alike(_unless_expired(entry, start), _unless_expired(before, start), start)
        self._entries.settle(key, is_as_before)
        following = None if is_as_before else self._run.next_reader(key, number)
        if following is not None:
            heappush(self._waiting, float(following))


def _unless_expired(entry: CacheEntry | None, now: float) -> CacheEntry | None:
    return None if entry is None or has_expired(now, entry.touched, entry.ttl_s) else entry


def _sent(call: Call) -> BareCall:
    return call.sent if isinstance(call, PlanStep) else call


LEAST, MOST, CALLS = 40, 600, 150_000
TriedPlan = Callable[[str, int], None]
"""Called for each plan that was tried: what was tried, and how many such plans there are at most."""


def rounds(calls: int) -> int:
    """How many changed plans to try: at most 600, fewer for long recordings."""
    return max(LEAST, min(MOST, CALLS // max(1, calls)))


def improve_plan(
    evaluator: PlanEvaluator, steps: Sequence[PlanStep], lower_bound: Decimal, progress: TriedPlan
) -> tuple[list[PlanStep], Decimal]:
    """The plan after all changes that helped, and its USD. Stops at the lower bound."""
    run = PlanRun(evaluator, steps)
    left = most = rounds(len(steps))
    found = True
    while found and left and run.usd > lower_bound:
        found = False
        for number, changed in plan_changes(run):
            left -= 1
            tried = run.cost_with({float(number): changed})
            progress("improvements", most)
            if tried < run.usd:
                steps = run.steps
                steps[number : number + 1] = [] if changed is None else [changed]
                run, found = PlanRun(evaluator, steps), True
                break
            if not left:
                break
    return run.steps, run.usd


def plan_changes(run: PlanRun) -> Iterator[tuple[int, PlanStep | None]]:
    """Changed steps by their numbers, those first that paid most for what they did not read; None: not made."""
    order = sorted(range(len(run.done)), key=lambda number: -_unread_usd(run.done[number]))
    for number in order:
        step = run.done[number].step
        if step.sent.is_extra:
            yield number, None
        for breakpoints in _other_breakpoints(step):
            yield number, PlanStep(step.sent, breakpoints)


def _unread_usd(done: StepResult) -> Decimal:
    return done.usd - done.step.sent.output_usd - done.usage.read * done.step.sent.prices.read.scaleb(PER_TOKEN)


def _other_breakpoints(step: PlanStep) -> Iterator[Breakpoints]:
    """One breakpoint fewer, another TTL up to or from one, one a block further up, or one more at the end."""
    breakpoints, accepted = step.breakpoints, step.sent.rules.accepted_ttls
    for number in range(len(breakpoints)):
        yield (*breakpoints[:number], *breakpoints[number + 1 :])
    for number, breakpoint in enumerate(breakpoints):
        if breakpoint.ttl == "5m" and "1h" in accepted:
            yield tuple(BreakpointPrefix(one.prefix, "1h") if n <= number else one for n, one in enumerate(breakpoints))
        if breakpoint.ttl == "1h" and "5m" in accepted:
            yield tuple(BreakpointPrefix(one.prefix, "5m") if n >= number else one for n, one in enumerate(breakpoints))
    yield from _move_breakpoints(step)


def _move_breakpoints(step: PlanStep) -> Iterator[Breakpoints]:
    breakpoints = step.breakpoints
    end = find_markable(step.sent.prompt.end)
    if (
        end is not None
        and len(breakpoints) < step.sent.rules.maximum_breakpoints
        and all(one.prefix is not end for one in breakpoints)
    ):
        yield (*breakpoints, BreakpointPrefix(end, "5m" if "5m" in step.sent.rules.accepted_ttls else "1h"))
    for number, breakpoint in enumerate(breakpoints):
        above = find_markable(breakpoint.prefix.parent)
        if above is not None and all(one.prefix is not above for one in breakpoints):
            yield (*breakpoints[:number], BreakpointPrefix(above, breakpoint.ttl), *breakpoints[number + 1 :])
