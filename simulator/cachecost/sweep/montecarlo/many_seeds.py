"""Many seeds at once: what no seed changes is made once, then every call is one step over the caches of all seeds.

The caches of the seeds are arrays: a row per entry, a column per seed (rules 7 to 14).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cachecost.base.digests import seeded_share
from cachecost.caches.breakpoints import divide, lag_s
from cachecost.caches.expiry import BEFORE_TIME, has_expired, is_readable, shorter_ttl, ttl_s_of
from cachecost.caches.hosts import UnexplainedHosts
from cachecost.conversations.calls import Call
from cachecost.ledger.rows import NOT_EVALUATED
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.passes import pass_times
from cachecost.prompts.render import PrefixSizes, Prompt
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import TTLS, Usage
from cachecost.simulation.workload import Workload
from cachecost.sweep.entries import EntryIndex, Numbers, build_tree
from cachecost.sweep.montecarlo.distribution import TOKEN_FIELDS, CostDistribution
from cachecost.sweep.montecarlo.draws import MAIN, Draw, Floats, draw_times, main_calls


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


class _Lookup(NamedTuple):
    """A pass of an attempt that has usage. Only the first pass of a call with server tools has an answer: its output,
    and the uses of server tools."""

    prompt: Prompt
    sizes: PrefixSizes
    rules: ModelRules
    prices: Prices
    attempt: Attempt
    later_s: float
    first_token_s: float
    answer: Usage


def build_visits(traffic: Workload, attempts: int = 1) -> VisitTable:
    """The visits of a workload; main calls are made in up to two `attempts`, the first of which not every seed makes.

    Costs one simulation of all attempts. Raises CannotEvaluate for an unknown counter.
    """
    simulation = replace(traffic, setup=replace(traffic.setup, starts_warm=False)).simulation(hosts=UnexplainedHosts())
    lookups: list[_Lookup] = []
    errors: list[tuple[str | None, str]] = []
    for number, call in enumerate(traffic.calls):
        for left in reversed(range(attempts if call.purpose == MAIN else 1)):
            simulated = simulation.simulate(call)
            if simulated.rules is None or simulated.prices is None:
                continue
            times, usage = pass_times(call.start, call.ready_s, len(simulated.passes)), simulated.row.usage
            answer = Usage(output_tokens=usage.output_tokens, tool_uses=usage.tool_uses)
            known = simulated.rules, simulated.prices, Attempt(number, left == 0)
            for one, (start, first_token_s) in zip(simulated.passes, times, strict=True):
                lookups.append(_Lookup(one.prompt, one.sizes, *known, start - call.start, first_token_s, answer))
                answer = Usage()
        if simulated.row.error:
            errors.append((simulated.row.error_type, simulated.row.error))
    entries = EntryIndex()
    writes = []
    for lookup in lookups:
        in_key = lookup.rules.assumptions.ttl_in_key
        marked = lookup.prompt.breakpoints
        writes.append(tuple([entries.number(mark.prefix, mark.ttl if in_key else "") for mark in marked]))
    tree = build_tree(entries, writes, [lookup.rules for lookup in lookups], range(len(lookups)))
    visits = [
        _build_visit(entries.prefixes, lookup, written, found)
        for lookup, written, found in zip(lookups, writes, tree.find_candidates(), strict=True)
    ]
    return VisitTable(visits, len(entries.prefixes), errors)


def _build_visit(prefixes: Sequence[Prefix], lookup: _Lookup, entries: Numbers, found: Numbers) -> Visit:
    """A visit, once all entries are numbered: `entries` are those that it writes, `found` those that it may find."""
    prompt, sizes, answer = lookup.prompt, lookup.sizes, lookup.answer
    candidates = tuple([Candidate(n, prefixes[n].depth, sizes.of(prefixes[n])) for n in found])
    writes = zip(entries, prompt.breakpoints, strict=True)
    total, usages = sizes.total(prompt), list[Usage]()
    for hit in (*candidates, None):  # rule 15
        hit_end, depth = (hit.size, hit.depth) if hit else (0, 0)
        after = [(sizes.of(one.prefix), one.ttl) for one in prompt.breakpoints if one.prefix.depth > depth]
        hour_end, end = divide(hit_end, [one for one in after if one[0] >= lookup.rules.minimum_tokens])
        written = end - hour_end, hour_end - hit_end
        usages.append(Usage(total - end, hit_end, *written, answer.output_tokens, answer.tool_uses))
    return Visit(
        lookup.attempt,
        lookup.later_s,
        lookup.first_token_s,
        lookup.rules,
        lookup.prices,
        tuple([EntryWrite(entry, one.prefix.depth, TTLS.index(one.ttl)) for entry, one in writes]),
        candidates,
        tuple(usages),
    )


SeedMask = NDArray[np.bool_]
NEVER = BEFORE_TIME


class SeedCaches:
    """The caches of `seeds`. `writes` is an upper bound of how many entries a seed writes in all."""

    def __init__(self, entries: int, seeds: Sequence[int], writes: int) -> None:
        shape = (entries, len(seeds))
        self._started = np.full(shape, NEVER)
        self._touched = np.full(shape, NEVER)
        self._readable_at = np.full(shape, NEVER)
        self._ttl_s = np.zeros(shape)
        self._ttl = np.zeros(shape, dtype=np.int8)
        self._minimum = np.zeros(shape, dtype=np.int64)
        self._written = np.zeros(len(seeds), dtype=np.int64)
        self._seeds = seeds
        self._writes = writes
        self._shares: dict[str, Floats] = {}
        self._latest = np.full(len(seeds), NEVER)

    def visit(
        self, visit: Visit, start: Floats, first_token: Floats | float, active: SeedMask | None
    ) -> NDArray[np.intp]:
        """Look up, refresh and write for the `active` seeds (None: all). Returns each seed's index in `usages`."""
        self._latest = np.full(len(start), NEVER)
        undecided = np.ones(len(start), dtype=np.bool_) if active is None else active.copy()
        depths = np.zeros(len(start), dtype=np.int64)
        case = np.full(len(start), len(visit.candidates), dtype=np.intp)
        for number, candidate in enumerate(visit.candidates):
            found = undecided & self._live(candidate.entry, start) & (candidate.size >= self._minimum[candidate.entry])
            if found.any():
                case[found], depths[found] = number, candidate.depth
                undecided &= ~found
                self._read(visit, candidate, found, start, first_token)
                if not undecided.any():
                    break
        for write in visit.writes:
            deeper = depths < write.depth
            self._write(
                write, write.ttl, visit.rules, deeper if active is None else deeper & active, start, first_token
            )
        return case

    def _live(self, entry: int, now: Floats) -> SeedMask:
        is_ready = is_readable(now, self._started[entry], self._readable_at[entry])
        return is_ready & ~has_expired(now, self._touched[entry], self._ttl_s[entry])

    def _touch(self, entry: int, seeds: SeedMask, start: Floats, rules: ModelRules) -> None:
        if rules.refreshes_on_read:
            np.maximum(self._touched[entry], start, out=self._touched[entry], where=seeds)

    def _read(self, visit: Visit, hit: Candidate, found: SeedMask, start: Floats, first_token: Floats | float) -> None:
        """Rule 13: refresh the hit and the entries before it, or write them again at no charge."""
        rules = visit.rules
        self._touch(hit.entry, found, start, rules)
        assumption = rules.assumptions.shallow_breakpoints
        for write in visit.writes if assumption != "ignore" else ():
            if write.depth <= hit.depth:
                live = found & self._live(write.entry, start)
                self._touch(write.entry, live, start, rules)
                dead = found & ~live
                if assumption == "rewrite" and dead.any():
                    shorter = np.array([TTLS.index(shorter_ttl(TTLS[write.ttl], ttl, rules)) for ttl in TTLS])
                    self._write(write, shorter[self._ttl[hit.entry]], rules, dead, start, first_token)

    def _write(
        self,
        write: EntryWrite,
        ttl: int | NDArray[np.int64],
        rules: ModelRules,
        seeds: SeedMask,
        start: Floats,
        first_token: Floats | float,
    ) -> None:
        if not seeds.any():
            return
        self._written += seeds
        chances, ttl_s = rules.assumptions, np.array([ttl_s_of(rules, name) for name in TTLS])
        on_time, lasts = start + first_token, ttl_s[ttl]
        if chances.visibility_lag_probability:
            is_late = self._share("lag", seeds) < chances.visibility_lag_probability
            on_time = on_time + np.where(is_late, chances.visibility_lag_s, 0.0)
        lag, probability = rules.visibility_lag, chances.visibility_lag_by_date
        if lag and probability:
            late = seeds & (self._share("dated", seeds) < probability)
            delays = [lag_s(lag, share) for share in self._share("delay", late)[late]]
            self._latest[late] = np.maximum(self._latest[late], start[late] + delays)
        if chances.early_eviction_probability:
            early = seeds & (self._share("evict", seeds) < chances.early_eviction_probability)
            lasts = lasts * np.where(early, self._share("life", early), 1.0)
        new = (
            (self._started, start),
            (self._touched, start),
            (self._readable_at, np.maximum(on_time, self._latest)),
            (self._ttl_s, lasts),
            (self._ttl, ttl),
            (self._minimum, rules.minimum_tokens),
        )
        for column, value in new:
            np.copyto(column[write.entry], value, where=seeds, casting="same_kind")

    def _share(self, what: str, seeds: SeedMask) -> Floats:
        """The draws of `seeded_share` for the entry that each of `seeds` wrote last; NaN is not drawn yet."""
        if what not in self._shares:
            self._shares[what] = np.full((len(self._seeds), self._writes + 1), np.nan)
        known = self._shares[what]
        shares: Floats = known[np.arange(len(self._seeds)), self._written]
        for place in map(int, np.flatnonzero(seeds & np.isnan(shares))):
            number = int(self._written[place])
            shares[place] = known[place, number] = seeded_share(self._seeds[place], what, number)
        return shares


