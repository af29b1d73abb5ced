"""A legal plan, made call by call: the dynamic programme of the lower bound, within the limits of the API.

The plan so far runs against a cache, so at each call the deepest live entry is known. The planner tries every end of
the blocks after it for a 1h and for a 5m write, adds the price now and what the blocks would cost by themselves from
then on, and takes the cheapest. Remaining breakpoints keep entries alive that other calls will need.

A plan as it ran, and what it costs if some of its calls change: only calls that find other entries run again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from heapq import heapify, heappop, heappush
from math import floor
from typing import Any, NamedTuple, cast

from msgspec.structs import astuple

from cachecost.analysis.optimum.plan_evaluator import (
    BareCall,
    Breakpoints,
    PlanCache,
    PlanEvaluator,
    PlanStep,
    StepResult,
    accepts_breakpoints,
)
from cachecost.analysis.optimum.tree import (
    READABLE,
    BlockRange,
    BlockState,
    CallPass,
    FutureUse,
    HeldBlock,
    Tail,
    TTLCosts,
    is_ready,
    ttl_seconds,
    write_block,
)
from cachecost.caches.breakpoints import BEFORE_TIME, CacheEntry
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import BreakpointPrefix, Prompt, is_within_lookback
from cachecost.prompts.request import TTL
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO

PlannedCall = PlanStep | BareCall
"""A call with its breakpoints, or one for which they are to be chosen."""
NOTHING_FIXED: Mapping[BareCall, Breakpoints] = {}


@dataclass(frozen=True, slots=True)
class PlannerOptions:
    """How the planner decides what the dynamic programme leaves open.

    `shares_first`: remaining breakpoints go to what other calls need soonest, else to the deepest such blocks.
    `writes_all`: every call writes its end, even if no call is known to read it.
    `only`: the only TTL to use; None: both.
    """

    shares_first: bool = True
    writes_all: bool = False
    only: TTL | None = None


class _Span(NamedTuple):
    """The tokens of blocks that the same later calls contain: from `begin` to `end` of the prompt."""

    begin: int
    end: int
    later: Tail | None


def _spans(event: CallPass, ranges: Sequence[BlockRange]) -> Iterator[_Span]:
    for one in ranges:
        begin = event.tokens(one.start.prefix) if one.start else 0
        yield _Span(begin, event.tokens(one.end.prefix), one.later)


class _SpanPrices:
    """What the blocks of a call cost now and later, USD per 10**6 tokens; `held` is the TTL of what it reads."""

    def __init__(self, ttls: TTLCosts, event: CallPass, spans: Sequence[_Span], held: TTL | None) -> None:
        self._ttls = ttls
        self._spans = spans
        self._end = max((span.end for span in spans), default=0)
        prices, start = event.sent.prices, event.start
        self._reads = [(prices.read, HeldBlock(start, ttl, READABLE, False)) for ttl in (held or "5m", "1h")]
        self._hour = prices.write_1h, write_block(event, "1h")
        self._last = prices.write_5m, write_block(event, "5m")
        self._sent = prices.input, None
        self._known: dict[tuple[int, int, BlockState], Decimal] = {}

    def price(self, read: int, hour: int, last: int) -> Decimal:
        """What is read ends after `read` tokens, what is written for 1h after `hour`, what is written at all after
        `last`; 0: there is none. USD per 10**6 tokens x tokens."""
        hour_end = max(read, hour)
        last_end = max(hour_end, last)
        return (
            self._part(0, read, *self._reads[hour > 0])
            + self._part(read, hour_end, *self._hour)
            + self._part(hour_end, last_end, *self._last)
            + self._part(last_end, self._end, *self._sent)
        )

    def _part(self, begin: int, end: int, price: Decimal, state: BlockState) -> Decimal:
        """The tokens from `begin` to `end`, which leave the blocks in a state."""
        if end <= begin:
            return ZERO
        found = self._known.get((begin, end, state))
        if found is None:
            found = ZERO
            for span in self._spans:
                count = min(end, span.end) - max(begin, span.begin)
                if count > 0:
                    found += (price + self._ttls.cost(span.later, state)) * count
            self._known[begin, end, state] = found
        return found


class Choices:
    """The breakpoints of each call for what it can read. `TTLs` gives what a block costs by itself from a call on.

    Nothing else decides, so what is found serves all plans.
    """

    def __init__(self, future: FutureUse, ttls: TTLCosts, habits: PlannerOptions = PlannerOptions()) -> None:
        self.events = future.events
        self._future = future
        self._ttls = ttls
        self._habits = habits
        self._known: dict[tuple[CallPass, Prefix | None, TTL | None], Breakpoints] = {}

    def breakpoints(self, event: CallPass, hit: Prefix | None, held: TTL | None) -> Breakpoints:
        """Those of a call that can read up to `hit`, of which the entry has the TTL `held`; None: it reads nothing."""
        known = self._known.get((event, hit, held))
        if known is None:
            ranges = self._future.ranges(event)
            ends = list(self._ends(event, ranges, hit))
            hour, last = self._best(event, ranges, hit, held, ends)
            wanted: list[Prefix] = list(dict.fromkeys(node for node in (last, hour) if node is not None))
            if hit is not None and accepts_breakpoints(hit) and not is_reached(event, wanted, hit):
                wanted.append(hit)
            for node in self._find_shared(event, ranges, last, hit):
                if node not in wanted:
                    wanted.append(node)
            if hit is not None and accepts_breakpoints(hit) and hit not in wanted:
                wanted.append(hit)
            kept = wanted[: event.sent.rules.maximum_breakpoints]
            known = tuple(self._assign_ttls(event, sorted(kept, key=lambda node: node.depth), hit, held, hour))
            self._known[event, hit, held] = known
        return known

    def _ends(self, event: CallPass, ranges: Sequence[BlockRange], hit: Prefix | None) -> Iterator[Prefix]:
        """Where a write could end: the deepest block, where calls diverge, and the first block after the hit."""
        least, depth = event.sent.rules.minimum_tokens, hit.depth if hit else 0
        found = [node for one in ranges if (node := find_markable(one.end.prefix)) is not None]
        first: Prefix | None = None
        node = event.deepest
        while node is not None and node.depth > depth and event.tokens(node) >= least:
            first = node if accepts_breakpoints(node) else first
            node = node.parent
        if first is not None:
            found.append(first)
        yield from (node for node in dict.fromkeys(found) if node.depth > depth and event.tokens(node) >= least)

    def _best(
        self,
        event: CallPass,
        ranges: Sequence[BlockRange],
        hit: Prefix | None,
        held: TTL | None,
        ends: Sequence[Prefix],
    ) -> tuple[Prefix | None, Prefix | None]:
        """The last block written with 1h, and the last one written at all; None: none is."""
        if self._habits.writes_all and ends:
            options: list[tuple[Prefix | None, Prefix | None]] = [(hour, ends[0]) for hour in (None, *ends)]
        else:
            options = [(None, None)]
            options += [
                (hour, last) for last in ends for hour in (None, *ends) if hour is None or hour.depth <= last.depth
            ]
        options = [(hour, last) for hour, last in options if self._fits(event, hour, last)]
        if len(options) < 2:
            return options[0] if options else (None, None)
        spans = _SpanPrices(self._ttls, event, list(_spans(event, ranges)), held)
        tokens = {node: event.tokens(node) if node else 0 for node in (None, hit, *ends)}
        return min(options, key=lambda one: spans.price(tokens[hit], tokens[one[0]], tokens[one[1]]))

    def _fits(self, event: CallPass, hour: Prefix | None, last: Prefix | None) -> bool:
        accepted = [self._habits.only] if self._habits.only else list(event.sent.rules.accepted_ttls)
        if hour is not None and "1h" not in accepted:
            return False
        return last is None or last is hour or "5m" in accepted

    def _find_shared(
        self, event: CallPass, ranges: Sequence[BlockRange], last: Prefix | None, hit: Prefix | None
    ) -> list[Prefix]:
        """Blocks up to the last breakpoint where a later call diverges, the most useful first."""
        depth = max((node.depth for node in (last, hit) if node), default=0)
        least = event.sent.rules.minimum_tokens
        found: list[tuple[float, int, Prefix]] = []
        for one in ranges[1:]:
            node = find_markable(one.end.prefix)
            if node is None or one.parting_s is None or node.depth > depth or event.tokens(node) < least:
                continue
            found.append((one.parting_s, -event.tokens(node), node))
        if not self._habits.shares_first:
            return [node for _, _, node in sorted(found, key=lambda one: one[1])]
        return [node for _, _, node in sorted(found, key=lambda one: one[:2])]

    def _assign_ttls(
        self, event: CallPass, nodes: Sequence[Prefix], hit: Prefix | None, held: TTL | None, hour: Prefix | None
    ) -> list[BreakpointPrefix]:
        """TTLs in the order that the API requires: 1h up to the last block that needs it, 5m after it."""
        accepted = [self._habits.only] if self._habits.only else list(event.sent.rules.accepted_ttls)
        if len(accepted) == 1:
            return [BreakpointPrefix(node, "1h" if accepted[0] == "1h" else "5m") for node in nodes]
        limit = hour.depth if hour else 0
        if hit is not None and held == "1h":
            limit = max(limit, hit.depth)
        return [BreakpointPrefix(node, "1h" if node.depth <= limit else "5m") for node in nodes]


class PlanEntries:
    """What the plan has written so far, with TTL and last use as in the cache."""

    def __init__(self, held: dict[Prefix, HeldBlock] | None = None) -> None:
        self.held: dict[Prefix, HeldBlock] = {} if held is None else held

    def alive(self, prefix: Prefix, sent: BareCall) -> HeldBlock | None:
        held = self.held.get(prefix)
        if held is None or not is_ready(held, sent.start):
            return None
        return held if sent.start - held.touched < ttl_seconds(sent, held.ttl) else None


class Planner:
    """Plans the calls of an evaluator in their order, once: from what `choices` say for what it has cached so far."""

    def __init__(
        self,
        evaluator: PlanEvaluator,
        choices: Choices,
        cache: PlanCache | None = None,
        entries: PlanEntries | None = None,
    ) -> None:
        """`cache` and `entries` are what was written before; None: nothing was."""
        self._evaluator = evaluator
        self._choices = choices
        self._cache = evaluator.new_cache() if cache is None else cache
        self._entries = PlanEntries() if entries is None else entries

    def run_step(self, call: PlannedCall) -> StepResult:
        """Choose the breakpoints of a call, if they are not given; make it, and record what it wrote and refreshed."""
        step = call if isinstance(call, PlanStep) else PlanStep(call, self._breakpoints(call))
        sent = step.sent
        done = self._evaluator.run_step(self._cache, step)
        hit = done.outcome.hit
        depth = hit.depth if hit else 0
        read = self._entries.alive(hit, sent) if hit else None
        if hit and read:
            touched = sent.start if sent.rules.refreshes_on_read else read.touched
            self._entries.held[hit] = HeldBlock(touched, read.ttl, READABLE, False)
        event = self._choices.events.get(sent)
        for breakpoint in step.breakpoints:
            if breakpoint.prefix.depth > depth:
                self._entries.held[breakpoint.prefix] = self._write_entry(sent, event, breakpoint.ttl)
            elif read:
                self._shallow(breakpoint, read, sent, event)
        return done

    def _write_entry(self, sent: BareCall, event: CallPass | None, ttl: TTL) -> HeldBlock:
        if event is not None:
            return write_block(event, ttl)
        first = sent.call.ready_s
        return HeldBlock(sent.start, ttl, sent.start + first, first <= 0)

    def _shallow(self, breakpoint: BreakpointPrefix, read: HeldBlock, sent: BareCall, event: CallPass | None) -> None:
        alive = self._entries.alive(breakpoint.prefix, sent)
        if alive:
            touched = sent.start if sent.rules.refreshes_on_read else alive.touched
            self._entries.held[breakpoint.prefix] = HeldBlock(touched, alive.ttl, READABLE, False)
        else:
            shorter: TTL = "1h" if breakpoint.ttl == read.ttl == "1h" else "5m"
            self._entries.held[breakpoint.prefix] = self._write_entry(sent, event, shorter)

    def _breakpoints(self, sent: BareCall) -> Breakpoints:
        event = self._choices.events[sent]
        if event.deepest is None:
            return ()
        if warm := self._cache.find_warm(sent.prompt):
            self._entries.held[warm.prefix] = HeldBlock(sent.start, warm.ttl, READABLE, False)
        hit = self._deepest_alive(event)
        held = self._entries.alive(hit, sent) if hit is not None else None
        return self._choices.breakpoints(event, hit, held.ttl if held is not None else None)

    def _deepest_alive(self, event: CallPass) -> Prefix | None:
        node = event.deepest
        while node is not None:
            if self._entries.alive(node, event.sent):
                return node
            node = node.parent
        return None


def calls_in_order(
    sent: Sequence[BareCall], extra: Sequence[PlanStep] = (), fixed: Mapping[BareCall, Breakpoints] = NOTHING_FIXED
) -> list[PlannedCall]:
    """The calls of a plan, with the `extra` calls in order of start and the `fixed` breakpoints."""
    waiting = sorted(extra, key=lambda step: step.sent.start)[::-1]
    made: list[PlannedCall] = []
    for one in sent:
        while waiting and waiting[-1].sent.start < one.start:
            made.append(waiting.pop())
        made.append(PlanStep(one, fixed[one]) if one in fixed else one)
    return made + waiting[::-1]


def find_markable(prefix: Prefix) -> Prefix | None:
    """The block, or the nearest one before it that may have a breakpoint."""
    node: Prefix | None = prefix
    while node is not None and not accepts_breakpoints(node):
        node = node.parent
    return node


def is_reached(event: CallPass, breakpoints: Iterable[Prefix], hit: Prefix) -> bool:
    """Whether the lookback from one of the breakpoints finds the hit (rule 9)."""
    return any(is_within_lookback(breakpoint, hit, event.sent.rules) for breakpoint in breakpoints)


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
        starts = [_sent(call).start for call in calls]
        found = [float("inf")]
        for start in reversed(starts):
            found.append(min(start, found[-1]))
        self._starts_from = found[::-1]
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
                now = snapshot_of(dict.get(entries, key))
                numbers, snapshots = self._changes.setdefault(key, ([], []))
                if now != (snapshots[-1] if snapshots else None):
                    numbers.append(number)
                    snapshots.append(now)
            self.seen.append(frozenset(entries.seen))
            self._found.append(cache.found)
        return done

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
            numbered: dict[float, PlannedCall | None] = {float(number): call for number, call in enumerate(self.calls)}
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
