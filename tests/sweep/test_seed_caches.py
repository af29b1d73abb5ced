"""The caches of many seeds as arrays find, refresh and write what the engine does with each seed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from bodies import RULES
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import Writer, write_at_breakpoints
from cachecost.caches.expiry import CacheEntry
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.usage import TTLS
from cachecost.sweep.montecarlo import Attempt, Candidate, EntryWrite, SeedCaches, Visit

ENTRIES = 4
"""An entry at each depth of one conversation, 100 tokens apart."""
SPEEDS = np.array([1.0, 0.5, 20.0])
"""The seeds: how much longer each one's pauses are."""


@st.composite
def calls(draw: Any) -> list[tuple[float, float, list[tuple[int, str]]]]:
    """The pause before each call, its time to first token, and entry and TTL of its breakpoints: 1h before 5m."""
    made = []
    for _ in range(draw(st.integers(1, 8))):
        at = sorted(draw(st.sets(st.integers(0, ENTRIES - 1), min_size=1)))
        hours = draw(st.integers(0, len(at)))
        pause = draw(st.sampled_from([0.0, 1.0, 150.0, 299.0, 300.0, 1800.0, 3600.0]))
        writes = [(entry, "1h" if number < hours else "5m") for number, entry in enumerate(at)]
        made.append((pause, draw(st.sampled_from([0.0, 2.0])), writes))
    return made


@given(
    sent=calls(),
    shallow=st.sampled_from(["rewrite", "refresh", "ignore"]),
    refreshes=st.booleans(),
    minimum=st.sampled_from([0, 200]),
)
@example(  # rule 13: what the second call writes again before its hit lasts as long as the hit, not an hour
    sent=[(0.0, 0.0, [(1, "5m")]), (150.0, 0.0, [(0, "1h"), (1, "5m")]), (300.0, 0.0, [(0, "1h")])],
    shallow="rewrite",
    refreshes=True,
    minimum=0,
)
def test_arrays_do_as_the_engine(sent: Any, shallow: Any, refreshes: bool, minimum: int) -> None:
    rules = replace(
        RULES,
        minimum_tokens=minimum,
        refreshes_on_read=refreshes,
        assumptions=Assumptions(shallow_breakpoints=shallow),
    )
    arrays = SeedCaches(ENTRIES, range(len(SPEEDS)), 2 * ENTRIES * len(sent))
    alone: list[dict[int, CacheEntry]] = [{} for _ in SPEEDS]
    starts = np.zeros(len(SPEEDS))
    for pause, first_token_s, writes in sent:
        starts = starts + pause * SPEEDS
        numbers = list(dict.fromkeys(n for entry, _ in reversed(writes) for n in range(entry, -1, -1)))
        candidates = tuple(Candidate(n, n + 1, 100 * (n + 1)) for n in numbers)
        places = tuple(EntryWrite(n, n + 1, TTLS.index(ttl)) for n, ttl in writes)
        visit = Visit(Attempt(0, True), 0.0, first_token_s, rules, None, places, candidates, ())  # type: ignore[arg-type]
        found = arrays.visit(visit, starts, first_token_s, None)
        expected = [
            call(entries, start, first_token_s, writes, numbers, rules)
            for entries, start in zip(alone, starts, strict=True)
        ]
        assert [*found] == expected


def call(
    entries: dict[int, CacheEntry], start: float, first_token_s: float, writes: Any, numbers: list[int], rules: Any
) -> int:
    """Which of the numbers the call finds, as an index; how many there are where it misses."""
    hits = (at for at, n in enumerate(numbers) if n in entries and entries[n].is_hit(start, 100 * (n + 1)))
    found = next(hits, len(numbers))
    hit, depth = (entries[numbers[found]], numbers[found] + 1) if found < len(numbers) else (None, 0)
    written = [(n, n + 1, ttl) for n, ttl in writes]
    write_at_breakpoints(entries, hit, depth, written, Writer(rules, start, start + first_token_s))
    return found