SEEDS_AT_ONCE = 2_000
"""So many that numpy's own overhead does not count, so few that their entries stay in the processor's cache."""
SAFE = 2**62
PER_TOKEN_PLACES = 6
Ints = NDArray[np.int64]


def montecarlo(traffic: Workload, draw: Draw, seeds: int | Sequence[int]) -> CostDistribution:
    """Dollars of the traffic's calls under each of `seeds` (a number: from 1 on), times drawn anew for each.

    Only times vary: which calls there are, what they send and the day whose rules and prices hold stay as planned. Each
    seed costs exactly what the engine makes of the calls at its times, one by one. Raises CannotEvaluate.
    """
    wanted = range(1, seeds + 1) if isinstance(seeds, int) else list(seeds)
    if not wanted:
        raise ValueError("seeds: expected one or more; got none")
    traffic.require_breakpoints("the Monte Carlo of many seeds at once")
    on = replace(traffic, setup=replace(traffic.setup, rules=seeded_rules(traffic.setup.rules, draw)))
    table = build_visits(on, 2 if draw.retries.billed and draw.retries.rate else 1)
    bills = _Bills(table)
    chunks = (wanted[first : first + SEEDS_AT_ONCE] for first in range(0, len(wanted), SEEDS_AT_ONCE))
    parts = [_run_seeds(on.calls, table, bills, draw, some) for some in chunks]
    units, tokens = (np.concatenate(column) for column in zip(*parts, strict=True))
    errors = tuple(error for _, error in table.errors)
    not_evaluated = tuple(error for kind, error in table.errors if kind == NOT_EVALUATED)
    calls = len(traffic.calls)
    return CostDistribution(traffic.strategy, wanted, units, bills.places, tokens, calls, errors, not_evaluated)


