"""A plan as it ran, and what it costs if some of its calls change: only calls that find other entries run again; the
local search that keeps small changes to a plan where the simulation is cheaper."""

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
)
from cachecost.analysis.optimum.planner import Choices, PlanCall, Planner
from cachecost.caches.breakpoints import Key
from cachecost.caches.expiry import CacheEntry, has_expired
from cachecost.caches.tracking import LOOK_UP, ChangedEntries, EntryHistory, TrackedEntries, are_alike
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.changes.places import find_markable
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.providers.usage import PER_TOKEN, ZERO

Changes = Mapping[float, PlanCall | None]
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

    def __init__(self, evaluator: PlanEvaluator, calls: Sequence[PlanCall], choices: Choices | None = None) -> None:
        self.evaluator = evaluator
        self.calls = calls
        self.choices = choices
        starts = [_sent(call).start for call in calls]
        found = [float("inf")]
        for start in reversed(starts):
            found.append(min(start, found[-1]))
        self.starts_from = found[::-1]
        self.seen: list[frozenset[Key]] = []
        self.history = EntryHistory()
        self._found: list[BreakpointPrefix | None] = []
        self.readers: dict[Key, list[int]] = {}
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
                self.readers.setdefault(key, []).append(number)
                self.history.add(key, number, LOOK_UP(entries, key))
            self.seen.append(frozenset(entries.used))
            self._found.append(cache.found)
        return done

    def runner(self, cache: PlanCache) -> Callable[[PlanCall], StepResult]:
        """Makes calls against a cache, whose breakpoints are given, or chosen."""
        if self.choices is not None:
            return Planner(self.evaluator, self.choices, cache).run_step
        return lambda call: self.evaluator.run_step(cache, cast("PlanStep", call))

    def found_by(self, number: float) -> BreakpointPrefix | None:
        """What a call found cached before the recording began. Those that are added find nothing."""
        return self._found[int(number)] if number.is_integer() else None

    def changes_to(self, calls: Sequence[PlanCall]) -> Changes:
        """The changes to calls that have more among them, or other breakpoints."""
        changes: dict[float, PlanCall | None] = {}
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
        if not self._is_apart(changes):
            return _changed_usd(self, changes)
        numbered: dict[float, PlanCall | None] = {float(number): call for number, call in enumerate(self.calls)}
        numbered.update(changes)
        calls = [call for _, call in sorted(numbered.items(), key=lambda one: one[0]) if call is not None]
        return PlanRun(self.evaluator, calls, self.choices).usd

    def _is_apart(self, changes: Changes) -> bool:
        """Whether later calls depend on more than the entries they look at: on draws, or on who starts warm."""
        if any(_sent(call).rules.assumptions.is_drawn for call in self.calls):
            return True
        for number, call in changes.items():
            if call is None and self.found_by(number) is not None:
                return True
            if call is not None and not number.is_integer():
                # Whether it is the first to send what was cached before the recording began.
                warm = self.evaluator.warm.copy()
                for earlier, found in zip(self.calls[: max(0, floor(number) + 1)], self._found, strict=False):
                    if found is not None:
                        warm.pop(_sent(earlier).prompt)
                if warm.find(_sent(call).prompt) is not None:
                    return True
        return False


def _changed_usd(run: PlanRun, changes: Changes) -> Decimal:
    """USD of a plan after its changed calls have run, then each later one that looks at an entry which differs."""
    entries = ChangedEntries(run.history)
    cache = _ChangedCache(run, entries)
    make_call = run.runner(cache)
    waiting = list(changes)
    heapify(waiting)
    new = [(number, _sent(call).start) for number, call in changes.items() if call is not None]
    added = [(number, start) for number, start in new if not number.is_integer()]
    usd, last = run.usd, -2.0
    while waiting:
        number = heappop(waiting)
        if number == last:
            continue
        cache.number = last = number
        entries.position, entries.used = number - STEP / 2, set()
        call = changes[number] if number in changes else run.calls[int(number)]
        usd += make_call(call).usd if call is not None else ZERO
        used = entries.used
        if number.is_integer():
            usd -= run.done[int(number)].usd
            used = used | run.seen[int(number)]
        start = min([run.starts_from[floor(number) + 1], *(start for other, start in added if other > number)])
        now = [(key, entries.look_up(key)) for key in used]
        entries.position = number
        for key, entry in now:
            # An entry that is as the plan left it is forgotten; else the next call that looks at it runs again.
            before = run.history.at(key, number)
            is_as_before = are_alike(_unless_expired(entry, start), _unless_expired(before, start), start)
            entries.settle(key, is_as_before)
            readers = run.readers.get(key, []) if not is_as_before else []
            following = bisect_right(readers, number)
            if following < len(readers):
                heappush(waiting, float(readers[following]))
    return usd


def _unless_expired(entry: CacheEntry | None, now: float) -> CacheEntry | None:
    return None if entry is None or has_expired(now, entry.touched, entry.ttl_s) else entry


def _sent(call: PlanCall) -> BareCall:
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

    def unread_usd(number: int) -> Decimal:
        done = run.done[number]
        return done.usd - done.step.sent.output_usd - done.usage.read * done.step.sent.prices.read.scaleb(PER_TOKEN)

    for number in sorted(range(len(run.done)), key=lambda number: -unread_usd(number)):
        step = run.done[number].step
        if step.sent.is_extra:
            yield number, None
        for breakpoints in _other_breakpoints(step):
            yield number, PlanStep(step.sent, breakpoints)


def _other_breakpoints(step: PlanStep) -> Iterator[Breakpoints]:
    """One breakpoint fewer, another TTL up to or from one, one more at the end, or one a block further up."""
    breakpoints, rules = step.breakpoints, step.sent.rules
    for number in range(len(breakpoints)):
        yield (*breakpoints[:number], *breakpoints[number + 1 :])
    for number, breakpoint in enumerate(breakpoints):
        if breakpoint.ttl == "5m" and "1h" in rules.accepted_ttls:
            yield tuple(BreakpointPrefix(one.prefix, "1h") if n <= number else one for n, one in enumerate(breakpoints))
        if breakpoint.ttl == "1h" and "5m" in rules.accepted_ttls:
            yield tuple(BreakpointPrefix(one.prefix, "5m") if n >= number else one for n, one in enumerate(breakpoints))
    taken = {one.prefix for one in breakpoints}
    end = find_markable(step.sent.prompt.end)
    if end is not None and len(breakpoints) < rules.maximum_breakpoints and end not in taken:
        yield (*breakpoints, BreakpointPrefix(end, "5m" if "5m" in rules.accepted_ttls else "1h"))
    for number, breakpoint in enumerate(breakpoints):
        above = find_markable(breakpoint.prefix.parent)
        if above is not None and above not in taken:
            yield (*breakpoints[:number], BreakpointPrefix(above, breakpoint.ttl), *breakpoints[number + 1 :])
