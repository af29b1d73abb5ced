"""What a fixed structure of calls costs when only its times vary: many seeds at once, each the same alone.

A seed draws pauses, first tokens and retries, independent of which other seeds run. What no seed changes is made once;
then every call is one step over the caches of all seeds: arrays, a row per entry and a column per seed (rules 7 to 14).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cachecost.base.digests import seeded_share
from cachecost.base.frames import MoneyColumn, frame_of
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import divide, lag_s
from cachecost.caches.expiry import BEFORE_TIME, has_expired, is_readable, shorter_ttl, ttl_s_of
from cachecost.caches.hosts import UnexplainedHosts
from cachecost.conversations.calls import Call
from cachecost.conversations.distributions import Choice, Distribution, DistributionShape
from cachecost.conversations.model import Aside, Conversation, Event, Human, Reply, Results
from cachecost.ledger.rows import NOT_EVALUATED
from cachecost.prompts.blocks import Prefix
from cachecost.prompts.passes import pass_times
from cachecost.prompts.render import PrefixSizes, Prompt
from cachecost.providers.prices import Prices
from cachecost.providers.rules import ModelRules, RuleBook
from cachecost.providers.usage import TTLS, Usage, usage_of
from cachecost.simulation.workload import Workload
from cachecost.sweep.entries import EntryIndex, Numbers, build_tree

Floats = NDArray[np.float64]
PLACES = 6
"""Times are whole microseconds, so that the last bit of a logarithm decides nothing."""
GOLDEN = 0x9E3779B97F4A7C15
TO_UNIT = 2.0**-53


@dataclass(frozen=True, slots=True)
class Retries:
    """A share `rate` of the main calls is sent again, `wait` seconds after the first attempt.

    `billed`: the API answered, and the answer was lost on the way (a timeout): the first attempt reads, writes and
    costs as any call. Otherwise it failed (overloaded): it writes and costs nothing, and only time is lost.
    """

    rate: float = 0.0
    wait: Distribution = 1.0
    billed: bool = False


@dataclass(frozen=True, slots=True)
class Draw:
    """What is drawn for each seed. None stays as planned. Times are seconds.

    `turn` is from the start of a main call to the next one where a person spoke in between, `loop` where only tools
    did; calls that start together stay together. `first_token` is from the start of a main call to its first token.
    `eviction`, `lag_probability` and `lag_s` go over the rulebook's assumptions of rule 14; their draws follow the
    seed.
    """

    turn: Distribution | None = None
    loop: Distribution | None = None
    first_token: Distribution | None = None
    retries: Retries = Retries()
    eviction: float | None = None
    lag_probability: float | None = None
    lag_s: float | None = None

    @property
    def readings(self) -> dict[str, float]:
        """The assumptions that are set, by the rulebook's names."""
        named = {
            "early_eviction_probability": self.eviction,
            "visibility_lag_probability": self.lag_probability,
            "visibility_lag_s": self.lag_s,
        }
        return {name: value for name, value in named.items() if value is not None}


def uniforms(seeds: Sequence[int], columns: int) -> Floats:
    """Numbers in [0, 1), a row a seed: SplitMix64 (Steele, Lea and Flood 2014), started from a digest of the seed."""
    states = [blake2b(f"montecarlo:{seed}".encode(), digest_size=8).digest() for seed in seeds]
    start = np.array([int.from_bytes(state, "big") for state in states], dtype=np.uint64)
    steps = np.arange(1, columns + 1, dtype=np.uint64) * np.uint64(GOLDEN)
    mixed: NDArray[np.uint64] = start[:, None] + steps[None, :]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    shares: Floats = (mixed >> np.uint64(11)).astype(np.float64) * TO_UNIT
    return shares


@dataclass(frozen=True, slots=True)
class PairedUniforms:
    """A RandomSource that makes a number of each pair of uniform ones."""

    first: Floats
    second: Floats

    def constant(self, value: float) -> Floats:
        return np.full(self.first.shape, value)

    def uniform(self) -> Floats:
        return self.first

    def normal(self) -> Floats:
        """Box and Muller's transform; 1 − u is never 0."""
        drawn: Floats = np.sqrt(-2 * np.log(1 - self.first)) * np.cos(2 * np.pi * self.second)
        return drawn

    def exp(self, power: Floats) -> Floats:
        return np.exp(power)

    def log(self, value: Floats) -> Floats:
        return np.log(value)

    def clip(self, value: Floats, low: float, high: float) -> Floats:
        return np.clip(value, low, high)

    def pick(self, choices: Sequence[float], edges: Sequence[float], position: Floats) -> Floats:
        places = np.searchsorted(np.array(edges), position, side="right")
        drawn: Floats = np.array(choices, dtype=np.float64)[np.minimum(places, len(choices) - 1)]
        return drawn


