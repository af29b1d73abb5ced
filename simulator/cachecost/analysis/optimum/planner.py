"""A legal plan, made call by call: the dynamic programme of the lower bound, within the limits of the API.

The plan so far runs against a cache, so at each call the deepest live entry is known. The planner tries every end of
the blocks after it for a 1h and for a 5m write, adds the price now and what the blocks would cost by themselves from
then on, and takes the cheapest. Remaining breakpoints keep entries alive that other calls will need.

A plan as it ran, and what it costs if some of its calls change: only calls that find other entries run again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from heapq import heapify, heappop, heappush
from math import floor
from typing import NamedTuple, cast

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
    BlockRange,
    BlockState,
    CallPass,
    FutureUse,
    HeldBlock,
    Tail,
    TTLCosts,
    write_block,
)
from cachecost.caches.breakpoints import Key
from cachecost.caches.expiry import CacheEntry, has_expired
from cachecost.caches.tracking import LOOK_UP, ChangedEntries, EntryHistory, TrackedEntries, are_alike
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.exact_json import is_within_lookback
from cachecost.prompts.render import BreakpointPrefix, Prompt
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
        self._reads = [(prices.read, HeldBlock(start, ttl)) for ttl in (held or "5m", "1h")]
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


class Planner:
    """Plans the calls of an evaluator in their order, once: from what `choices` say for what its cache has so far."""

    def __init__(self, evaluator: PlanEvaluator, choices: Choices, cache: PlanCache | None = None) -> None:
        """`cache` has what was written before; None: nothing was."""
        self._evaluator = evaluator
        self._choices = choices
        self._cache = evaluator.new_cache() if cache is None else cache

    def run_step(self, call: PlannedCall) -> StepResult:
        """Choose the breakpoints of a call, if they are not given, and make it."""
        step = call if isinstance(call, PlanStep) else PlanStep(call, self._breakpoints(call))
        return self._evaluator.run_step(self._cache, step)

    def _breakpoints(self, sent: BareCall) -> Breakpoints:
        event = self._choices.events[sent]
        if event.deepest is None:
            return ()
        return self._choices.breakpoints(event, *self._deepest_live(event.deepest, sent))

    def _deepest_live(self, end: Prefix, sent: BareCall) -> tuple[Prefix | None, TTL | None]:
        """The deepest entry up to `end` that a call can read, and its TTL; None: there is none."""
        warm = self._cache.find_warm(sent.prompt)
        if warm is not None and warm.prefix.depth > end.depth:
            warm = None
        for node, entry in self._cache.entries_back(end, warm.prefix.depth if warm else 0, sent.rules):
            if entry.state(sent.start) == "live":
                return node, "1h" if entry.ttl == "1h" else "5m"
        return (warm.prefix, warm.ttl) if warm else (None, None)


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


Changes = Mapping[float, PlannedCall | None]
"""Other calls of a plan by their numbers, which lie between two where a call is added; None: it is not made."""
STEP = 1 / 1024
"""From the number of a call to that of the first one that is added after it, and on to the next."""


class _WatchedCache(PlanCache):
    """A cache whose entries are watched. `found` is what the last call found cached before the recording began."""

    def __init__(self, warm: WarmPrefixes, entries: TrackedEntries) -> None:
        super().__init__(warm)
        self._entries = entries
        self.found: BreakpointPrefix | None = None

    def start_warm(self, prompt: Prompt, rules: ModelRules, start: float) -> None:
        self.found = self.find_warm(prompt)
        super().start_warm(prompt, rules, start)


class _ChangedCache(PlanCache):
    """The cache of a changed plan at its `number`-th call. What starts warm is what started warm in the plan."""

    def __init__(self, run: PlanRun, entries: ChangedEntries) -> None:
        super().__init__(WarmPrefixes())
        self._run = run
        self._entries = entries
        self.number = 0.0

    def find_warm(self, prompt: Prompt) -> BreakpointPrefix | None:
        return self._run.found_by(self.number)

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

    def runner(self, cache: PlanCache) -> Callable[[PlannedCall], StepResult]:
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


def _sent(call: PlannedCall) -> BareCall:
    return call.sent if isinstance(call, PlanStep) else call
