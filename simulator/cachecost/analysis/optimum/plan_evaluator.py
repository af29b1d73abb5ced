"""Calls without breakpoints, rendered once, and the evaluation of plans on them: which block of a request a rendered
prefix ends with, where its breakpoint goes, and whether calls are rendered alike under other assumptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain
from typing import NamedTuple, TypeVar

import msgspec

from cachecost.base.errors import CannotEvaluate
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.changes.places import BlockPlace, find_markable, message_places, static_places
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.passes import pass_times
from cachecost.prompts.render import BreakpointPrefix, CacheKeys, Hidden, PrefixSizes, Prompt, cache_keys_of
from cachecost.prompts.request import TTL, Breakpoint, Request, sent_breakpoints
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import PER_TOKEN, ZERO, Usage
from cachecost.simulation.engine import CallPreparer, PreparedCall, Simulation, UnpreparedCall, output_tokens
from cachecost.simulation.setup import ReplaySetup

Key = TypeVar("Key")
Breakpoints = tuple[BreakpointPrefix, ...]
BlockKey = tuple[Layer, int, int]
"""As `BlockPlace.block_key`."""
NO_BREAKPOINTS: Breakpoints = ()


class RenderedPass(msgspec.Struct, frozen=True):
    """A prompt without breakpoints, and the lengths of its prefixes."""

    prompt: Prompt
    sizes: PrefixSizes


@dataclass(frozen=True, slots=True, eq=False)
class BareCall:
    """A call without breakpoints, as the provider sees it: its passes (mostly one), rules, prices, answer in USD.

    `is_extra` is set for a keep-alive or pre-warming call that the recording does not contain.
    """

    call: Call
    passes: tuple[RenderedPass, ...]
    rules: ModelRules
    prices: Prices
    output_usd: Decimal
    is_extra: bool = False

    @property
    def prompt(self) -> Prompt:
        return self.passes[0].prompt

    @property
    def sizes(self) -> PrefixSizes:
        return self.passes[0].sizes

    @property
    def start(self) -> float:
        return self.call.start


class PlanStep(NamedTuple):
    """A call and its planned breakpoints, in prompt order."""

    sent: BareCall
    breakpoints: Breakpoints


class StepResult(NamedTuple):
    """The outcome of a step in tokens and dollars."""

    step: PlanStep
    outcome: Outcome
    usage: Usage
    usd: Decimal


class PlanCache(PrefixCache):
    """The cache of a plan. What was cached before the recording began comes in with the first call that sends it."""

    def __init__(self, warm: WarmPrefixes) -> None:
        super().__init__()
        self.warm_prefixes = warm

    def copy(self) -> PlanCache:
        other = PlanCache(self.warm_prefixes.copy())
        other._entries, other._written = super().copy()._entries, self._written
        return other

    def find_warm(self, prompt: Prompt) -> BreakpointPrefix | None:
        """What the next call finds of its prompt that was cached before the recording began."""
        return self.warm_prefixes.find(prompt)

    def start_warm(self, prompt: Prompt, rules: ModelRules, start: float) -> None:
        """As `Simulation` does before a call."""
        found = self.pop_warm(prompt)
        if found is not None:
            self.warm_prefix(prompt, found.prefix, found.ttl, rules, start)

    def pop_warm(self, prompt: Prompt) -> BreakpointPrefix | None:
        """As `find_warm`, for the call that sends the prompt: no later one finds it."""
        return self.warm_prefixes.pop(prompt)


@dataclass(slots=True)
class PlanEvaluator:
    """All calls of a workload without breakpoints, over one tree of prefixes. `refused` are the others.

    `calls` are those of `sent` as they were given.

    Sizes are those of the recording's bills where it has any (rule 17), and `warm` is what they read that was cached
    before it began. Raises CannotEvaluate.
    """

    terms: ReplaySetup
    sent: list[BareCall] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    refused: list[UnpreparedCall] = field(default_factory=list)
    warm: WarmPrefixes = field(default_factory=WarmPrefixes)
    _preparer: CallPreparer | None = None
    _several: dict[tuple[BareCall, Breakpoints], list[Prompt]] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: Iterable[Call], terms: ReplaySetup, preparer: CallPreparer | None = None) -> PlanEvaluator:
        """`preparer` is one that has learned what bills tell of these calls; None: what the terms know."""
        evaluator = cls(terms, _preparer=preparer)
        if preparer is not None:
            evaluator.warm = preparer.warm.copy()
        for call in calls:
            found = evaluator.render_call(call)
            if isinstance(found, BareCall):
                evaluator.sent.append(found)
                evaluator.calls.append(call)
            else:
                evaluator.refused.append(found)
        for sent in evaluator.sent:
            evaluator.warm.find(sent.prompt)  # what is certainly not warm is known to all copies
        return evaluator

    def render_call(self, call: Call, is_extra: bool = False) -> BareCall | UnpreparedCall:
        """The call without breakpoints; why it has no usage if the API refuses it or it cannot be evaluated."""
        bare = replace(call, request=replace(call.request, breakpoints=(), automatic=None))
        made = self.preparer.prepare_marked(bare, call)
        if isinstance(made, UnpreparedCall):
            return made
        passes = tuple(map(RenderedPass, made.prompts, made.sizes))
        answer = Usage(output_tokens=output_tokens(call, made.counter), tool_uses=call.tool_uses)
        output = made.prices.total_cost(answer)
        return BareCall(bare, passes, made.rules, made.prices, output, is_extra)

    def render_extra(self, call: Call) -> BareCall | None:
        """A keep-alive or pre-warming call; None where the API refuses it."""
        found = self.render_call(replace(call, is_batch=False), is_extra=True)
        return found if isinstance(found, BareCall) else None

    @property
    def preparer(self) -> CallPreparer:
        """What renders and counts; made for the first call. Raises CannotEvaluate."""
        if self._preparer is None:
            self._preparer = self.terms.preparer()
            self.warm = self._preparer.warm.copy()
        return self._preparer

    def prompts(self, step: PlanStep) -> list[Prompt]:
        """The prompts of a step's passes with its breakpoints."""
        sent, breakpoints = step
        if len(sent.passes) == 1:
            return [replace(sent.prompt, breakpoints=breakpoints)]
        if step not in self._several:
            made = self.preparer.prepare(build_call(step))
            assert isinstance(made, PreparedCall)
            self._several[step] = made.prompts
        return self._several[step]

    def new_cache(self) -> PlanCache:
        """The cache before the first call."""
        return PlanCache(self.warm.copy())

    def run_step(self, cache: PlanCache, step: PlanStep) -> StepResult:
        """Make one call against `cache`."""
        sent = step.sent
        prompts, (first_pass, *later) = self.prompts(step), sent.passes
        cache.start_warm(prompts[0], sent.rules, sent.start)
        if sent.call.most_read is not None:
            cache.forget_longer(prompts[0], sent.call.most_read, sent.rules, first_pass.sizes)
        first = cache.call(prompts[0], sent.rules, sent.start, sent.call.ready_s, first_pass.sizes)
        if sent.call.most_read is not None:
            first = first.with_read(sent.call.most_read)
        usage = first.usage
        if later:
            times = pass_times(sent.start, sent.call.ready_s, len(prompts))
            for prompt, moment, one in zip(prompts[1:], times[1:], later, strict=True):
                usage += cache.call(prompt, sent.rules, *moment, one.sizes).usage
        return StepResult(step, first, usage, input_usd(usage, sent.prices) + sent.output_usd)

    def run(self, steps: Iterable[PlanStep]) -> Iterator[StepResult]:
        """Make all calls of a plan, in their order, against a new cache."""
        cache = self.new_cache()
        return (self.run_step(cache, step) for step in steps)

    def cost(self, steps: Iterable[PlanStep]) -> Decimal:
        """USD of a plan, answers included."""
        return sum((done.usd for done in self.run(steps)), ZERO)