def numbers(of: Distribution, first: Floats, second: Floats) -> Floats:
    """Numbers with the distribution for pairs of uniform ones, in whole microseconds."""
    source = PairedUniforms(first, second)
    drawn = of.draw(source) if isinstance(of, DistributionShape) else source.constant(float(of))
    rounded: Floats = np.round(drawn, PLACES)
    return rounded


MAIN = "main"
DRAWS_A_CALL = 8
"""Two numbers for the pause, two for the first token, one for whether it is retried, two for how long that takes."""


@dataclass(frozen=True, slots=True)
class MainCalls:
    """The main calls: when they start (seconds), and whether a person spoke just before."""

    starts: Sequence[float]
    after_human: Sequence[bool]


def main_calls(calls: Sequence[Call]) -> MainCalls:
    """The anchors of calls in the order they start."""
    main = [call for call in calls if call.purpose == MAIN]
    messages = [call.request.thread.message for call in main]
    after_human = [message is not None and message.is_human for message in messages]
    return MainCalls([call.start for call in main], after_human)


@dataclass(frozen=True, slots=True)
class Times:
    """The main calls' times, a row a seed, a column a call.

    `first` is the start of the first attempt, `final` that of the one whose answer arrived: the same, unless `retried`.
    `waited` are the seconds to the first token; None: as planned.
    """

    anchors: MainCalls
    first: Floats
    final: Floats
    retried: NDArray[np.bool_]
    waited: Floats | None

    def at(self, moment: float) -> Floats:
        """The time that `moment`, between main calls, becomes under each seed."""
        starts = self.anchors.starts
        before = bisect_right(starts, moment) - 1
        if before < 0:
            return np.full(len(self.first), moment)
        since = moment - starts[before]
        if before + 1 == len(starts):
            return np.round(self.final[:, before] + since, PLACES)
        stretched = (self.first[:, before + 1] - self.final[:, before]) / (starts[before + 1] - starts[before])
        return np.round(self.final[:, before] + since * stretched, PLACES)


def draw_times(anchors: MainCalls, draw: Draw, seeds: Sequence[int]) -> Times:
    """The times of `seeds`. A call's draws depend on the seed and the call's number alone."""
    count = len(anchors.starts)
    uniform = uniforms(seeds, count * DRAWS_A_CALL).reshape(len(seeds), count, DRAWS_A_CALL)
    first, final = np.empty((len(seeds), count)), np.empty((len(seeds), count))
    retried = uniform[:, :, 4] < draw.retries.rate
    for number, start in enumerate(anchors.starts):
        # none before the first, and none where there was none
        pause: Floats | float = start - anchors.starts[number - 1] if number else 0.0
        of = draw.turn if anchors.after_human[number] else draw.loop
        if of is not None and pause:
            pause = numbers(of, uniform[:, number, 0], uniform[:, number, 1])
        first[:, number] = np.round(final[:, number - 1] + pause, PLACES) if number else start
        wait = numbers(draw.retries.wait, uniform[:, number, 5], uniform[:, number, 6])
        final[:, number] = np.where(retried[:, number], np.round(first[:, number] + wait, PLACES), first[:, number])
    waited = draw.first_token
    tokens = None if waited is None else numbers(waited, uniform[:, :, 2], uniform[:, :, 3])
    return Times(anchors, first, final, retried, tokens)


def resample_pauses(calls: Sequence[Call]) -> Draw:
    """Pauses drawn from those that the calls have themselves, each as likely as it is frequent."""
    anchors = main_calls(calls)
    pauses: dict[bool, list[float]] = {True: [], False: []}
    for number in range(1, len(anchors.starts)):
        if gap := round(anchors.starts[number] - anchors.starts[number - 1], PLACES):
            pauses[anchors.after_human[number]].append(gap)
    turn, loop = (Choice(tuple(own), (1.0,) * len(own)) if own else None for own in (pauses[True], pauses[False]))
    return Draw(turn=turn, loop=loop)


