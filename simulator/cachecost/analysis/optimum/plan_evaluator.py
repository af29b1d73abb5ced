"""Calls without their marks, rendered once: what every plan of marks is tried on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import NamedTuple

from cachecost.analysis.optimum.places import places
from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.ledger.results import CallRow
from cachecost.prompts.blocks import Layer, Prefix
from cachecost.prompts.passes import pass_times
from cachecost.prompts.refusals import is_markable, marks_sent
from cachecost.prompts.render import MarkedPrefix, Prompt
from cachecost.prompts.request import Mark, Request, is_server_tool
from cachecost.prompts.sizes import Sizes
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage
from cachecost.replay.setup import ReplaySetup
from cachecost.replay.simulation import Call, Pass, Simulation

Marks = tuple[MarkedPrefix, ...]
NO_MARKS: Marks = ()


@dataclass(frozen=True, slots=True, eq=False)
class Sent:
    """A call without marks, as the provider sees it: its passes (mostly one), rules, prices, answer in USD.

    `is_extra` tells a ping or a pre-warming call from one that was really made.
    """

    call: Call
    passes: tuple[Pass, ...]
    rules: ModelRules
    prices: Prices
    output_usd: Decimal
    is_extra: bool = False

    @property
    def prompt(self) -> Prompt:
        return self.passes[0].prompt

    @property
    def sizes(self) -> Sizes:
        return self.passes[0].sizes

    @property
    def start(self) -> float:
        return self.call.start


class Step(NamedTuple):
    """A call and the marks it gets, in prompt order."""

    sent: Sent
    marks: Marks


class Done(NamedTuple):
    """What became of a step: tokens and dollars."""

    step: Step
    outcome: Outcome
    usage: Usage
    usd: Decimal


@dataclass(slots=True)
class Bench:
    """All calls of a workload, without marks, over one tree of prefixes. `refused` are the rows of those with an error.

    Sizes are those of the recording's bills where it has any (rule 17). Raises CannotEvaluate.
    """

    terms: ReplaySetup
    sent: list[Sent] = field(default_factory=list)
    refused: list[CallRow] = field(default_factory=list)
    _scribe: Simulation | None = None
    _several: dict[tuple[Sent, Marks], list[Prompt]] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: Iterable[Call], terms: ReplaySetup) -> Bench:
        bench = cls(terms)
        for call in calls:
            bench._take(call)
        return bench

    def _take(self, call: Call) -> None:
        found = self.rendered(call)
        if isinstance(found, Sent):
            self.sent.append(found)
        else:
            self.refused.append(found)

    def rendered(self, call: Call, is_extra: bool = False) -> Sent | CallRow:
        """The call without marks; its row where the API refuses it or something about it is not known."""
        self._scribe = self._scribe or simulation_of(self.terms)
        bare = replace(call, request=unmarked(call.request))
        row, passes, rules, prices = self._scribe.simulate(bare)
        if rules is None or prices is None:
            return row
        return Sent(bare, passes, rules, prices, row.cost.output, is_extra)

    def prompts(self, step: Step) -> list[Prompt]:
        """The prompts of a step's passes, marked."""
        sent, marks = step
        if len(sent.passes) == 1:
            return [replace(sent.prompt, marks=marks)]
        if step not in self._several:
            assert self._scribe is not None
            passes = self._scribe.simulate(marked(step)).passes
            self._several[step] = [one.prompt for one in passes]
        return self._several[step]

    def done(self, cache: PrefixCache, step: Step) -> Done:
        """Make one call against `cache`."""
        sent = step.sent
        usage, first = Usage(), None
        prompts = self.prompts(step)
        times = pass_times(sent.start, sent.call.first_token_s, len(prompts))
        for prompt, moment, one in zip(prompts, times, sent.passes, strict=True):
            outcome = cache.call(prompt, sent.rules, *moment, one.sizes)
            usage, first = usage + outcome.usage, first or outcome
        assert first is not None
        return Done(step, first, usage, input_usd(usage, sent.prices) + sent.output_usd)

    def run(self, steps: Iterable[Step]) -> Iterator[Done]:
        """Make all calls of a plan, in their order, against a cache of their own."""
        cache = PrefixCache()
        return (self.done(cache, step) for step in steps)

    def cost(self, steps: Iterable[Step]) -> Decimal:
        """USD of a plan, answers included."""
        return sum((done.usd for done in self.run(steps)), Decimal(0))


def simulation_of(terms: ReplaySetup, name: str = "optimum") -> Simulation:
    """A simulation under these terms that knows all bills. It starts cold, as the lower bound does."""
    made = Simulation(terms, name)
    made.learn_all(terms.bills, may_start_warm=False)
    return made


def unmarked(request: Request) -> Request:
    """The same bytes without `cache_control`."""
    return replace(request, marks=(), automatic=None)


def input_usd(usage: Usage, prices: Prices) -> Decimal:
    """USD of what was sent, exact."""
    return (
        usage.input_tokens * prices.input
        + usage.read * prices.read
        + usage.write_5m * prices.write_5m
        + usage.write_1h * prices.write_1h
    ).scaleb(-6)


def can_mark(prefix: Prefix) -> bool:
    """Whether a mark may end here and is heeded: no salt, no thinking, no empty text, no tool of the server's own."""
    block = prefix.block
    if block is None or not is_markable(block):
        return False
    return prefix.layer is not Layer.SYSTEM or not is_server_tool(block)


def deepest(one: Pass, rules: ModelRules) -> Prefix | None:
    """The deepest block of a prompt that can be cached: markable, and its prefix reaches the minimum; None: no."""
    node: Prefix | None = one.prompt.end
    while node is not None and not can_mark(node):
        node = node.parent
    return node if node is not None and one.sizes.of(node) >= rules.minimum_tokens else None


def marked(step: Step) -> Call:
    """The call with its marks on the request: what is really sent."""
    wanted = {mark.prefix: mark.ttl for mark in step.marks}
    found: list[Mark] = []
    for place in places(step.sent.prompt, step.sent.call.request) if wanted else ():
        ttl = wanted.pop(place.prefix, None)
        if ttl is not None:
            found.append(Mark(place.layer, place.index, ttl, place.node))
        if not wanted:
            break
    request = replace(step.sent.call.request, marks=tuple(found[::-1]))
    return replace(step.sent.call, request=request)


def rendered_marks(sent: Sent, request: Request) -> Marks:
    """The marks of `request` (the automatic one resolved) on the prompt of the same call without marks."""
    keys = {mark.block_key: mark.ttl for mark in marks_sent(request).marks}
    found: list[MarkedPrefix] = []
    for place in places(sent.prompt, sent.call.request) if keys else ():
        ttl = keys.pop(Mark(place.layer, place.index, "5m", place.node).block_key, None)
        if ttl is not None:
            found.append(MarkedPrefix(place.prefix, ttl))
        if not keys:
            break
    return tuple(found[::-1])
