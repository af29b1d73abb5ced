"""A replay that records what each call lost, and replays without some of the causes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from cachecost.analysis.explain.alignment import path
from cachecost.analysis.explain.lineage import EarlierCall, Lineage
from cachecost.analysis.explain.losses import CallInspection, Loss
from cachecost.caches.breakpoints import Entry, Outcome, PrefixCache
from cachecost.caches.causes import ancestor
from cachecost.conversations.calls import Call
from cachecost.ledger.results import CallRow
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.request import TTL
from cachecost.prompts.sizes import AS_COUNTED, PrefixSizes
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.simulation.engine import Simulation

Simulate = Callable[[PrefixCache], Simulation]
"""Makes a fresh simulation of the log with this cache."""


@dataclass(frozen=True, slots=True)
class LoneCall:
    """The only call of a conversation, and the prefixes that it wrote: wasted if no other call reads them."""

    call: int
    passed: int
    written: tuple[Prefix, ...]
    read: int
    tokens: int


@dataclass(slots=True)
class ObservedReplay:
    """What a replay recorded: the rows, and the prices and losses of each call."""

    rows: list[CallRow] = field(default_factory=list)
    prices: dict[int, Prices] = field(default_factory=dict)
    losses: list[Loss] = field(default_factory=list)
    lone: list[LoneCall] = field(default_factory=list)


def observe_replay(calls: Iterable[Call], simulate: Simulate) -> ObservedReplay:
    """Replay the calls, and record what each paid for again."""
    cache = ObservingCache()
    simulation = simulate(cache)
    for call in calls:
        cache.about = call
        made = simulation.simulate(call)
        cache.told.rows.append(made.row)
        if made.prices:
            cache.told.prices[made.row.call] = made.prices
    cache.told.lone = [one for key, one in cache.alone.items() if not cache.read_later(one)]
    return cache.told


class ObservingCache(PrefixCache):
    """A cache that inspects each call before it is made. `about` is the call whose first pass comes next."""

    def __init__(self) -> None:
        super().__init__()
        self.about: Call | None = None
        self.told = ObservedReplay()
        self.alone: dict[object, LoneCall] = {}
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
        about, self.about = self.about, None
        if about:
            self._look(about, prompt, rules, start, sizes)
        outcome = super().call(prompt, rules, start, first_token_s, sizes)
        if outcome.hit:
            self._hits.add(outcome.hit)
        if about:
            self._remember(about, prompt, rules, start, outcome)
        return outcome

    def read_later(self, one: LoneCall) -> bool:
        """Whether any call read what this one wrote."""
        return any(prefix in self._hits for prefix in one.written)

    def _look(self, call: Call, prompt: Prompt, rules: ModelRules, start: float, sizes: PrefixSizes) -> None:
        found = self.find(prompt.breakpoints, rules, start, sizes)
        looking = CallInspection(
            len(self.told.rows) + 1,
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
        self.told.losses += looking.losses()

    def _remember(self, call: Call, prompt: Prompt, rules: ModelRules, start: float, outcome: Outcome) -> None:
        number, pool = len(self.told.rows) + 1, rules.pool(call.workspace)
        conversation = (pool, call.request.thread.up_to(1))
        deepest = outcome.breakpoints[-1].prefix if outcome.breakpoints else None
        depth = outcome.hit.depth if outcome.hit else 0
        written = tuple(breakpoint.prefix for breakpoint in outcome.breakpoints if breakpoint.prefix.depth > depth)
        if self._lineage.is_followed(call.request.thread, pool):
            self.alone.pop(conversation, None)
        elif written:
            self.alone[conversation] = LoneCall(
                number, self._passed, written, depth, outcome.write_5m + outcome.write_1h
            )
        self._lineage.remember(
            EarlierCall(number, self._passed, start, call.request, prompt, rules, deepest), pool, call.file
        )


@dataclass(frozen=True, slots=True)
class Removal:
    """What is different in a replay without some causes, by the number of the pass.

    `restored`: so many blocks are read as if they were cached. `marked`: these prefixes (in blocks) get a breakpoint,
    too. `unmarked`: breakpoints after so many blocks are left out. `any_length`: no minimum length applies.
    """

    restored: dict[int, int] = field(default_factory=dict)
    marked: dict[int, list[tuple[int, TTL]]] = field(default_factory=dict)
    uncached: dict[int, int] = field(default_factory=dict)
    any_length: set[int] = field(default_factory=set)

    def __or__(self, other: Removal) -> Removal:
        restored = {
            number: max(self.restored.get(number, 0), other.restored.get(number, 0))
            for number in self.restored.keys() | other.restored
        }
        marked = {
            number: [*self.marked.get(number, []), *other.marked.get(number, [])]
            for number in self.marked.keys() | other.marked
        }
        return Removal(restored, marked, self.uncached | other.uncached, self.any_length | other.any_length)


def replay_without(removal: Removal, calls: Iterable[Call], simulate: Simulate) -> list[CallRow]:
    """The rows of the same calls with the differences of `removal`."""
    simulation = simulate(CacheWithoutCauses(removal))
    return [simulation.row(call) for call in calls]


class CacheWithoutCauses(PrefixCache):
    """The cache as it would be without some causes."""

    def __init__(self, removal: Removal) -> None:
        super().__init__()
        self._removal = removal
        self._passed = 0
        self._end: Prefix | None = None

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        self._passed += 1
        if self._passed in self._removal.any_length:
            rules = replace(rules, minimum_tokens=0)
        prompt = replace(prompt, breakpoints=self._breakpoints(prompt))
        self._end = prompt.end
        return super().call(prompt, rules, start, first_token_s, sizes)

    def _breakpoints(self, prompt: Prompt) -> tuple[BreakpointPrefix, ...]:
        most = self._removal.uncached.get(self._passed, prompt.end.depth)
        more = [BreakpointPrefix(_at(prompt, depth), ttl) for depth, ttl in self._removal.marked.get(self._passed, ())]
        kept = (breakpoint for breakpoint in prompt.breakpoints if breakpoint.prefix.depth <= most)
        return tuple(sorted((*kept, *more), key=lambda breakpoint: breakpoint.prefix.depth)) if more else tuple(kept)

    def find(
        self, breakpoints: Sequence[BreakpointPrefix], rules: ModelRules, now: float, sizes: PrefixSizes
    ) -> tuple[Prefix, Entry] | None:
        found = super().find(tuple(breakpoints), rules, now, sizes)
        depth = self._removal.restored.get(self._passed, 0)
        if self._end is None or depth <= (found[0].depth if found else 0):
            return found
        node = ancestor(self._end, depth)
        ttl = next((breakpoint.ttl for breakpoint in breakpoints if breakpoint.prefix.depth >= depth), "5m")
        return node, self._revive_entry(node, ttl, rules, now)

    def _revive_entry(self, node: Prefix, ttl: str, rules: ModelRules, now: float) -> Entry:
        """The entry at `node`, made live."""
        if self.state(node, ttl, rules, now) == "live":
            return self.entry(node, ttl, rules)
        return self.warm(node, ttl, rules, now)


def _at(prompt: Prompt, depth: int) -> Prefix:
    return path(prompt.end, depth - 1)[0]
