"""Additional calls: keep-alives that refresh an entry, and calls that write a prefix before it is needed.

The exact optimum of small cases: every legal set of breakpoints in every call, unless a bound rules it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import combinations

from cachecost.analysis.optimum.lower_bound import are_alike, cheapest, fixed_usd, own_tokens
from cachecost.analysis.optimum.plan_evaluator import (
    NO_BREAKPOINTS,
    BareCall,
    Breakpoints,
    PlanCache,
    PlanEvaluator,
    PlanStep,
    StepResult,
    accepts_breakpoints,
    deepest,
)
from cachecost.analysis.optimum.tree import (
    BlockNode,
    BlockState,
    BlockTree,
    HeldBlock,
    Tail,
    TTLCosts,
    merge_entries,
    ttl_seconds,
)
from cachecost.caches.expiry import CacheEntry
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.conversations.calls import derive_call
from cachecost.prompts.blocks import Layer, Message, Prefix, Thread
from cachecost.prompts.render import BreakpointPrefix
from cachecost.prompts.request import TTL, Request, text_block
from cachecost.providers.usage import PER_TOKEN, ZERO
from cachecost.strategies.changes.keepalive import needs_output

MOST_CALLS, MOST_BLOCKS, MOST_TRIES = 8, 12, 60_000


@dataclass(frozen=True, slots=True)
class PlanSlot:
    """A call that is made, or with `is_optional` one that may be. Of those of a `train` all are made, with the same one
    of its `choices` of breakpoints, or none is."""

    step: PlanStep
    is_optional: bool = False
    train: int | None = None
    choices: tuple[Breakpoints, ...] = ()


@dataclass(frozen=True, slots=True)
class ExactPlan:
    """The cheapest plan found, and whether the search finished, so that none is cheaper."""

    steps: list[PlanStep] | None
    usd: Decimal
    is_finished: bool


@dataclass(slots=True)
class _PartialPlan:
    """The plan of the first calls, the cache after them, and what they cost; the trains that have begun and go on."""

    cache: PlanCache
    usd: Decimal
    steps: tuple[PlanStep, ...]
    trains: frozenset[tuple[int, Breakpoints]] = frozenset()


def is_small(evaluator: PlanEvaluator) -> bool:
    """Whether the exact search is worth starting."""
    few = len(evaluator.sent) <= MOST_CALLS and all(len(sent.passes) == 1 for sent in evaluator.sent)
    return few and all(sent.prompt.end.depth <= MOST_BLOCKS for sent in evaluator.sent)


def exact(
    evaluator: PlanEvaluator, slots: Sequence[PlanSlot], known_usd: Decimal, most_tries: int = MOST_TRIES
) -> ExactPlan:
    """The cheapest legal plan of `slots`, in their order, if it is cheaper than `known_usd`; else no steps."""
    return _Search(evaluator, slots, known_usd, most_tries).search()


class _Search:
    def __init__(
        self, evaluator: PlanEvaluator, slots: Sequence[PlanSlot], known_usd: Decimal, most_tries: int
    ) -> None:
        self._evaluator = evaluator
        self._slots = slots
        self._best = ExactPlan(None, known_usd, True)
        self._left = most_tries
        trains = [slot.train for slot in slots]
        self._begins = [one is not None and one not in trains[:number] for number, one in enumerate(trains)]
        self._ends = [one is not None and one not in trains[number + 1 :] for number, one in enumerate(trains)]
        has_extras = any(slot.is_optional for slot in slots)
        self._bounds = [_Bound(evaluator, slots[number:], has_extras) for number in range(len(slots) + 1)]

    def search(self) -> ExactPlan:
        grown = [_PartialPlan(self._evaluator.new_cache(), ZERO, ())]
        for number, slot in enumerate(self._slots):
            grown = self._next(number, slot, grown)
        for one in grown:
            if one.usd < self._best.usd:
                self._best = ExactPlan(list(one.steps), one.usd, True)
        return replace(self._best, is_finished=self._left > 0)

    def _next(self, number: int, slot: PlanSlot, grown: list[_PartialPlan]) -> list[_PartialPlan]:
        bound = self._bounds[number + 1]
        kept: dict[tuple[frozenset[tuple[object, ...]], frozenset[tuple[int, Breakpoints]]], _PartialPlan] = {}
        for one in grown:
            for made in self._options(number, slot, one):
                if self._left <= 0:
                    return list(kept.values())
                if made.usd >= self._best.usd:
                    continue
                key = bound.useful_entries(made.cache), made.trains
                if key in kept and kept[key].usd <= made.usd:
                    continue
                if made.usd + bound.usd(made.cache) < self._best.usd:
                    kept[key] = made
        return list(kept.values())

    def _options(self, number: int, slot: PlanSlot, one: _PartialPlan) -> Iterator[_PartialPlan]:
        begun = [breakpoints for train, breakpoints in one.trains if train == slot.train]
        if slot.is_optional and not begun:
            yield one
        if slot.train is None:
            choices: Iterable[Breakpoints] = breakpoint_sets(slot.step)
        else:
            choices = slot.choices if self._begins[number] else begun
        for breakpoints in choices:
            self._left -= 1
            cache, step = one.cache.copy(), PlanStep(slot.step.sent, breakpoints)
            usd = one.usd + self._evaluator.run_step(cache, step).usd
            trains = one.trains
            if slot.train is not None:
                here = frozenset({(slot.train, breakpoints)})
                trains = trains - here if self._ends[number] else trains | here
            yield _PartialPlan(cache, usd, (*one.steps, step), trains)


def breakpoint_sets(step: PlanStep) -> Iterator[Breakpoints]:
    """Every legal set of breakpoints on a call, without those below the minimum, which change nothing."""
    sent, nodes = step.sent, list[Prefix]()
    node: Prefix | None = sent.prompt.end
    while node is not None:
        if accepts_breakpoints(node) and sent.sizes.of(node) >= sent.rules.minimum_tokens:
            nodes.append(node)
        node = node.parent
    nodes.reverse()
    yield NO_BREAKPOINTS
    for count in range(1, sent.rules.maximum_breakpoints + 1):
        for chosen in combinations(nodes, count):
            for hours in range(count + 1):
                ttls = ["1h"] * hours + ["5m"] * (count - hours)
                if set(ttls) <= set(sent.rules.accepted_ttls):
                    yield tuple(
                        BreakpointPrefix(prefix, "1h" if number < hours else "5m")
                        for number, prefix in enumerate(chosen)
                    )


class _Bound:
    """A lower bound of the cost of the remaining calls, given what is cached before them."""

    def __init__(self, evaluator: PlanEvaluator, slots: Sequence[PlanSlot], has_extras: bool) -> None:
        sent = [slot.step.sent for slot in slots if not slot.is_optional]
        tree = BlockTree(sent)
        self.start = slots[0].step.sent.start if slots else float("inf")
        self._ttls = TTLCosts(cheapest(evaluator), has_extras, is_generous=True)
        self._fixed = fixed_usd(tree) + sum((one.output_usd for one in sent), ZERO)
        self._are_alike = are_alike(evaluator)
        self._tails = [(node, node.own) for node in tree.nodes.values() if node.own is not None]
        everything = BlockTree([slot.step.sent for slot in slots])
        self.prefixes = frozenset(everything.nodes)

    def useful_entries(self, cache: PlanCache) -> frozenset[tuple[object, ...]]:
        """The cached entries that can matter to these calls. Caches for which it is equal serve them equally."""
        return frozenset(
            (key, entry.ttl, entry.touched, entry.started, entry.readable_at)
            for key, entry in cache.entries()
            if key[0] in self.prefixes and entry.state(self.start) != "expired"
        )

    def usd(self, cache: PlanCache) -> Decimal:
        if not self._are_alike:
            return self._fixed
        states: dict[Prefix, BlockState] = {}
        for (prefix, _), entry in cache.entries():
            node: Prefix | None = prefix if entry.state(self.start) != "expired" else None
            block = HeldBlock(entry.touched, "1h" if entry.ttl == "1h" else "5m", entry.readable_at, entry.started)
            while node is not None:
                states[node] = merge_entries(block, states.get(node))
                node = node.parent
        return self._fixed + sum((self._cost(node, tail, states) for node, tail in self._tails), ZERO).scaleb(PER_TOKEN)

    def _cost(self, node: BlockNode, tail: Tail, states: dict[Prefix, BlockState]) -> Decimal:
        return self._ttls.cost(tail, states.get(node.prefix)) * own_tokens(node)


MOST_PINGS = 60
"""In one pause: more have never paid off at any price so far (a 1h entry through two and a half days)."""
WARM_S = 5.0


class TouchTrackingCache(PlanCache):
    """A cache that records which step used each entry last, and the entry after it."""

    def __init__(self, warm: WarmPrefixes) -> None:
        super().__init__(warm)
        self._by: dict[Prefix, tuple[PlanStep, TTL, CacheEntry]] = {}

    def take(self, done: StepResult) -> None:
        """Record what a step used: its breakpoints, and its hit."""
        rules, hit = done.step.sent.rules, done.outcome.hit
        touched = [(breakpoint.prefix, breakpoint.ttl) for breakpoint in done.step.breakpoints]
        if hit is not None and hit in self._by:
            touched.append((hit, self._by[hit][1]))
        for prefix, ttl in touched:
            if self.state(prefix, ttl, rules, done.step.sent.start) != "absent":
                self._by[prefix] = (done.step, ttl, copy(self.entry(prefix, ttl, rules)))

    def before(self, prefix: Prefix) -> CacheEntry | None:
        """The entry at `prefix` as the previous step left it."""
        return self._by[prefix][2] if prefix in self._by else None

    def toucher(self, prefix: Prefix) -> PlanStep | None:
        return self._by[prefix][0] if prefix in self._by else None


@dataclass(frozen=True, slots=True)
class Proposal:
    """Additional calls that may pay off, and the breakpoints that calls of the plan need then."""

    extra: list[PlanStep]
    fixed: dict[BareCall, Breakpoints] = field(default_factory=dict)


def proposals(evaluator: PlanEvaluator, tree: BlockTree, steps: Sequence[PlanStep]) -> Iterator[Proposal]:
    """What may pay off: keep-alives for each entry that expired, and a call ahead of calls that start together."""
    cache = TouchTrackingCache(evaluator.warm.copy())
    known = {event.sent: event.known for event in reversed(tree.events)}
    before: PlanStep | None = None
    warmed: set[Prefix] = set()
    for step in steps:
        done = evaluator.run_step(cache, step)
        if not step.sent.is_extra:
            yield from _trains(evaluator, cache, done)
            node = _find_shared_prefix(done, before, known)
            if node is not None and before is not None and node not in warmed:
                warmed.add(node)
                at = before.sent.start - max(WARM_S, before.sent.call.first_token_s + 1)
                ttl: TTL = "5m" if "5m" in before.sent.rules.accepted_ttls else "1h"
                warm = extra(evaluator, before.sent, (BreakpointPrefix(node, ttl),), at, "warm")
                yield from _propose([warm] if warm else [], {})
            before = before if before is not None and _together(before, step) else step
        cache.take(done)


def _together(first: PlanStep, step: PlanStep) -> bool:
    """Whether a call starts too early to read what the first one writes."""
    start, sent = step.sent.start, first.sent
    return start < sent.start + sent.call.ready_s or start <= sent.start


def _find_shared_prefix(
    done: StepResult, before: PlanStep | None, known: Mapping[BareCall, Prefix | None]
) -> Prefix | None:
    """What a call shares with one that started at the same time, if that is more than it read."""
    if before is None or not _together(before, done.step):
        return None
    sent = done.step.sent
    node = known[sent]
    while node is not None and not accepts_breakpoints(node):
        node = node.parent
    is_long = node is not None and sent.sizes.of(node) >= max(sent.rules.minimum_tokens, done.outcome.read + 1)
    return node if is_long else None


def _trains(evaluator: PlanEvaluator, cache: TouchTrackingCache, done: StepResult) -> Iterator[Proposal]:
    """Keep-alives that bridge the pause before a call, with the entry's TTL and with 1h."""
    now = done.step.sent.start
    lost = _find_expired(cache, done)
    last = cache.toucher(lost[0]) if lost is not None else None
    if lost is None or last is None:
        return
    node, entry = lost
    ttl: TTL = "1h" if entry.ttl == "1h" else "5m"
    breakpoints = (*_before(last, node, ttl), BreakpointPrefix(node, ttl))
    yield from _propose(_train(evaluator, last.sent, breakpoints, entry.touched, now, entry.ttl_s), {})
    end = deepest(last.sent.passes[0], last.sent.rules)
    if ttl == "5m" and end is not None and "1h" in last.sent.rules.accepted_ttls and not last.sent.is_extra:
        nodes = sorted({*(breakpoint.prefix for breakpoint in last.breakpoints), end}, key=lambda one: one.depth)
        hours = tuple(BreakpointPrefix(one, "1h") for one in nodes[-last.sent.rules.maximum_breakpoints :])
        train = _train(evaluator, last.sent, hours, last.sent.start, now, ttl_seconds(last.sent, "1h"))
        yield from _propose(train, {last.sent: hours})


