"""Calls without breakpoints, rendered once, and the evaluation of plans on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple, TypeVar

from cachecost.analysis.optimum.places import BlockPlace, message_places, static_places
from cachecost.base.structs import replace, value
from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.caches.warm_starts import WarmPrefixes
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.passes import pass_times
from cachecost.prompts.refusals import accepts_breakpoint, sent_breakpoints
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.request import TTL, Breakpoint, Request, is_server_tool
from cachecost.prompts.sizes import PrefixSizes
from cachecost.providers.prices import Prices
from cachecost.providers.quotes import PER_TOKEN
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import ZERO, Usage
from cachecost.simulation.call_preparer import CallPreparer, PreparedCall, UnpreparedCall, output_tokens
from cachecost.simulation.engine import Simulation
from cachecost.simulation.setup import ReplaySetup

Key = TypeVar("Key")
Breakpoints = tuple[BreakpointPrefix, ...]
BlockKey = tuple[Layer, int, int]
"""As `BlockPlace.block_key`."""
NO_BREAKPOINTS: Breakpoints = ()


@value
class RenderedPass:
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
        """As `Simulation` does before a call: with the entries that its breakpoints would have written."""
        self.start_with(self.warm_prefixes.take(prompt), prompt, rules, start)

    def start_with(self, found: BreakpointPrefix | None, prompt: Prompt, rules: ModelRules, start: float) -> None:
        """As `start_warm`, with what was found of the prompt."""
        if found is not None:
            before = (one for one in prompt.breakpoints if one.prefix.depth < found.prefix.depth)
            for one in (*before, found):
                self.warm(one.prefix, one.ttl, rules, start)


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
            evaluator._take(call)
        for sent in evaluator.sent:
            evaluator.warm.find(sent.prompt)  # what is certainly not warm is known to all copies
        return evaluator

    def _take(self, call: Call) -> None:
        found = self.render_call(call)
        if isinstance(found, BareCall):
            self.sent.append(found)
            self.calls.append(call)
        else:
            self.refused.append(found)

    def render_call(self, call: Call, is_extra: bool = False) -> BareCall | UnpreparedCall:
        """The call without breakpoints; why it has no usage if the API refuses it or it cannot be evaluated."""
        bare = replace(call, request=remove_breakpoints(call.request))
        made = self.preparer.prepare_marked(bare, call)
        if isinstance(made, UnpreparedCall):
            return made
        passes = tuple(map(RenderedPass, made.prompts, made.sizes))
        answer = Usage(output_tokens=output_tokens(call, made.counter), tool_uses=call.tool_uses)
        output = made.prices.total_cost(answer)
        return BareCall(bare, passes, made.rules, made.prices, output, is_extra)

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


def simulation_of(terms: ReplaySetup, name: str = "optimum") -> Simulation:
    """A simulation under these terms that knows all bills, and what was cached before them."""
    return Simulation(terms, name, preparer=terms.preparer())


def remove_breakpoints(request: Request) -> Request:
    """The same request without `cache_control`."""
    return replace(request, breakpoints=(), automatic=None)


def input_usd(usage: Usage, prices: Prices) -> Decimal:
    """USD of the input tokens, exact."""
    return (
        usage.input_tokens * prices.input
        + usage.read * prices.read
        + usage.write_5m * prices.write_5m
        + usage.write_1h * prices.write_1h
    ).scaleb(PER_TOKEN)


def accepts_breakpoints(prefix: Prefix) -> bool:
    """Whether a breakpoint here is legal and has an effect: no key, thinking, empty text or server tool."""
    block = prefix.block
    if block is None or not accepts_breakpoint(block):
        return False
    return prefix.layer is not Layer.SYSTEM or not is_server_tool(block)


def deepest(one: RenderedPass, rules: ModelRules) -> Prefix | None:
    """The deepest block of a prompt that can be cached and whose prefix reaches the minimum; None: none can."""
    node: Prefix | None = one.prompt.end
    while node is not None and not accepts_breakpoints(node):
        node = node.parent
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
        found = [self._breakpoint(prefix, ttl) for key, ttl in ttls.items() if (prefix := known[key]) is not None]
        return tuple(sorted(found, key=lambda one: one.prefix.depth))

    def _breakpoint(self, prefix: Prefix, ttl: TTL) -> BreakpointPrefix:
        made = self._made.get((prefix, ttl))
        if made is None:
            made = self._made[prefix, ttl] = BreakpointPrefix(prefix, ttl)
        return made


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
