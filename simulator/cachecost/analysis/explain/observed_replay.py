"""A replay that records what each call lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cachecost.analysis.explain.lineage import EarlierCall, Lineage
from cachecost.analysis.explain.losses import CallInspection, Loss
from cachecost.analysis.replays.replays import Replays
from cachecost.analysis.replays.steps import NO_CALL, ReplayStep
from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.conversations.calls import Call
from cachecost.ledger.results import CallRow
from cachecost.prompts.blocks import Prefix, Thread
from cachecost.prompts.render import Prompt
from cachecost.prompts.sizes import AS_COUNTED, PrefixSizes
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules


@dataclass(frozen=True, slots=True)
class LoneCall:
    """The only call of a conversation, and the prefixes that it wrote: wasted if no other call reads them."""

    call: int
    passed: int
    written: tuple[Prefix, ...]
    read: int
    tokens: int


@dataclass(frozen=True, slots=True)
class RenderedCall:
    """A call that lost something, as the cache saw it."""

    prompt: Prompt
    rules: ModelRules


@dataclass(slots=True)
class ObservedReplay:
    """What a replay of steps recorded. Steps are numbered from 1 in their order, as `Loss.call` is.

    `rows` are those of the steps, `prices` and `rendered` those of the calls that could be evaluated and that lost
    something.
    """

    steps: Sequence[ReplayStep]
    rows: list[CallRow] = field(default_factory=list)
    prices: dict[int, Prices] = field(default_factory=dict)
    rendered: dict[int, RenderedCall] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    lone: list[LoneCall] = field(default_factory=list)

    def number(self, position: int) -> int:
        """The recorded call of a step; 0 for an extra one."""
        return self.steps[position - 1].number

    def call(self, position: int) -> Call:
        return self.steps[position - 1].call


def observe_replay(replays: Replays, steps: Sequence[ReplayStep]) -> ObservedReplay:
    """Replay the steps, and record what each call paid for again. Extra calls are made and not inspected."""
    cache = ObservingCache(steps)
    simulation = replays.simulation(steps, cache)
    for step in steps:
        cache.inspected = step.call if step.number != NO_CALL else None
        made = simulation.simulate(step.call)
        cache.observed.rows.append(made.row)
        if made.prices:
            cache.observed.prices[made.row.call] = made.prices
    replays.progress("explaining", len(steps))
    cache.observed.lone = [one for one in cache.alone.values() if not cache.read_later(one)]
    return cache.observed


class ObservingCache(PrefixCache):
    """A cache that inspects each call before it is made. `inspected` is the call whose first pass comes next."""

    def __init__(self, steps: Sequence[ReplayStep]) -> None:
        super().__init__()
        self.inspected: Call | None = None
        self.observed = ObservedReplay(steps)
        self.alone: dict[tuple[str, Thread], LoneCall] = {}
        self._lineage = Lineage()
        self._passed = 0
        self._hits: set[Prefix] = set()

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        self._passed += 1
        call, self.inspected = self.inspected, None
        if call:
            self._inspect(call, prompt, rules, start, sizes)
        outcome = super().call(prompt, rules, start, first_token_s, sizes)
        if outcome.hit:
            self._hits.add(outcome.hit)
        if call:
            self._remember(call, prompt, rules, start, outcome)
        return outcome

    def read_later(self, one: LoneCall) -> bool:
        """Whether any call read what this one wrote."""
        return any(prefix in self._hits for prefix in one.written)

    def _inspect(self, call: Call, prompt: Prompt, rules: ModelRules, start: float, sizes: PrefixSizes) -> None:
        found = self.find(prompt.breakpoints, rules, start, sizes)
        inspection = CallInspection(
            self._number,
            self._passed,
            call.request,
            prompt,
            rules,
            start,
            sizes,
            self,
            found[0].depth if found else 0,
            self._lineage.find_shared(prompt),
            self._lineage.forerunner(call.request, rules.model, rules.pool(call.workspace), call.file),
        )
        losses = list(inspection.losses()) if call.most_read is None else []  # a held loss is the bill's
        if losses:
            self.observed.losses += losses
            self.observed.rendered[self._number] = RenderedCall(prompt, rules)

    @property
    def _number(self) -> int:
        return len(self.observed.rows) + 1

    def _remember(self, call: Call, prompt: Prompt, rules: ModelRules, start: float, outcome: Outcome) -> None:
        pool = rules.pool(call.workspace)
        conversation = (pool, call.request.thread.up_to(1))
        deepest = outcome.breakpoints[-1].prefix if outcome.breakpoints else None
        depth = outcome.hit.depth if outcome.hit else 0
        written = tuple(breakpoint.prefix for breakpoint in outcome.breakpoints if breakpoint.prefix.depth > depth)
        if self._lineage.is_followed(call.request.thread, pool):
            self.alone.pop(conversation, None)
        elif written:
            tokens = outcome.write_5m + outcome.write_1h
            self.alone[conversation] = LoneCall(self._number, self._passed, written, depth, tokens)
        self._lineage.remember(
            EarlierCall(self._number, self._passed, start, call.request, prompt, rules, deepest), pool, call.file
        )