def train_slots(evaluator: PlanEvaluator) -> list[PlanSlot]:
    """All calls, and before each of them the trains that can keep alive what it shares with an earlier one. The number
    of their keep-alives is the least that does it, for each TTL."""
    slots = [PlanSlot(PlanStep(sent, ())) for sent in evaluator.sent]
    made: list[PlanSlot] = []
    for number, later in enumerate(evaluator.sent):
        deepest_shared = 0
        for earlier in reversed(evaluator.sent[:number]):
            nodes = [node for node in _path(later.prompt.end) if accepts_breakpoints(node) and _contains(earlier, node)]
            nodes = [node for node in nodes if later.sizes.of(node) >= later.rules.minimum_tokens]
            if not nodes or nodes[0].depth <= deepest_shared:
                continue
            deepest_shared = nodes[0].depth
            for ttl in _ttls(earlier):
                choices = tuple((BreakpointPrefix(node, ttl),) for node in nodes)
                train = _train(evaluator, earlier, choices[0], earlier.start, later.start, ttl_seconds(earlier, ttl))
                made += [PlanSlot(step, True, len(made), choices) for step in train[:1]]
                made += [PlanSlot(step, True, made[-1].train, choices) for step in train[1:]]
    return sorted([*slots, *made], key=lambda slot: slot.step.sent.start)


