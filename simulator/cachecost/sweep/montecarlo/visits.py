"""What no seed changes: the entries that each call may read and write, and how its tokens divide in each case.

The engine runs once over the calls, with a cache that records its lookups. Sizes, prices, rules and refusals depend on
the day and the bytes, which are the same for all seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from cachecost.caches.breakpoints import Outcome, PrefixCache
from cachecost.conversations.calls import Call
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.prompts.sizes import AS_COUNTED, PrefixSizes
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import Usage
from cachecost.simulation.engine import SimulatedCall
from cachecost.simulation.workload import Workload
from cachecost.sweep.lookback import EntryIndex, Numbers, build_tree
from cachecost.sweep.montecarlo.times import MAIN

TTLS = ("5m", "1h")


@dataclass(frozen=True, slots=True)
class EntryWrite:
    """What a breakpoint writes: the number of the entry, its depth in blocks, its TTL as an index of TTLS."""

    entry: int
    depth: int
    ttl: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that a call may find; `size` is its length in tokens as this call knows it."""

    entry: int
    depth: int
    size: int


class Attempt(NamedTuple):
    """An attempt at a call: the call's number from 0, and whether this attempt is the final one."""

    call: int
    is_final: bool


@dataclass(frozen=True, slots=True)
class Visit:
    """A prompt before the cache, `later_s` after its call starts.

    `candidates` are in the order the call looks. `usages` has one item for a hit at each of them, then one for a miss.
    """

    attempt: Attempt
    later_s: float
    first_token_s: float
    rules: ModelRules
    prices: Prices
    writes: tuple[EntryWrite, ...]
    candidates: tuple[Candidate, ...]
    usages: tuple[Usage, ...]


@dataclass(frozen=True, slots=True)
class VisitTable:
    """All visits in order, the number of entries they could write, and (type, text) of each call without usage."""

    visits: list[Visit]
    entries: int
    errors: list[tuple[str | None, str]]


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The arguments of one call of the cache."""

    prompt: Prompt
    rules: ModelRules
    start: float
    first_token_s: float
    sizes: PrefixSizes


@dataclass(slots=True)
class _RecordingCache(PrefixCache):
    """A cache that records its lookups."""

    lookups: list[_Lookup] = field(default_factory=list)

    def __post_init__(self) -> None:
        PrefixCache.__init__(self)

    def call(
        self,
        prompt: Prompt,
        rules: ModelRules,
        start: float,
        first_token_s: float = 0.0,
        sizes: PrefixSizes = AS_COUNTED,
    ) -> Outcome:
        self.lookups.append(_Lookup(prompt, rules, start, first_token_s, sizes))
        return PrefixCache.call(self, prompt, rules, start, first_token_s, sizes)


class _PricedLookup(NamedTuple):
    """A lookup of an attempt that has usage. Only the first pass of a call with server tools has output tokens."""

    lookup: _Lookup
    attempt: Attempt
    later_s: float
    prices: Prices
    answer: Usage
    """Its output, and the uses of server tools."""


def build_visits(traffic: Workload, attempts: int = 1) -> VisitTable:
    """The visits of a workload; main calls are made in up to two `attempts`, the first of which not every seed makes.

    Costs one simulation of all attempts. Raises CannotEvaluate for an unknown counter.
    """
    cache = _RecordingCache()
    simulation = replace(traffic, setup=replace(traffic.setup, starts_warm=False)).simulation(cache)
    lookups: list[_PricedLookup] = []
    errors: list[tuple[str | None, str]] = []
    for number, call in enumerate(traffic.calls):
        for left in reversed(range(attempts if call.purpose == MAIN else 1)):
            cache.lookups.clear()
            simulated = simulation.simulate(call)
            lookups += _price_lookups(Attempt(number, left == 0), call, simulated, cache.lookups)
        if simulated.row.error:
            errors.append((simulated.row.error_type, simulated.row.error))
    entries = EntryIndex()
    writes = [
        tuple([_number(entries, breakpoint, one.lookup.rules) for breakpoint in one.lookup.prompt.breakpoints])
        for one in lookups
    ]
    tree = build_tree(entries, writes, [one.lookup.rules for one in lookups], range(len(lookups)))
    visits = list(map(partial(_build_visit, entries.prefixes), lookups, writes, tree.find_candidates()))
    return VisitTable(visits, len(entries.prefixes), errors)


def _price_lookups(
    attempt: Attempt, call: Call, simulated: SimulatedCall, lookups: Sequence[_Lookup]
) -> Iterator[_PricedLookup]:
    """The lookups of one attempt: one pass, or more with server tools; none for a call without usage."""
    if simulated.prices is None:
        return
    for order, lookup in enumerate(lookups):
        usage = Usage() if order else simulated.row.usage
        answer = Usage(output_tokens=usage.output_tokens, tool_uses=usage.tool_uses)
        yield _PricedLookup(lookup, attempt, lookup.start - call.start, simulated.prices, answer)


def _number(entries: EntryIndex, breakpoint: BreakpointPrefix, rules: ModelRules) -> int:
    return entries.number(breakpoint.prefix, breakpoint.ttl if rules.assumptions.ttl_in_key else "")


def _build_visit(prefixes: Sequence[Prefix], priced: _PricedLookup, writes: Numbers, found: Numbers) -> Visit:
    """A visit, once all entries are numbered."""
    lookup = priced.lookup
    candidates = tuple([Candidate(n, prefixes[n].depth, lookup.sizes.of(prefixes[n])) for n in found])
    return Visit(
        priced.attempt,
        priced.later_s,
        lookup.first_token_s,
        lookup.rules,
        priced.prices,
        tuple(map(_entry_write, writes, lookup.prompt.breakpoints)),
        candidates,
        tuple([_divide(lookup, hit, priced.answer) for hit in (*candidates, None)]),
    )


def _entry_write(entry: int, breakpoint: BreakpointPrefix) -> EntryWrite:
    return EntryWrite(entry, breakpoint.prefix.depth, TTLS.index(breakpoint.ttl))


def _divide(lookup: _Lookup, hit: Candidate | None, answer: Usage) -> Usage:
    """Rule 15 for a hit at `hit`, or a miss."""
    prompt, sizes = lookup.prompt, lookup.sizes
    a, depth = (hit.size, hit.depth) if hit else (0, 0)
    enough = [
        breakpoint for breakpoint in prompt.breakpoints if sizes.of(breakpoint.prefix) >= lookup.rules.minimum_tokens
    ]
    after = [breakpoint for breakpoint in enough if breakpoint.prefix.depth > depth]
    b = max(_sizes(after, sizes, "1h"), default=a)
    c = max(_sizes(after, sizes), default=a)
    return Usage(sizes.total(prompt) - c, a, c - b, b - a, answer.output_tokens, answer.tool_uses)


def _sizes(breakpoints: Sequence[BreakpointPrefix], sizes: PrefixSizes, ttl: str | None = None) -> list[int]:
    return [sizes.of(breakpoint.prefix) for breakpoint in breakpoints if ttl in (None, breakpoint.ttl)]