def seeded_rules(rules: RuleBook, draw: Draw, seed: int = 0) -> RuleBook:
    """The rules with the evictions and visibility lags of the draw, which `seed` decides."""
    given = rules.assumptions.given | set(draw.readings) | {"seed"}
    over: dict[str, Any] = {**draw.readings, "seed": seed, "given": given}
    return RuleBook(replace(rules.assumptions, **over), rules.as_of, rules.own)


class _Bills:
    """Usage and dollars of every case of every visit. Dollars are whole units, so that sums are exact."""

    def __init__(self, table: VisitTable) -> None:
        costs = [[visit.prices.total_cost(usage) for usage in visit.usages] for visit in table.visits]
        exponents = [cost.normalize().as_tuple().exponent for row in costs for cost in row]
        self.places = max([PER_TOKEN_PLACES, *(-exponent for exponent in exponents if isinstance(exponent, int))])
        units = [[int(cost.scaleb(self.places)) for cost in row] for row in costs]
        most = 2 * sum(max(row) for row in units)
        self.type = np.dtype(np.int64) if most < SAFE else np.dtype(object)
        self.units = [np.array(row, dtype=self.type) for row in units]
        self.tokens = [
            np.array([[getattr(usage, name) for name in TOKEN_FIELDS] for usage in visit.usages], dtype=np.int64)
            for visit in table.visits
        ]


def _run_seeds(
    calls: Sequence[Call], table: VisitTable, bills: _Bills, draw: Draw, seeds: Sequence[int]
) -> tuple[NDArray[np.object_] | Ints, Ints]:
    """Units and tokens of each seed, after all visits."""
    times = draw_times(main_calls(calls), draw, seeds)
    caches = SeedCaches(table.entries, seeds, 2 * sum(len(visit.writes) for visit in table.visits))
    units = np.zeros(len(seeds), dtype=bills.type)
    tokens = np.zeros((len(seeds), len(TOKEN_FIELDS)), dtype=np.int64)
    columns = [count - 1 for count in accumulate(call.purpose == MAIN for call in calls)]
    for number, visit in enumerate(table.visits):
        call, column = calls[visit.attempt.call], columns[visit.attempt.call]
        active = None if visit.attempt.is_final else times.retried[:, column]
        if active is not None and not active.any():
            continue
        first_token: Floats | float = visit.first_token_s
        if call.purpose != MAIN:
            start = times.at(call.start)
        else:
            start = (times.final if visit.attempt.is_final else times.first)[:, column]
            first_token = first_token if times.waited is None else times.waited[:, column]
        case = caches.visit(visit, start + visit.later_s, first_token, active)
        if active is None:
            units += bills.units[number][case]
            tokens += bills.tokens[number][case]
        else:
            units += np.where(active, bills.units[number][case], 0)
            tokens += np.where(active[:, None], bills.tokens[number][case], 0)
    return units, tokens