def _ttls(sent: BareCall) -> list[TTL]:
    known: tuple[TTL, ...] = ("5m", "1h")
    return [ttl for ttl in known if ttl in sent.rules.accepted_ttls]


def _path(end: Prefix) -> Iterator[Prefix]:
    """The blocks of a prompt, the last first."""
    node: Prefix | None = end
    while node is not None:
        yield node
        node = node.parent


def _before(step: PlanStep, node: Prefix, ttl: TTL) -> Iterator[BreakpointPrefix]:
    """The breakpoints of a step before a block: as they are, or for 1h where the block's own is (rule 6)."""
    for one in step.breakpoints:
        if one.prefix.depth < node.depth:
            yield BreakpointPrefix(one.prefix, "1h") if ttl == "1h" else one


def _propose(extra: list[PlanStep], fixed: dict[BareCall, Breakpoints]) -> Iterator[Proposal]:
    if extra:
        yield Proposal(extra, fixed)


def _find_expired(cache: TouchTrackingCache, done: StepResult) -> tuple[Prefix, CacheEntry] | None:
    sent, stop = done.step.sent, done.outcome.hit
    node: Prefix | None = sent.prompt.end
    while node is not None and node is not stop:
        entry = cache.before(node)
        if entry is not None and entry.state(sent.start) == "expired":
            return node, entry
        node = node.parent
    return None


