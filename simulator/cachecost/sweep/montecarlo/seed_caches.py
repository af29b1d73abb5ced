"""The caches of many seeds as arrays: a row per entry, a column per seed (rules 7 to 14)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cachecost.base.seeded_draws import seeded_share
from cachecost.caches.breakpoints import lag_s
from cachecost.providers.rules import Assumptions, ModelRules
from cachecost.sweep.montecarlo.draws import Floats
from cachecost.sweep.montecarlo.visits import TTLS, Candidate, EntryWrite, Visit

Some = NDArray[np.bool_]
NEVER = -np.inf


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

    def visit(self, visit: Visit, start: Floats, first_token: Floats | float, active: Some | None) -> NDArray[np.intp]:
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

    def _live(self, entry: int, now: Floats) -> Some:
        is_readable = (now >= self._readable_at[entry]) & (now > self._started[entry])
        is_live: Some = is_readable & (now - self._touched[entry] < self._ttl_s[entry])
        return is_live

    def _touch(self, entry: int, seeds: Some, start: Floats) -> None:
        np.maximum(self._touched[entry], start, out=self._touched[entry], where=seeds)

    def _read(self, visit: Visit, hit: Candidate, found: Some, start: Floats, first_token: Floats | float) -> None:
        """Rule 13: refresh the hit and the entries before it, or write them again at no charge."""
        self._touch(hit.entry, found, start)
        reading = visit.rules.assumptions.shallow_breakpoints
        for write in visit.writes if reading != "ignore" else ():
            if write.depth <= hit.depth:
                live = found & self._live(write.entry, start)
                self._touch(write.entry, live, start)
                dead = found & ~live
                if reading == "rewrite" and dead.any():
                    shorter = np.minimum(self._ttl[hit.entry], write.ttl)
                    self._write(write, shorter, visit.rules, dead, start, first_token)

    def _write(
        self,
        write: EntryWrite,
        ttl: int | NDArray[np.int8],
        rules: ModelRules,
        seeds: Some,
        start: Floats,
        first_token: Floats | float,
    ) -> None:
        if not seeds.any():
            return
        self._written += seeds
        ttl_s = np.array([rules.ttl_s.get(name, 0.0) for name in TTLS])
        on_time = start + first_token + self._lag(rules.assumptions, seeds)
        new = (
            (self._started, start),
            (self._touched, start),
            (self._readable_at, np.maximum(on_time, self._delayed_until(rules, seeds, start))),
            (self._ttl_s, ttl_s[ttl] * self._share_lived(rules.assumptions, seeds)),
            (self._ttl, ttl),
            (self._minimum, rules.minimum_tokens),
        )
        for column, value in new:
            np.copyto(column[write.entry], value, where=seeds, casting="same_kind")

    def _lag(self, assumptions: Assumptions, seeds: Some) -> Floats | float:
        if not assumptions.visibility_lag_probability:
            return 0.0
        late = self._share("lag", seeds) < assumptions.visibility_lag_probability
        return np.where(late, assumptions.visibility_lag_s, 0.0)

    def _delayed_until(self, rules: ModelRules, seeds: Some, start: Floats) -> Floats:
        """From when the dated rows let the entry be read, and what is shallower of the same call (seconds)."""
        lag, probability = rules.visibility_lag, rules.assumptions.visibility_lag_by_date
        if lag and probability:
            late = seeds & (self._share("dated", seeds) < probability)
            delays = [lag_s(lag, share) for share in self._share("delay", late)[late]]
            self._latest[late] = np.maximum(self._latest[late], start[late] + delays)
        return self._latest

    def _share_lived(self, assumptions: Assumptions, seeds: Some) -> Floats | float:
        if not assumptions.early_eviction_probability:
            return 1.0
        early = seeds & (self._share("evict", seeds) < assumptions.early_eviction_probability)
        return np.where(early, self._share("life", early), 1.0)

    def _share(self, what: str, seeds: Some) -> Floats:
        """The draws of `seeded_share` for the entry that each of `seeds` wrote last; NaN is not drawn yet."""
        if what not in self._shares:
            self._shares[what] = np.full((len(self._seeds), self._writes + 1), np.nan)
        known = self._shares[what]
        shares: Floats = known[np.arange(len(self._seeds)), self._written]
        for place in map(int, np.flatnonzero(seeds & np.isnan(shares))):
            number = int(self._written[place])
            shares[place] = known[place, number] = seeded_share(self._seeds[place], what, number)
        return shares