def simulation_of(terms: ReplaySetup) -> Simulation:
    """A simulation under these terms that knows all bills, and what was cached before them."""
    return Simulation(terms, "optimum", preparer=terms.preparer())


def input_usd(usage: Usage, prices: Prices) -> Decimal:
    """USD of the input tokens, exact."""
    return (
        usage.input_tokens * prices.input
        + usage.read * prices.read
        + usage.write_5m * prices.write_5m
        + usage.write_1h * prices.write_1h
    ).scaleb(PER_TOKEN)


def deepest(one: RenderedPass, rules: ModelRules) -> Prefix | None:
    """The deepest block of a prompt that can be cached and whose prefix reaches the minimum; None: none can."""
    node = find_markable(one.prompt.end)
    return node if node is not None and one.sizes.of(node) >= rules.minimum_tokens else None


def build_call(step: PlanStep) -> Call:
    """The call with the step's breakpoints on its request."""
    wanted = {breakpoint.prefix: breakpoint.ttl for breakpoint in step.breakpoints}
    request = step.sent.call.request
    found = [
        Breakpoint(place.layer, place.index, wanted[place.prefix], place.node)
        for place in _places_of(step.sent, {prefix: prefix.layer for prefix in wanted}, lambda place: place.prefix)
    ]
    return replace(step.sent.call, request=replace(request, breakpoints=tuple(found[::-1])))