def _train(
    evaluator: PlanEvaluator, sent: BareCall, breakpoints: Breakpoints, since: float, now: float, life: float
) -> list[PlanStep]:
    """Keep-alives spread evenly from `since` to `now`; none if so many reads cost more than a write."""
    gap = now - since
    count = int(gap // life)
    if not 0 < count <= MOST_PINGS or count * sent.prices.read >= sent.prices.write_1h:
        return []
    times = [since + gap * number / (count + 1) for number in range(1, count + 1)]
    return [ping for at in times if (ping := extra(evaluator, sent, breakpoints, at, "ping")) is not None]


def extra(
    evaluator: PlanEvaluator, sent: BareCall, breakpoints: Breakpoints, start: float, purpose: str
) -> PlanStep | None:
    """A call that repeats `sent`, or only its tools and system if the breakpoints are there, with no output.

    None if the API refuses it, or if the prefix would differ.
    """
    request = sent.call.request
    in_head = breakpoints[-1].prefix.layer is not Layer.MESSAGES
    made = (
        _render_extra(
            evaluator,
            sent,
            replace(request, thread=Thread().then(Message.of("user", (text_block("user", "."),)))),
            start,
            purpose,
        )
        if in_head
        else None
    )
    last = breakpoints[-1].prefix
    if made is None or not _contains(made, last):
        made = _render_extra(evaluator, sent, request, start, purpose)
    return PlanStep(made, breakpoints) if made is not None and _contains(made, last) else None


def _contains(sent: BareCall, prefix: Prefix) -> bool:
    return any(node is prefix for node in _path(sent.prompt.end))


def _render_extra(
    evaluator: PlanEvaluator, sent: BareCall, request: Request, start: float, purpose: str
) -> BareCall | None:
    output = int(needs_output(request.params))
    budget = (request.params.get("thinking") or {}).get("budget_tokens", 0)
    params = {name: value for name, value in request.params.items() if name != "stream"}
    asked = replace(request, params={**params, "max_tokens": output + budget})
    quiet = replace(derive_call(sent.call, asked, start, output, purpose), is_batch=False)
    found = evaluator.render_call(quiet, is_extra=True)
    return found if isinstance(found, BareCall) else None
