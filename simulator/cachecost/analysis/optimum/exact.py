"""The exact optimum of small cases: every legal set of breakpoints in every call, unless a bound rules it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

from cachecost.analysis.optimum.extras import keep_alive_train
from cachecost.analysis.optimum.lower_bound import are_alike, cheapest, fixed_usd, own_tokens
from cachecost.analysis.optimum.plan_evaluator import (
    NO_BREAKPOINTS,
    Breakpoints,
    PlanCache,
    PlanEvaluator,
    PlanStep,
)
from cachecost.analysis.optimum.tree import BlockTree
from cachecost.analysis.optimum.ttl_costs import BlockState, HeldBlock, TTLCosts, merge_entries
from cachecost.caches.expiry import ttl_s_of
from cachecost.changes.places import accepts_breakpoints
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.compare import begins_with, prefixes_back
from cachecost.prompts.render import BreakpointPrefix
from cachecost.prompts.request import TTL
from cachecost.providers.usage import PER_TOKEN, TTLS, ZERO

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
    trains, has_extras = [slot.train for slot in slots], any(slot.is_optional for slot in slots)
    plans, left = [_PartialPlan(evaluator.new_cache(), ZERO, ())], most_tries
    for number, slot in enumerate(slots):
        bound = _Bound(evaluator, slots[number + 1 :], has_extras)
        begins, ends = slot.train not in trains[:number], slot.train not in trains[number + 1 :]
        kept: dict[tuple[object, ...], _PartialPlan] = {}
        for plan, breakpoints in ((before, one) for before in plans for one in _choices(slot, before, begins)):
            made = plan
            if breakpoints is not None:
                left -= 1
                cache, step = plan.cache.copy(), PlanStep(slot.step.sent, breakpoints)
                usd = plan.usd + evaluator.run_step(cache, step).usd
                open_trains = plan.trains
                if slot.train is not None:
                    here = frozenset({(slot.train, breakpoints)})
                    open_trains = open_trains - here if ends else open_trains | here
                made = _PartialPlan(cache, usd, (*plan.steps, step), open_trains)
            if left <= 0:
                break
            if made.usd >= known_usd:
                continue
            key = bound.useful_entries(made.cache), made.trains
            is_best = key not in kept or made.usd < kept[key].usd
            if is_best and made.usd + bound.usd(made.cache) < known_usd:
                kept[key] = made
        plans = list(kept.values())
    best = min((one for one in plans if one.usd < known_usd), key=lambda one: one.usd, default=None)
    if best is None:
        return ExactPlan(None, known_usd, left > 0)
    return ExactPlan(list(best.steps), best.usd, left > 0)


def _choices(slot: PlanSlot, plan: _PartialPlan, begins: bool) -> Iterator[Breakpoints | None]:
    begun = [breakpoints for train, breakpoints in plan.trains if train == slot.train]
    if slot.is_optional and not begun:
        yield None
    if slot.train is None:
        yield from breakpoint_sets(slot.step)
    else:
        yield from slot.choices if begins else begun


def breakpoint_sets(step: PlanStep) -> Iterator[Breakpoints]:
    """Every legal set of breakpoints on a call, without those below the minimum, which change nothing."""
    sent = step.sent
    nodes = [
        node
        for node in prefixes_back(sent.prompt.end)
        if accepts_breakpoints(node) and sent.sizes.of(node) >= sent.rules.minimum_tokens
    ][::-1]
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
            if entry.state(self.start) != "expired":
                ttl: TTL = "1h" if entry.ttl == "1h" else "5m"
                block = HeldBlock(entry.touched, ttl, entry.readable_at, entry.started)
                for node in prefixes_back(prefix):
                    states[node] = merge_entries(block, states.get(node))
        costs = (self._ttls.cost(tail, states.get(node.prefix)) * own_tokens(node) for node, tail in self._tails)
        return self._fixed + sum(costs, ZERO).scaleb(PER_TOKEN)


def train_slots(evaluator: PlanEvaluator) -> list[PlanSlot]:
    """All calls, and before each of them the trains that can keep alive what it shares with an earlier one. The number
    of their keep-alives is the least that does it, for each TTL."""
    slots = [PlanSlot(PlanStep(sent, ())) for sent in evaluator.sent]
    made: list[PlanSlot] = []
    for number, later in enumerate(evaluator.sent):
        deepest_shared = 0
        for earlier in reversed(evaluator.sent[:number]):
            nodes = [
                node
                for node in prefixes_back(later.prompt.end)
                if accepts_breakpoints(node) and begins_with(earlier.prompt.end, node)
            ]
            nodes = [node for node in nodes if later.sizes.of(node) >= later.rules.minimum_tokens]
            if not nodes or nodes[0].depth <= deepest_shared:
                continue
            deepest_shared = nodes[0].depth
            for ttl in (one for one in TTLS if one in earlier.rules.accepted_ttls):
                choices = tuple((BreakpointPrefix(node, ttl),) for node in nodes)
                train = keep_alive_train(
                    evaluator, earlier, choices[0], earlier.start, later.start, ttl_s_of(earlier.rules, ttl)
                )
                made += [PlanSlot(step, True, len(made), choices) for step in train[:1]]
                made += [PlanSlot(step, True, made[-1].train, choices) for step in train[1:]]
    return sorted([*slots, *made], key=lambda slot: slot.step.sent.start)
