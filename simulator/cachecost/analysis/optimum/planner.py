"""A legal plan, made call by call: the dynamic programme of the lower bound, within the limits of the API.

The plan so far runs against a cache, so at each call the deepest live entry is known. The planner tries every end of
the blocks after it for a 1h and for a 5m write, adds the price now and what the blocks would cost by themselves from
then on, and takes the cheapest. Remaining breakpoints keep entries alive that other calls will need.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from operator import itemgetter

from cachecost.analysis.optimum.plan_evaluator import (
    BareCall,
    Breakpoints,
    PlanCache,
    PlanEvaluator,
    PlanStep,
    StepResult,
)
from cachecost.analysis.optimum.tree import BlockRange, CallPass, FutureUse
from cachecost.analysis.optimum.ttl_costs import BlockState, HeldBlock, TTLCosts, write_block
from cachecost.changes.places import accepts_breakpoints, find_markable
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import BreakpointPrefix, is_within_lookback
from cachecost.prompts.request import TTL
from cachecost.providers.usage import ZERO

PlanCall = PlanStep | BareCall
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


class _SpanPrices:
    """What the blocks of a call cost now and later, USD per 10**6 tokens; `held` is the TTL of what it reads."""

    def __init__(self, ttls: TTLCosts, event: CallPass, ranges: Sequence[BlockRange], held: TTL | None) -> None:
        self._ttls = ttls
        # The tokens of blocks that the same later calls contain: from where to where in the prompt.
        self._spans = [
            (event.tokens(one.start.prefix) if one.start else 0, event.tokens(one.end.prefix), one.later)
            for one in ranges
        ]
        self._end = max((span_end for _, span_end, _ in self._spans), default=0)
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
        if end <= begin:
            return ZERO
        found = self._known.get((begin, end, state))
        if found is None:
            found = ZERO
            for span_begin, span_end, later in self._spans:
                count = min(end, span_end) - max(begin, span_begin)
                if count > 0:
                    found += (price + self._ttls.cost(later, state)) * count
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
            # Blocks up to the last breakpoint where a later call diverges, the most useful first.
            depth = max((node.depth for node in (last, hit) if node), default=0)
            shared: list[tuple[float, int, Prefix]] = []
            for one in ranges[1:]:
                parted = find_markable(one.end.prefix)
                if parted is None or one.parting_s is None or parted.depth > depth:
                    continue
                tokens = event.tokens(parted)
                shared += [(one.parting_s, -tokens, parted)] if tokens >= event.sent.rules.minimum_tokens else []
            shared.sort(key=itemgetter(0, 1) if self._habits.shares_first else itemgetter(1))
            wanted = list(dict.fromkeys([*wanted, *(node for *_, node in shared)]))
            if hit is not None and accepts_breakpoints(hit) and hit not in wanted:
                wanted.append(hit)
            kept = sorted(wanted[: event.sent.rules.maximum_breakpoints], key=lambda node: node.depth)
            # In the order that the API requires: 1h up to the last block that needs it, 5m after it.
            accepted, limit = self._accepted_ttls(event), hour.depth if hour else 0
            limit = max(limit, hit.depth) if hit is not None and held == "1h" else limit
            limit = limit if len(accepted) != 1 else kept[-1].depth if kept and accepted[0] == "1h" else -1
            known = tuple([BreakpointPrefix(node, "1h" if node.depth <= limit else "5m") for node in kept])
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
        accepted = self._accepted_ttls(event)
        hours = (None, *ends) if "1h" in accepted else (None,)
        options: list[tuple[Prefix | None, Prefix | None]] = []
        if self._habits.writes_all and ends:
            options += [(hour, ends[0]) for hour in hours]
        else:
            options.append((None, None))
            options += [(hour, last) for last in ends for hour in hours if hour is None or hour.depth <= last.depth]
        if "5m" not in accepted:
            options = [(hour, last) for hour, last in options if last is hour]
        if len(options) < 2:
            return options[0] if options else (None, None)
        spans = _SpanPrices(self._ttls, event, ranges, held)
        tokens = {node: event.tokens(node) if node else 0 for node in (None, hit, *ends)}
        return min(options, key=lambda one: spans.price(tokens[hit], tokens[one[0]], tokens[one[1]]))

    def _accepted_ttls(self, event: CallPass) -> list[str]:
        return [self._habits.only] if self._habits.only else list(event.sent.rules.accepted_ttls)


class Planner:
    """Plans the calls of an evaluator in their order, once: from what `choices` say for what its cache has so far."""

    def __init__(self, evaluator: PlanEvaluator, choices: Choices, cache: PlanCache | None = None) -> None:
        """`cache` has what was written before; None: nothing was."""
        self._evaluator = evaluator
        self._choices = choices
        self._cache = evaluator.new_cache() if cache is None else cache

    def run_step(self, call: PlanCall) -> StepResult:
        """Choose the breakpoints of a call, if they are not given, and make it."""
        if isinstance(call, PlanStep):
            return self._evaluator.run_step(self._cache, call)
        event, breakpoints = self._choices.events[call], Breakpoints()
        if event.deepest is not None:  # those that follow from the deepest entry that the call can read, and its TTL
            warm = self._cache.find_warm(call.prompt)
            hit: tuple[Prefix, TTL] | tuple[None, None] = (None, None)
            if warm is not None and warm.prefix.depth <= event.deepest.depth:
                hit = warm.prefix, warm.ttl
            for node, entry in self._cache.entries_back(event.deepest, hit[0].depth if hit[0] else 0, call.rules):
                if entry.state(call.start) == "live":
                    hit = node, "1h" if entry.ttl == "1h" else "5m"
                    break
            breakpoints = self._choices.breakpoints(event, *hit)
        return self._evaluator.run_step(self._cache, PlanStep(call, breakpoints))


def calls_in_order(
    sent: Sequence[BareCall], extra: Sequence[PlanStep] = (), fixed: Mapping[BareCall, Breakpoints] = NOTHING_FIXED
) -> list[PlanCall]:
    """The calls of a plan, with the `extra` calls in order of start and the `fixed` breakpoints."""
    waiting = sorted(extra, key=lambda step: step.sent.start)[::-1]
    made: list[PlanCall] = []
    for one in sent:
        while waiting and waiting[-1].sent.start < one.start:
            made.append(waiting.pop())
        made.append(PlanStep(one, fixed[one]) if one in fixed else one)
    return made + waiting[::-1]


def is_reached(event: CallPass, breakpoints: Iterable[Prefix], hit: Prefix) -> bool:
    """Whether the lookback from one of the breakpoints finds the hit (rule 9)."""
    return any(is_within_lookback(breakpoint, hit, event.sent.rules) for breakpoint in breakpoints)
