"""Rules 11 to 13: when an entry can be read, when it expires, and how long what is written again before a hit lasts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from trees import Tree

from bodies import RULES
from cachecost.base.structs import replace
from cachecost.caches.breakpoints import PrefixCache
from cachecost.caches.expiry import CacheEntry, has_expired, is_readable, new_entry, refresh_before_hit, shorter_ttl
from cachecost.prompts.render import BreakpointPrefix, Prompt
from cachecost.providers.assumptions import Assumptions
from cachecost.providers.rules import ModelRules
from cachecost.providers.usage import TTLS, ttl_seconds
from naive import NaiveEntry, alive

MOMENTS = st.sampled_from([0.0, 0.5, 1.0, 299.999999, 300.0, 300.5, 301.0, 3600.0, 3600.5])


def rules(assumption: str = "rewrite") -> ModelRules:
    return replace(RULES, assumptions=Assumptions(shallow_breakpoints=assumption))  # type: ignore[arg-type]


@given(st.lists(st.tuples(MOMENTS, MOMENTS, MOMENTS, MOMENTS, st.sampled_from(TTLS)), min_size=1, max_size=20))
@example([(300.0, 0.0, 0.0, 0.0, "5m"), (0.0, 0.0, 0.0, 0.0, "5m"), (1.0, 0.0, 0.0, 1.0, "1h")])
def test_entries_arrays_and_the_plain_rulebook_say_the_same(
    cases: list[tuple[float, float, float, float, str]],
) -> None:
    now, started, touched, readable_at = (np.array(column) for column in list(zip(*cases, strict=True))[:4])
    ttl_s = np.array([RULES.ttl_s[case[4]] for case in cases])
    live = is_readable(now, started, readable_at) & ~has_expired(now, touched, ttl_s)
    for number, (at, start, touch, ready, ttl) in enumerate(cases):
        entry = CacheEntry(0, ttl, RULES.ttl_s[ttl], start, touch, ready)
        plain = alive(NaiveEntry([], "", ttl, start, touch, ready), RULES, at)
        assert (entry.state(at) == "live", bool(live[number])) == (plain, plain)
        assert is_readable(at, start, ready) == (entry.state(at) != "unreadable")
        assert has_expired(at, touch, entry.ttl_s) == (at - touch >= entry.ttl_s)


def test_an_entry_is_not_hit_below_its_minimum() -> None:
    entry = replace_minimum(new_entry(RULES, "5m", 0.0, 0.0), 1024)
    assert [entry.is_hit(1.0, tokens) for tokens in (1023, 1024)] == [False, True]
    assert [entry.is_hit(now, 1024) for now in (0.0, 299.0, 300.0)] == [False, True, False]


def replace_minimum(entry: CacheEntry, minimum: int) -> CacheEntry:
    entry.minimum = minimum
    return entry


def test_an_entry_that_is_evicted_early_has_a_share_of_its_ttl() -> None:
    entry = new_entry(RULES, "1h", 0.0, 0.0, 0.5)
    assert [entry.state(now) for now in (1799.0, 1800.0)] == ["live", "expired"]


def test_a_ttl_that_a_host_lacks_is_its_short_one_and_without_any_the_usual() -> None:
    assert [ttl_seconds(ttl) for ttl in TTLS] == [300.0, 3600.0]
    assert [ttl_seconds(ttl, {"5m": 1800.0}) for ttl in TTLS] == [1800.0, 1800.0]
    assert [ttl_seconds(ttl, {}) for ttl in TTLS] == [300.0, 3600.0]


@pytest.mark.parametrize(("own", "hit"), [("5m", "5m"), ("5m", "1h"), ("1h", "5m"), ("1h", "1h")])
def test_what_is_written_again_lasts_as_the_shorter_ttl(own: str, hit: str) -> None:
    expected = "1h" if own == hit == "1h" else "5m"
    assert shorter_ttl(own, hit, rules()) == expected
    assert refresh_before_hit(None, own, hit, 100.0, rules()) == expected
    expired = new_entry(rules(), own, 0.0, 0.0, 0.01)
    assert refresh_before_hit(expired, own, hit, 100.0, rules()) == expected


@pytest.mark.parametrize("assumption", ["refresh", "ignore"])
def test_other_assumptions_write_nothing(assumption: str) -> None:
    assert refresh_before_hit(None, "1h", "5m", 100.0, rules(assumption)) is None


def test_a_live_entry_is_refreshed_and_not_written() -> None:
    entry = new_entry(rules(), "5m", 0.0, 0.0)
    assert refresh_before_hit(entry, "5m", "1h", 299.0, rules()) is None
    assert (entry.state(598.0), entry.state(600.0)) == ("live", "expired")


@pytest.mark.parametrize(("hit_ttl", "read"), [("1h", 100), ("5m", 0)])
def test_what_a_hit_wrote_at_no_charge_outlives_nothing_that_was_paid_for(hit_ttl: str, read: int) -> None:
    """A 1h breakpoint on A, before a hit on A, B with this TTL, leaves an entry of A that expires with that TTL."""
    tree, cache, stated = Tree(), PrefixCache(), replace(rules(), minimum_tokens=0)
    head, end = tree.end("A:100"), tree.end("A:100", "B:50")

    def call(start: float, *breakpoints: BreakpointPrefix) -> int:
        prompt = tree.prompt("A:100", *(["B:50"] if breakpoints[-1].prefix is end else []))
        return cache.call(replace_breakpoints(prompt, breakpoints), stated, start).read

    last = BreakpointPrefix(end, hit_ttl)  # type: ignore[arg-type]
    assert call(0.0, last) == 0
    assert call(10.0, BreakpointPrefix(head, "1h"), last) == 150
    assert call(310.0, BreakpointPrefix(head, "1h")) == read


def replace_breakpoints(prompt: Prompt, breakpoints: tuple[BreakpointPrefix, ...]) -> Prompt:
    return Prompt(prompt.end, prompt.head, breakpoints, 0, 0, prompt.total_tokens, prompt.cache_keys)