class KnownPlaces:
    """The places of blocks in prompts, each looked for once: many breakpoints are at the same ones."""

    def __init__(self) -> None:
        self._places: dict[BareCall, dict[BlockKey, Prefix | None]] = {}
        self._made: dict[tuple[Prefix, TTL], BreakpointPrefix] = {}

    def rendered_breakpoints(self, sent: BareCall, request: Request) -> Breakpoints:
        """As the function of that name; equal breakpoints are one."""
        ttls = {breakpoint.block_key: breakpoint.ttl for breakpoint in sent_breakpoints(request).breakpoints}
        known = self._places.setdefault(sent, {})
        new = {key: key[0] for key in ttls if key not in known}
        if new:
            known.update(dict.fromkeys(new))
            known.update((one.block_key, one.prefix) for one in _places_of(sent, new, lambda one: one.block_key))
        found = []
        for key, ttl in ttls.items():
            if (prefix := known[key]) is not None:
                made = self._made.get((prefix, ttl))
                if made is None:
                    made = self._made[prefix, ttl] = BreakpointPrefix(prefix, ttl)
                found.append(made)
        return tuple(sorted(found, key=lambda one: one.prefix.depth))


def rendered_breakpoints(sent: BareCall, request: Request) -> Breakpoints:
    """The breakpoints of `request`, the automatic one resolved, on the prompt of the same call without them."""
    return KnownPlaces().rendered_breakpoints(sent, request)


def _places_of(
    sent: BareCall, layers: Mapping[Key, Layer], key_of: Callable[[BlockPlace], Key]
) -> Iterator[BlockPlace]:
    """The places with these keys, the last first. Messages are looked through only as far as one of them is there."""
    in_messages = {key for key, layer in layers.items() if layer is Layer.MESSAGES}
    for places, wanted in ((message_places, in_messages), (static_places, layers.keys() - in_messages)):
        left = len(wanted)
        for place in places(sent.prompt, sent.call.request) if left else ():
            if key_of(place) in wanted:
                yield place
                left -= 1
            if not left:
                break


Head = tuple[CacheKeys, Hidden]
"""What assumptions change of a prompt: the cache keys of its layers, and its hidden tokens."""


class AlikePrompts:
    """The calls of an evaluator, and those whose bills it knows, under its own assumptions and under others."""

    def __init__(self, evaluator: PlanEvaluator, calls: Sequence[Call]) -> None:
        self._evaluator = evaluator
        self._calls = list({_content(call): call for call in chain(evaluator.terms.bills, calls)}.values())
        self._rules = self._find_rules(evaluator.terms)
        self._heads: list[Head] | None = None

    def have_equal_rules(self, terms: ReplaySetup) -> bool:
        """Whether the assumptions change no other rule of any call."""
        checked: dict[tuple[int, int], bool] = {}
        for rules, other in zip(self._rules, self._find_rules(terms), strict=True):
            key = id(rules), id(other)
            if key not in checked:
                checked[key] = (
                    replace(other, assumptions=rules.assumptions) == rules if rules and other else rules is other
                )
            if not checked[key]:
                return False
        return True

    def are_alike(self, terms: ReplaySetup) -> bool:
        """Whether each call has the same hidden tokens, and two calls share a cache key exactly where they did."""
        if not self.have_equal_rules(terms) or any(one and one.keyed_by is not None for one in self._rules):
            return False
        if self._heads is None:
            self._heads = list(self._find_heads(self._rules))
        others = list(self._find_heads(self._find_rules(terms)))
        if [hidden for _, hidden in self._heads] != [hidden for _, hidden in others]:
            return False
        for end in (1, 2, 3):
            now, then = ([keys[:end] for keys, _ in heads] for heads in (self._heads, others))
            if not len(set(zip(now, then, strict=True))) == len(set(now)) == len(set(then)):
                return False
        return True

    def _find_heads(self, rules: Sequence[ModelRules | None]) -> Iterator[Head]:
        """Of the calls that can be rendered: whether one can follows from no assumption."""
        prompts = self._evaluator.preparer.prompts
        for call, of_call in zip(self._calls, rules, strict=True):
            if of_call is None or call.has_failed or call.why_unknown:
                continue
            request = prompts.prepare_request(call.request, of_call).told.request
            try:
                hidden = prompts.renderer(of_call.generation).counter.hidden(request, of_call)
            except CannotEvaluate:
                continue
            yield cache_keys_of(request, of_call), hidden

    def _find_rules(self, terms: ReplaySetup) -> list[ModelRules | None]:
        found = list[ModelRules | None]()
        for call in self._calls:
            try:
                found.append(terms.rules_for(call))
            except CannotEvaluate:
                found.append(None)
        return found


def _content(call: Call) -> tuple[object, ...]:
    """What prompts depend on besides rules and breakpoints, by identity; the same of a call and of its bill."""
    request = call.request
    parts = request.thread, request.tools, request.system, request.params, request.message_thread
    return *map(id, parts), request.model, call.host, call.day, call.workspace, call.has_failed, bool(call.why_unknown)