def retime(conversations: Sequence[Conversation], draw: Draw, seed: int) -> list[Conversation]:
    """The conversations with each event at the time that `seed` gives it: replies as main calls, the rest between."""
    replies: list[tuple[float, int, int, bool]] = []  # time, conversation, place, whether a person spoke just before
    for number, conversation in enumerate(conversations):
        after_human = False
        for place, event in enumerate(conversation.events):
            if isinstance(event, Human | Results):
                after_human = isinstance(event, Human) or any(block.kind != "tool_result" for block in event.blocks)
            elif isinstance(event, Reply):
                replies.append((event.at, number, place, after_human))
                after_human = False
    replies.sort()
    times = draw_times(MainCalls([one[0] for one in replies], [one[3] for one in replies]), draw, [seed])
    columns = {(number, place): column for column, (_, number, place, _) in enumerate(replies)}
    return [
        replace(
            conversation,
            events=tuple(
                _move_event(event, times, columns.get((number, place)))
                for place, event in enumerate(conversation.events)
            ),
        )
        for number, conversation in enumerate(conversations)
    ]


def _move_event(event: Event, times: Times, column: int | None) -> Event:
    if isinstance(event, Reply) and column is not None:
        waited = event.first_token_s if times.waited is None else float(times.waited[0, column])
        return replace(event, at=float(times.final[0, column]), first_token_s=waited)
    at = float(times.at(event.at)[0])
    if isinstance(event, Aside):
        return replace(event, at=at, reply=replace(event.reply, at=at))
    return replace(event, at=at)


if TYPE_CHECKING:
    import pandas as pd

PERCENTILES = (5, 25, 50, 75, 95)
CONFIDENCE = 1.96
"""Standard errors on both sides of a mean that hold the true one 95 times of 100."""
TOKEN_FIELDS = ("input_tokens", "read", "write_5m", "write_1h", "output_tokens")


@dataclass(frozen=True)
class CostDistribution:
    """The dollars of one traffic under many seeds, in the order of `seeds`.

    `units` are whole numbers, of which 10**`places` are a dollar; `tokens` has a row a seed, a column each of
    TOKEN_FIELDS. `calls` is how many calls a seed makes without retries, `errors` why some have no usage;
    `not_evaluated` are those of them whose model, rule or price is not known.
    """

    strategy: str
    seeds: Sequence[int]
    units: NDArray[np.object_] | NDArray[np.int64]
    places: int
    tokens: NDArray[np.int64]
    calls: int
    errors: tuple[str, ...] = ()
    not_evaluated: tuple[str, ...] = ()

    @cached_property
    def costs(self) -> list[Decimal]:
        """USD of each seed, exact."""
        return [Decimal(int(unit)).scaleb(-self.places) for unit in self.units]

    @cached_property
    def _sorted_costs(self) -> list[Decimal]:
        return sorted(self.costs)

    def usage(self, number: int) -> Usage:
        """Tokens of the `number`-th seed (from 0), all its calls together."""
        return usage_of(map(int, self.tokens[number]))

    def percentile(self, percent: float) -> Decimal:
        """USD that this share of the seeds does not exceed: that of a seed, by nearest rank."""
        rank = max(1, ceil(percent / 100 * len(self.seeds)))
        return self._sorted_costs[rank - 1]

    @property
    def percentiles(self) -> dict[int, Decimal]:
        """The 5th, 25th, 50th, 75th and 95th percentile in USD."""
        return {percent: self.percentile(percent) for percent in PERCENTILES}

    @property
    def mean(self) -> Decimal:
        return sum(self.costs, Decimal(0)) / len(self.seeds)

    @property
    def convergence(self) -> float:
        """How far the mean may still be from the true one, 95 times of 100, as a share of it: 0.01 is ± 1 %."""
        mean = float(self.mean)
        if not mean or len(self.seeds) < 2:  # a single seed does not show the error of the mean
            return 0.0
        standard_error = float(np.std(np.array(self.costs, dtype=np.float64), ddof=1)) / sqrt(len(self.seeds))
        return CONFIDENCE * standard_error / mean

    def frame(self, *, money: MoneyColumn = "float") -> pd.DataFrame:
        """One row a seed: its tokens by class (`usage.…`), and `cost_usd`."""
        rows = (
            {"seed": seed, "usage": self.usage(number).wire(), "cost_usd": cost}
            for number, (seed, cost) in enumerate(zip(self.seeds, self.costs, strict=True))
        )
        return frame_of(rows, money, index="seed")


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
    """A pass of an attempt that has usage. Only the first one of a call with server tools has an answer."""

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
    traffic.require_support("the Monte Carlo of many seeds at once")
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
